/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_file: reads and writes specs, and formats the options they record. */
#include "cli/ctk/cdi_file.h"

#include <string.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "apply/temporary.h"
#include "base/read.h"
#include "base/strings.h"
#include "host/cdi_registry.h"

#define SPEC_MODE 0644

int ctk_cdi_read(struct ctk *ctk, const char *path, struct graft_cdi_spec *ret_spec, struct graft_error *err)
{
	const char *text;
	size_t length;

	if (graft_cdi_input_read(path, ctk->arena, &text, &length, err) < 0)
		return -1;
	return graft_cdi_spec_read(graft_input_name(path), text, length, ctk->arena, ret_spec, err);
}

static bool is_option(const char *word, const char *name)
{
	size_t length = strlen(name);

	return strncmp(word, name, length) == 0 && (word[length] == '=' || word[length] == '\0');
}

static bool is_kept_generate_option(const char *word)
{
	return graft_starts_with(word, "--") && word[2] != '\0' && !is_option(word, "--output") &&
	       !is_option(word, "--format");
}

/* Sorts by option name only: the order of several options of one name matters and is kept. */
static bool sorts_generate_option_before(const char *a, const char *b)
{
	size_t length_a = strcspn(a, "="), length_b = strcspn(b, "=");
	int order = strncmp(a, b, length_a < length_b ? length_a : length_b);

	return order != 0 ? order < 0 : length_a < length_b;
}

const char *ctk_cdi_flags_text(struct ctk *ctk, const char *const *words, size_t n)
{
	const char **kept = graft_arena_list(ctk->arena, n + 1, sizeof(*kept));
	size_t n_kept = 0;

	if (!kept)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t at = n_kept;

		if (!is_kept_generate_option(words[i]))
			continue;
		for (; at > 0 && sorts_generate_option_before(words[i], kept[at - 1]); at--)
			kept[at] = kept[at - 1];
		kept[at] = words[i];
		n_kept++;
	}
	if (ctk->config && ctk->config[0] != '\0')
		kept[n_kept++] = graft_arena_printf(ctk->arena, "--config=%s", ctk->config);
	return graft_arena_failed(ctk->arena) ? NULL : graft_cdi_flags_write(kept, n_kept, ctk->arena);
}

int ctk_cdi_write_file(const struct ctk *ctk, const char *path, const struct graft_buffer *text,
		       struct graft_error *err)
{
	if (ctk->sink)
		return ctk->sink->write(ctk->sink->arg, path, text->bytes, text->length, err);
	return graft_host_file_write(path, text->bytes, text->length, SPEC_MODE, err);
}

static int write_cdi_text(const struct ctk *ctk, const char *path, const struct graft_buffer *text,
			  struct graft_error *err)
{
	int rc;

	if (path)
		return ctk_cdi_write_file(ctk, path, text, err);
	rc = graft_write_all(STDOUT_FILENO, text->bytes, text->length);
	return rc < 0 ? graft_fail_errno(err, -rc, "write failed: standard output") : 0;
}

int ctk_cdi_save(struct ctk *ctk, const struct graft_cdi_spec *spec, const char *path, struct graft_error *err)
{
	bool json = path && graft_ends_with(path, ".json");
	auto_buffer struct graft_buffer text = { .max = 0 };

	if (path && path[0] == '\0')
		path = NULL;
	if (path && !json && !graft_ends_with(path, ".yaml")) {
		path = graft_arena_printf(ctk->arena, "%s.yaml", path);
		if (!path)
			return graft_fail_memory(err);
	}
	if (graft_cdi_spec_write(spec, json ? GRAFT_CDI_JSON : GRAFT_CDI_YAML, &text, err) < 0)
		return -1;
	return write_cdi_text(ctk, path, &text, err);
}
