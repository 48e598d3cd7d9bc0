/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write: writes the text of an edited tree. Unedited parts are copied from the parsed text.
 * New parts are formatted like their neighbours:
 *
 *	in a container that had children   the white space before its first child, before its
 *	                                   other children and before its closing bracket
 *	a new container                    like a neighbour of its kind ("model"), and its content
 *	                                   like that of the neighbour
 *	without such a neighbour           on lines of its own if its parent's children are,
 *	                                   otherwise on one line
 *
 * The indentation step, the white space after a colon and the line ends are those of the root's
 * first member. Does not know how the tree was built.
 */
#include <string.h>

#include "formats/json/json.h"
#include "formats/json/json_tree.h"

struct span {
	const char *bytes;
	size_t length;
};

/* `base`, followed by `extra` times the document's unit. */
struct indent {
	struct span base;
	unsigned int extra;
};

struct writer {
	const char *text;
	struct graft_buffer *out;
	struct span unit, newline, colon, gap; /* gap: after a comma on the same line */
};

/* How a container's children are separated. */
struct style {
	bool sampled; /* the spans are from the text; otherwise they follow from `multiline` and the indentation */
	bool multiline;
	struct span first, other, close;
};

static const struct span nothing = { "", 0 };

static void put_json_span(const struct writer *writer, struct span span)
{
	graft_buffer_add(writer->out, span.bytes, span.length);
}

static bool is_json_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The white space that ends at `at`. */
static struct span blanks_before(const char *text, size_t at)
{
	size_t start = at;

	while (start > 0 && is_json_blank(text[start - 1]))
		start--;
	return (struct span){ text + start, at - start };
}

/* The white space that begins at `at`. The text ends with a NUL. */
static struct span blanks_after(const char *text, size_t at)
{
	size_t end = at;

	while (is_json_blank(text[end]))
		end++;
	return (struct span){ text + at, end - at };
}

static bool has_newline(struct span span)
{
	return span.length > 0 && memchr(span.bytes, '\n', span.length) != NULL;
}

/* The part after the last line end. */
static struct span last_line(struct span span)
{
	const char *newline = span.length > 0 ? memrchr(span.bytes, '\n', span.length) : NULL;
	const char *start = newline ? newline + 1 : span.bytes;

	return (struct span){ start, span.length - (size_t)(start - span.bytes) };
}

static size_t item_start(const struct graft_json_node *node)
{
	return node->name_start != 0 ? node->name_start : node->start;
}

/*
 * Returns whether the text shows how the children are separated: it is a parsed container that had
 * some.
 */
static bool has_sample(const struct writer *writer, const struct graft_json_node *node)
{
	size_t inner;

	if (!json_is_container(node) || node->fresh)
		return false;
	inner = node->start + 1 + blanks_after(writer->text, node->start + 1).length;
	return inner + 1 < node->end;
}

/*
 * The white space between the preceding comma and the child. Returns false if the child was the
 * first.
 */
static bool find_lead(const struct writer *writer, const struct graft_json_node *child, struct span *ret_lead)
{
	struct span lead = blanks_before(writer->text, item_start(child));

	if (lead.bytes[-1] != ',')
		return false;
	*ret_lead = lead;
	return true;
}

static const struct graft_json_node *find_placed(const struct graft_json_node *container)
{
	const struct graft_json_node *child = container->first;

	while (child && !child->placed)
		child = child->next;
	return child;
}

static struct style sample(const struct writer *writer, const struct graft_json_node *container)
{
	struct style style = { .sampled = true };

	style.first = blanks_after(writer->text, container->start + 1);
	style.close = blanks_before(writer->text, container->end - 1);
	style.multiline = has_newline(style.first);
	style.other = style.multiline ? style.first : writer->gap;
	for (const struct graft_json_node *child = container->first; child; child = child->next) {
		if (child->placed && find_lead(writer, child, &style.other))
			break;
	}
	return style;
}

static struct style choose_style(const struct writer *writer, const struct graft_json_node *container,
				 const struct graft_json_node *model, bool multiline)
{
	struct style style = { .multiline = multiline, .first = nothing, .other = writer->gap, .close = nothing };

	if (has_sample(writer, container))
		return sample(writer, container);
	return model ? sample(writer, model) : style;
}

static void put_line(const struct writer *writer, struct indent indent)
{
	put_json_span(writer, writer->newline);
	put_json_span(writer, indent.base);
	for (unsigned int i = 0; i < indent.extra; i++)
		put_json_span(writer, writer->unit);
}

/*
 * Finds a neighbour that a new child should look like: the child of the same name in the parent's
 * model, otherwise a sibling of the same kind.
 */
static const struct graft_json_node *find_model(const struct writer *writer, const struct graft_json_node *child,
						const struct graft_json_node *model)
{
	const struct graft_json_node *holders[] = { child->name ? model : NULL, child->parent, model };

	if (!json_is_container(child) || has_sample(writer, child))
		return NULL;
	for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++) {
		const struct graft_json_node *sibling = holders[i] ? holders[i]->first : NULL;

		for (; sibling; sibling = sibling->next) {
			bool fits = i > 0 || (sibling->name && strcmp(sibling->name, child->name) == 0);

			if (fits && sibling->kind == child->kind && has_sample(writer, sibling))
				return sibling;
		}
	}
	return NULL;
}

/* Everything between a member's name and its value. */
static struct span colon_of(const char *text, const struct graft_json_node *member)
{
	struct span after = blanks_before(text, member->start);
	size_t colon = (size_t)(after.bytes - text) - 1;
	struct span before = blanks_before(text, colon);

	return (struct span){ before.bytes, before.length + 1 + after.length };
}

static void put_name(const struct writer *writer, const struct graft_json_node *member)
{
	const struct graft_json_node *sibling;

	if (member->placed) {
		put_json_span(writer,
			      (struct span){ writer->text + member->name_start, member->start - member->name_start });
		return;
	}
	graft_json_quote(writer->out, member->name);
	sibling = find_placed(member->parent);
	put_json_span(writer, sibling ? colon_of(writer->text, sibling) : writer->colon);
}

/* The white space between a value and the comma that follows. */
static struct span trail(const struct writer *writer, const struct graft_json_node *child)
{
	struct span blanks;

	if (!child->placed)
		return nothing;
	blanks = blanks_after(writer->text, child->end);
	return blanks.bytes[blanks.length] == ',' ? blanks : nothing;
}

static void put_value(const struct writer *writer, const struct graft_json_node *node,
		      const struct graft_json_node *model, struct indent indent, bool multiline);

static void put_child(const struct writer *writer, const struct graft_json_node *child,
		      const struct graft_json_node *model, const struct style *style, struct indent indent)
{
	bool first = child == child->parent->first;
	struct span lead = first ? style->first : style->other;

	if (!first)
		graft_buffer_char(writer->out, ',');
	if (style->sampled) {
		if (!first && child->placed)
			(void)find_lead(writer, child, &lead);
		put_json_span(writer, lead);
	} else if (style->multiline) {
		put_line(writer, indent);
	} else {
		put_json_span(writer, lead);
	}
	if (child->parent->kind == GRAFT_JSON_OBJECT)
		put_name(writer, child);
	put_value(writer, child, find_model(writer, child, model), indent, style->multiline);
	put_json_span(writer, trail(writer, child));
}

/*
 * The depth of the tree bounds the recursion. `indent` is that of the line on which the container
 * begins.
 */
static void put_children(const struct writer *writer, const struct graft_json_node *node,
			 const struct graft_json_node *model, struct indent indent, bool multiline)
{
	struct style style = choose_style(writer, node, model, multiline);
	struct indent inner = indent;

	if (style.multiline && style.sampled)
		inner = (struct indent){ last_line(style.first), 0 };
	else if (style.multiline)
		inner.extra++;
	for (const struct graft_json_node *child = node->first; child; child = child->next)
		put_child(writer, child, model, &style, inner);
	if (node->first && style.multiline && !style.sampled)
		put_line(writer, indent);
	else if (node->first)
		put_json_span(writer, style.close);
}

static void put_value(const struct writer *writer, const struct graft_json_node *node,
		      const struct graft_json_node *model, struct indent indent, bool multiline)
{
	bool object = node->kind == GRAFT_JSON_OBJECT;

	if (!node->fresh && !node->dirty) {
		put_json_span(writer, (struct span){ writer->text + node->start, node->end - node->start });
	} else if (json_is_container(node)) {
		graft_buffer_char(writer->out, object ? '{' : '[');
		put_children(writer, node, model, indent, multiline);
		graft_buffer_char(writer->out, object ? '}' : ']');
	} else if (node->kind == GRAFT_JSON_STRING) {
		graft_json_quote(writer->out, node->text);
	} else {
		graft_buffer_string(writer->out, node->text);
	}
}

/* Derives the style of the whole text from its root. */
static void find_json_style(struct writer *writer, const struct graft_json_node *root)
{
	const struct graft_json_node *member = root->kind == GRAFT_JSON_OBJECT ? find_placed(root) : NULL;
	struct style style;
	struct span closing;

	writer->newline = (struct span){ "\n", 1 };
	writer->unit = (struct span){ "  ", 2 };
	writer->gap = nothing;
	writer->colon = (struct span){ ":", 1 };
	if (!has_sample(writer, root))
		return;
	style = sample(writer, root);
	if (style.multiline) {
		closing = last_line(style.close);
		writer->unit = last_line(style.first);
		if (closing.length < writer->unit.length) {
			writer->unit.bytes += closing.length;
			writer->unit.length -= closing.length;
		}
		if (memchr(style.first.bytes, '\r', style.first.length))
			writer->newline = (struct span){ "\r\n", 2 };
	}
	if (member)
		writer->colon = colon_of(writer->text, member);
	else if (style.multiline)
		writer->colon = (struct span){ ": ", 2 };
	if (writer->colon.bytes[writer->colon.length - 1] == ' ')
		writer->gap = (struct span){ " ", 1 };
}

int graft_json_document_write(const struct graft_json_document *document, struct graft_buffer *out,
			      struct graft_error *err)
{
	const struct graft_json_node *root = document->top.first;
	struct writer writer = { .text = document->text, .out = out };

	if (!document->changed) {
		graft_buffer_add(out, document->text, document->length);
	} else {
		find_json_style(&writer, root);
		graft_buffer_add(out, document->text, root->start);
		put_value(&writer, root, NULL,
			  (struct indent){ last_line(blanks_before(document->text, root->start)), 0 }, false);
		graft_buffer_add(out, document->text + root->end, document->length - root->end);
	}
	return graft_buffer_failed(out) ? graft_fail_memory(err) : 0;
}
