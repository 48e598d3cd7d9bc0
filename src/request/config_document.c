/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_document: generates texts from the table of keys and from a configuration: the
 * tables of docs/config.md, the man page, and the document that `config default` prints.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "request/config.h"

static const void *config_value(const struct graft_config *config, const struct graft_config_key *key)
{
	return (const char *)config + key->offset;
}

/* ---- docs/config.md ---- */

static void document_default(const struct graft_config_key *key, struct graft_buffer *out)
{
	if (!key->standard) {
		graft_buffer_string(out, "unset");
	} else if (key->kind == GRAFT_CONFIG_BOOL) {
		graft_buffer_printf(out, "`%s`", key->standard[0]);
	} else if (key->kind == GRAFT_CONFIG_STRING) {
		graft_buffer_printf(out, "`\"%s\"`", key->standard[0]);
	} else {
		graft_buffer_string(out, "`[");
		for (size_t i = 0; key->standard[i]; i++)
			graft_buffer_printf(out, "%s\"%s\"", i == 0 ? "" : ", ", key->standard[i]);
		graft_buffer_string(out, "]`");
	}
}

void graft_config_document(struct graft_buffer *out)
{
	static const char *const kinds[] = { "bool", "string", "list of strings" };
	const char *section = NULL;
	size_t section_length = 0;

	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const struct graft_config_key *key = &graft_config_keys[i];
		const char *dot = strrchr(key->name, '.');
		size_t length = dot ? (size_t)(dot - key->name) : 0;

		if (!section || length != section_length || strncmp(section, key->name, length) != 0) {
			graft_buffer_printf(out, "%s### %s%.*s%s\n\n", section ? "\n" : "", length ? "`[" : "",
					    length ? (int)length : 9, length ? key->name : "Top level",
					    length ? "]`" : "");
			graft_buffer_string(out, "| key | type | default | meaning |\n|---|---|---|---|\n");
		}
		section = key->name;
		section_length = length;
		graft_buffer_printf(out, "| `%s` | %s | ", dot ? dot + 1 : key->name, kinds[key->kind]);
		document_default(key, out);
		graft_buffer_printf(out, " | %s |\n", key->doc);
	}
}

/* ---- man page ---- */

/* Leaves out what the man page lacks: Markdown's code marks, and " ([page.md](page.md))". */
static void manual_text(struct graft_buffer *out, const char *text)
{
	for (char part[2] = { 0 }; *text != '\0'; text++) {
		const char *link_end = strncmp(text, " ([", 3) == 0 ? strstr(text, "))") : NULL;

		if (link_end)
			text = link_end + 1;
		part[0] = *text;
		if (!link_end && *text != '`')
			graft_manual_escape(out, part);
	}
}

static void manual_key(const struct graft_config_key *key, struct graft_buffer *out)
{
	static const char *const kinds[] = { "true or false", "string", "list of strings" };
	struct graft_buffer standard = { .max = 0 };

	graft_buffer_char(out, '*');
	graft_manual_escape(out, key->name);
	graft_buffer_printf(out, "* (%s; default: ", kinds[key->kind]);
	document_default(key, &standard);
	out->failed = out->failed || graft_buffer_failed(&standard);
	manual_text(out, graft_buffer_text(&standard));
	graft_buffer_done(&standard);
	graft_buffer_string(out, ")\n\t");
	manual_text(out, key->doc);
	graft_buffer_string(out, "\n\n");
}

void graft_config_manual(struct graft_buffer *out)
{
	static const char top[] =
	    "nvidia-container-runtime-config(5)\n\n# NAME\n\nnvidia-container-runtime-config - settings of the NVIDIA "
	    "container runtime, its hook and nvidia-ctk\n\n# "
	    "DESCRIPTION\n\n_/etc/nvidia-container-runtime/config.toml_ is a TOML document. "
	    "*NVIDIA\\_CTK\\_CONFIG\\_FILE\\_PATH* names another one; without it, "
	    "_$XDG\\_CONFIG\\_HOME/nvidia-container-runtime/config.toml_ is preferred if that variable is set. If the "
	    "file does not exist, the defaults apply. Keys that are not listed here are ignored, with a warning in the "
	    "logs; a value of a wrong "
	    "type is an error with line and column.\n\n*nvidia-ctk config default* prints a document with all "
	    "defaults, *nvidia-ctk config --set* changes one and keeps comments and order.\n\n# KEYS\n\n";

	graft_buffer_string(out, top);
	for (size_t i = 0; i < graft_config_n_keys; i++)
		manual_key(&graft_config_keys[i], out);
	graft_buffer_string(
	    out,
	    "# EXAMPLES\n\nLog what the runtime decides:\n\n\t\\[nvidia-container-runtime\\]++\n"
	    "debug = \"/var/log/nvidia-container-runtime.log\"++\nlog-level = \"debug\"\n\n"
	    "# SEE ALSO\n\n*nvidia-container-runtime*(8), *nvidia-container-runtime-hook*(8), *nvidia-cdi-hook*(8), "
	    "*nvidia-container-cli*(1), *nvidia-ctk*(1), *nvidia-ctk-installer*(8), "
	    "*nvidia-nri-plugin*(8)\n");
}

/* ---- config.toml ---- */

/*
 * Returns where the name of the table ends in the name of a key: at its last dot; 0 for the keys of
 * the root.
 */
static size_t table_length(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? (size_t)(dot - name) : 0;
}

/*
 * Compares names of tables. Dots sort before all other characters, so a table comes before its
 * subtables, and those before the next table.
 */
static int compare_tables(const char *a, size_t a_length, const char *b, size_t b_length)
{
	for (size_t i = 0; i < a_length && i < b_length; i++) {
		int left = a[i] == '.' ? 0 : (unsigned char)a[i], right = b[i] == '.' ? 0 : (unsigned char)b[i];

		if (left != right)
			return left - right;
	}
	return (a_length > b_length) - (a_length < b_length);
}

static int compare_config_keys(const void *a, const void *b)
{
	const struct graft_config_key *left = *(const struct graft_config_key *const *)a;
	const struct graft_config_key *right = *(const struct graft_config_key *const *)b;
	size_t left_length = table_length(left->name), right_length = table_length(right->name);
	int order = compare_tables(left->name, left_length, right->name, right_length);

	return order != 0 ? order : strcmp(left->name + left_length, right->name + right_length);
}

/* Appends [a.b] for each table on the path to this key that the previous key was not in. */
static void add_headers(struct graft_buffer *out, const char *previous, const char *name)
{
	size_t length = table_length(name);

	for (size_t i = 1; i <= length; i++) {
		if (name[i] == '.' && !(previous && strncmp(previous, name, i) == 0 && previous[i] == '.'))
			graft_buffer_printf(out, "\n[%.*s]\n", (int)i, name);
	}
}

static void add_config_value(struct graft_buffer *out, const struct graft_config_key *key, const void *value)
{
	const struct graft_strings *strings = value;

	switch (key->kind) {
	case GRAFT_CONFIG_BOOL:
		graft_buffer_string(out, *(const bool *)value ? "true" : "false");
		break;
	case GRAFT_CONFIG_STRING:
		graft_toml_quote(out, *(const char *const *)value);
		break;
	case GRAFT_CONFIG_STRINGS:
		graft_buffer_char(out, '[');
		for (size_t i = 0; i < strings->n; i++) {
			graft_buffer_string(out, i == 0 ? "" : ", ");
			graft_toml_quote(out, strings->items[i]);
		}
		graft_buffer_char(out, ']');
		break;
	}
}

/*
 * SPEC ctk-and-cdi 1.4: a value that the host adds to the defaults is written out, not shown as a
 * sample.
 */
static bool is_from_host(const struct graft_config_key *key, const struct graft_config *config)
{
	return config_value(config, key) == &config->cli.user && config->cli.user[0] != '\0';
}

int graft_config_default_document(const struct graft_config_host *host, struct graft_arena *arena,
				  struct graft_buffer *out, struct graft_error *err)
{
	const struct graft_config_key **keys = graft_arena_list(arena, graft_config_n_keys, sizeof(*keys));
	const char *previous = NULL;
	struct graft_config config;

	if (!keys || graft_config_defaults(host, arena, &config, err) < 0)
		return graft_fail_memory(err);
	for (size_t i = 0; i < graft_config_n_keys; i++)
		keys[i] = &graft_config_keys[i];
	qsort(keys, graft_config_n_keys, sizeof(*keys), compare_config_keys);
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const struct graft_config_key *key = keys[i];
		const char *dot = strrchr(key->name, '.');

		if (key->omitted || !key->standard)
			continue;
		add_headers(out, previous, key->name);
		previous = key->name;
		if (key->sample && !is_from_host(key, &config)) {
			graft_config_sample_line(key, out);
		} else {
			graft_buffer_printf(out, "%s = ", dot ? dot + 1 : key->name);
			add_config_value(out, key, config_value(&config, key));
		}
		graft_buffer_char(out, '\n');
	}
	return graft_buffer_failed(out) ? graft_fail_memory(err) : 0;
}

void graft_config_sample_line(const struct graft_config_key *key, struct graft_buffer *out)
{
	const char *dot = strrchr(key->name, '.');

	graft_buffer_printf(out, "#%s = %s", dot ? dot + 1 : key->name, key->sample);
}
