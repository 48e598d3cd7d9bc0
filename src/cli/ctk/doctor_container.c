/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_container: nvidia-ctk doctor --container: has one container examined and judged
 * (doctor/container_case.h), and prints its case: the verdict, what to do, what it asked for and
 * what it has. Text from a container is made visible before it reaches a terminal.
 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/ctk/doctor.h"
#include "cli/terminal.h"
#include "doctor/container_case.h"

#define INDENT 9u
#define LIST   16u /* names shown from a list */

struct page {
	struct graft_buffer *out;
	bool colour;
	size_t width;
};

/* Appends a paragraph of text that may come from a container. */
static void add_paragraph(struct page *page, const char *text, size_t column, size_t indent)
{
	ctk_doctor_add_wrapped(page->out, text, column, indent, page->width);
}

static void add_remedy(struct page *page, const char *remedy)
{
	if (!remedy)
		return;
	graft_buffer_printf(page->out, "%*s->", (int)INDENT, "");
	add_paragraph(page, remedy, INDENT + 2, INDENT);
}

/* "broken   web (docker 3f2a1b0c9d8e): it never asked for a GPU" */
static void add_case_verdict(struct page *page, const struct graft_case *one)
{
	auto_buffer struct graft_buffer text = { .max = 0 };

	if (one->pod)
		graft_buffer_printf(&text, "%s/", one->pod);
	graft_buffer_printf(&text, "%s (%s%s%.12s%s): %s", one->name ? one->name : one->id,
			    one->engine == GRAFT_KEEPER_UNKNOWN ? "process" : graft_keeper_names[one->engine],
			    one->name || one->engine == GRAFT_KEEPER_UNKNOWN ? " " : "",
			    one->name || one->engine == GRAFT_KEEPER_UNKNOWN ? one->id : "",
			    one->pid == 0 ? ", not running" : "", one->summary);
	ctk_doctor_add_level(page->out, one->verdict, page->colour);
	page->out->failed |= graft_buffer_failed(&text);
	add_paragraph(page, graft_buffer_text(&text), INDENT, INDENT);
	add_remedy(page, one->remedy);
}

/* ---- what it asked for, and what it has ---- */

static void add_fact(struct page *page, const char *name, const char *text)
{
	graft_buffer_printf(page->out, "  %-*s", (int)INDENT - 2, name);
	add_paragraph(page, text, INDENT, INDENT);
}

static void append_list(struct graft_buffer *text, const char *const *items, size_t n)
{
	for (size_t i = 0; i < n && i < LIST; i++)
		graft_buffer_printf(text, "%s%s", text->length > 0 ? "; " : "", items[i]);
	if (n > LIST)
		graft_buffer_printf(text, "; and %zu others", n - LIST);
}

static void add_asked(struct page *page, const struct graft_case_request *asked)
{
	auto_buffer struct graft_buffer text = { .max = 0 };

	append_list(&text, asked->options, asked->n_options);
	append_list(&text, asked->variables, asked->n_variables);
	append_list(&text, asked->annotations, asked->n_annotations);
	append_list(&text, asked->mounts, asked->n_mounts);
	append_list(&text, asked->nodes, asked->n_nodes);
	append_list(&text, asked->hooks, asked->n_hooks);
	page->out->failed |= graft_buffer_failed(&text);
	add_fact(page, "asked",
		 text.length > 0 ? graft_buffer_text(&text)
		 : asked->known  ? "for nothing"
				 : "not known");
}

static void add_case_way(struct page *page, const struct graft_case *one)
{
	auto_buffer struct graft_buffer text = { .max = 0 };

	graft_buffer_string(&text, graft_case_way_names[one->way]);
	if (one->mode)
		graft_buffer_printf(&text, ", mode %s", one->mode);
	if (one->runtime)
		graft_buffer_printf(&text, "; runtime %s", one->runtime);
	page->out->failed |= graft_buffer_failed(&text);
	add_fact(page, "way", graft_buffer_text(&text));
}

static void append_node(struct graft_buffer *text, const struct graft_case_node *node)
{
	graft_buffer_printf(text, "%s%s", text->length > 0 ? "; " : "", node->path);
	if (!node->present)
		graft_buffer_string(text, " missing");
	else
		graft_buffer_printf(text, " %u:%u %s", node->major, node->minor,
				    graft_device_answer_names[node->answer]);
	if (node->gpu)
		graft_buffer_printf(text, " (%s)", node->gpu);
}

static void add_got(struct page *page, const struct graft_case *one)
{
	const struct graft_case_got *got = &one->got;
	auto_buffer struct graft_buffer text = { .max = 0 };

	for (size_t i = 0; i < got->n_nodes && i < LIST; i++)
		append_node(&text, &got->nodes[i]);
	if (got->n_nodes > LIST)
		graft_buffer_printf(&text, "; and %zu others", got->n_nodes - LIST);
	for (size_t i = 0; i < got->n_libraries; i++)
		graft_buffer_printf(&text, "%s%s", text.length > 0 ? "; " : "", got->libraries[i].path);
	page->out->failed |= graft_buffer_failed(&text);
	add_fact(page, "got",
		 text.length > 0 ? graft_buffer_text(&text)
		 : got->known    ? "no device node and no library of the driver"
				 : "not known");
	if (got->cgroup) {
		graft_buffer_done(&text);
		graft_buffer_printf(&text, "v%u %s", got->cgroup_version, got->cgroup);
		add_fact(page, "cgroup", graft_buffer_text(&text));
	}
	if (one->driver_version)
		add_fact(page, "driver", one->driver_version);
}

static void add_case(struct page *page, const struct graft_case *one)
{
	add_case_verdict(page, one);
	graft_buffer_char(page->out, '\n');
	add_asked(page, &one->asked);
	add_case_way(page, one);
	if (one->late_mounts)
		add_fact(page, "late", one->late_mounts);
	add_got(page, one);
	graft_buffer_char(page->out, '\n');
	for (size_t i = 0; i < one->n_findings; i++) {
		const struct graft_case_finding *finding = &one->findings[i];

		ctk_doctor_add_level(page->out, finding->level, page->colour);
		add_paragraph(page, finding->cause, INDENT, INDENT);
		if (finding->remedy != one->remedy)
			add_remedy(page, finding->remedy);
	}
}

int ctk_doctor_container(struct ctk *ctk, const char *word, bool json, const struct graft_health *health,
			 const struct graft_config *config)
{
	const struct graft_config_host host = { .suse = false };
	struct graft_case_options options = { .word = word, .health = health, .config = config };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };
	struct page page = { .out = &out, .colour = cli_has_colours(STDOUT_FILENO), .width = ctk_doctor_width() };
	struct graft_config defaults;
	struct graft_case one;

	if (!config->cli.root) {
		if (graft_config_defaults(&host, ctk->arena, &defaults, &err) < 0)
			return ctk_fail(ctk, &err, "%s", "");
		options.config = &defaults;
	}
	if (graft_case_collect(&options, ctk->arena, &one, &err) < 0 ||
	    graft_case_judge(health, ctk->arena, &one, &err) < 0)
		return ctk_fail(ctk, &err, "%s", "");
	if (json)
		graft_record_write(&graft_case_record, &one, &out);
	else
		add_case(&page, &one);
	return ctk_print(ctk, &out) == 0 ? ctk_doctor_status(one.verdict) : 1;
}
