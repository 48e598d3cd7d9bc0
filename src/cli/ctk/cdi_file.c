/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_file: specs in and out. */
#include "cli/ctk/cdi_file.h"

#include <string.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "apply/temporary.h"
#include "base/root.h"
#include "host/cdi_registry.h"

#define SPEC_MODE 0644
#define INPUT_MAX ((size_t)16 * 1024 * 1024)

int ctk_cdi_read(struct ctk *ctk, const char *path, struct graft_cdi_spec *ret_spec, struct graft_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *text;
	size_t length;
	int rc;

	if (is_stdin) {
		rc = graft_read_fd(STDIN_FILENO, INPUT_MAX, ctk->arena, &text, &length);
		if (rc < 0)
			return graft_fail_errno(err, -rc, "failed to read CDI spec: standard input");
	} else if (graft_cdi_file_read(path, ctk->arena, &text, &length, err) < 0) {
		return -1;
	}
	return graft_cdi_spec_read(is_stdin ? "standard input" : path, text, length, ctk->arena, ret_spec, err);
}

static bool ends_in(const char *path, const char *ending)
{
	size_t length = strlen(path), n = strlen(ending);

	return length > n && strcmp(path + length - n, ending) == 0;
}

static int write_out(const char *path, const struct graft_buffer *text, struct graft_error *err)
{
	int rc;

	if (path)
		return graft_host_file_write(path, text->bytes, text->length, SPEC_MODE, err);
	rc = graft_write_all(STDOUT_FILENO, text->bytes, text->length);
	return rc < 0 ? graft_fail_errno(err, -rc, "write failed: standard output") : 0;
}

int ctk_cdi_save(struct ctk *ctk, const struct graft_cdi_spec *spec, const char *path, const char **ret_path,
		 struct graft_error *err)
{
	bool json = path && ends_in(path, ".json");
	struct graft_buffer text = { .max = 0 };
	const char *name = path;
	int rc;

	if (!path || path[0] == '\0')
		name = NULL;
	else if (!json && !ends_in(path, ".yaml"))
		name = graft_arena_printf(ctk->arena, "%s.yaml", path);
	if (graft_arena_failed(ctk->arena))
		return graft_fail_memory(err);
	rc = graft_cdi_spec_write(spec, json ? GRAFT_CDI_JSON : GRAFT_CDI_YAML, &text, err);
	if (rc == 0)
		rc = write_out(name, &text, err);
	graft_buffer_done(&text);
	if (rc == 0 && ret_path)
		*ret_path = name;
	return rc;
}
