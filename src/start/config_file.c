/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_file: finds and reads config.toml, and detects what this host adds to the defaults. The
 * meaning of the keys is left to request/config.h.
 */
#include "start/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "start/installed.h"

#define OS_RELEASE_MAX_BYTES ((size_t)1 << 16)

static const char *config_variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && value[0] != '\0' ? value : NULL;
}

const char *graft_config_file_path(enum graft_config_program program, const char *flag_path, struct graft_arena *arena,
				   bool *ret_required)
{
	const char *named = config_variable("NVIDIA_CTK_CONFIG_FILE_PATH"), *home = config_variable("XDG_CONFIG_HOME");
	const char *own = graft_own_config(arena);

	if (graft_arena_failed(arena))
		return NULL;
	if (own)
		named = own;
	if (flag_path && flag_path[0] != '\0')
		named = flag_path;
	*ret_required = program == GRAFT_CONFIG_OF_HOOK && named;
	if (named)
		return named;
	if (home)
		return graft_arena_printf(arena, "%s/nvidia-container-runtime/config.toml", home);
	return GRAFT_CONFIG_DEFAULT_FILE;
}

/* ---- the host ---- */

/*
 * SPEC runtime-and-hook 2.6: whether the value of ID_LIKE=, with or without double quotes, contains
 * the word suse or opensuse.
 */
static bool is_like_suse(const char *value, size_t length)
{
	while (length > 0 && value[0] == '"') {
		value++;
		length--;
	}
	while (length > 0 && value[length - 1] == '"')
		length--;
	for (const char *end = value + length; value < end;) {
		const char *space = memchr(value, ' ', (size_t)(end - value));
		size_t n = (size_t)((space ? space : end) - value);

		if ((n == 4 && memcmp(value, "suse", n) == 0) || (n == 8 && memcmp(value, "opensuse", n) == 0))
			return true;
		value += n + 1;
	}
	return false;
}

static bool detect_suse(const struct graft_root *root, struct graft_arena *arena)
{
	static const char name[] = "ID_LIKE=";
	const char *text = NULL;
	size_t length = 0;

	if (graft_root_read(root, "/etc/os-release", OS_RELEASE_MAX_BYTES, arena, &text, &length) < 0)
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += line[0] == '\n';
		if (strncmp(line, name, sizeof(name) - 1) == 0)
			return is_like_suse(line + sizeof(name) - 1, strcspn(line, "\n") - (sizeof(name) - 1));
	}
	return false;
}

const char *graft_config_file_ldconfig(const struct graft_root *root, const char *value, struct graft_arena *arena)
{
	static const char real[] = ".real";
	size_t length = strlen(value);
	struct stat st;
	char *path;

	if (value[0] != '@')
		return value;
	if (length >= sizeof(real) - 1 && strcmp(value + length - (sizeof(real) - 1), real) == 0)
		length -= sizeof(real) - 1;
	path = graft_arena_printf(arena, "%.*s%s", (int)length, value, real);
	if (path && graft_root_stat(root, path + 1, &st) < 0)
		path[length] = '\0';
	return path;
}

void graft_config_file_host(const struct graft_root *root, struct graft_arena *arena,
			    struct graft_config_host *ret_host)
{
	ret_host->suse = detect_suse(root, arena);
	ret_host->ldconfig = graft_config_file_ldconfig(root, "@/sbin/ldconfig", arena);
}

/* ---- the file ---- */

static int read_regular(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : graft_read_fd(fd, GRAFT_CONFIG_MAX_BYTES, arena, ret_text, ret_length);
}

static int read_config_text(const char *path, bool by_user, struct graft_arena *arena, const char **ret_text,
			    size_t *ret_length, struct graft_error *err)
{
	int rc = by_user ? graft_read_input(path, GRAFT_CONFIG_MAX_BYTES, arena, ret_text, ret_length)
			 : read_regular(path, arena, ret_text, ret_length);

	path = by_user ? graft_input_name(path) : path;
	if (rc == -EINVAL || rc == -EISDIR)
		return graft_fail(err, GRAFT_INVALID, 0, "open failed: %s: not a regular file", path);
	if (rc == -EFBIG)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "read failed: %s: over %zu bytes", path,
				  GRAFT_CONFIG_MAX_BYTES);
	return rc < 0 ? graft_fail_errno(err, -rc, "open failed: %s", path) : 0;
}

int graft_config_file_read(const char *path, bool by_user, struct graft_arena *arena, struct graft_toml **ret_toml,
			   struct graft_error *err)
{
	const char *text = NULL;
	size_t length = 0;

	if (read_config_text(path, by_user, arena, &text, &length, err) < 0)
		return -1;
	return graft_toml_parse(by_user ? graft_input_name(path) : path, text, length, ret_toml, err);
}

static int parse_file(const char *path, bool by_user, const struct graft_config_host *host, struct graft_arena *arena,
		      struct graft_config *ret_config, struct graft_error *err)
{
	auto_toml struct graft_toml *toml = NULL;

	if (graft_config_file_read(path, by_user, arena, &toml, err) < 0)
		return -1;
	return graft_config_read(toml, host, arena, ret_config, err);
}

static int fail_load(enum graft_config_program program, bool missing, struct graft_error *err)
{
	if (program == GRAFT_CONFIG_OF_RUNTIME)
		return graft_wrap(err, "error loading config: failed to load specified config file");
	if (missing)
		return graft_wrap(err, "error getting hook config: couldn't open required configuration file");
	return graft_wrap(err, "error getting hook config: failed to load config");
}

int graft_config_file_load(enum graft_config_program program, const char *flag_path, struct graft_arena *arena,
			   struct graft_config *ret_config, struct graft_error *err)
{
	struct graft_config_host host = { 0 };
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	bool required = false, missing;
	const char *path = graft_config_file_path(program, flag_path, arena, &required);
	struct graft_error ignored = { .status = GRAFT_OK };

	err = err ? err : &ignored;
	if (!path)
		return graft_fail_memory(err);
	/*
	 * Only the hook uses these values. Without this check every `runc state` would pay for
	 * them.
	 */
	if (program == GRAFT_CONFIG_OF_HOOK && graft_root_open(&root, "/", NULL) == 0)
		graft_config_file_host(&root, arena, &host);
	if (parse_file(path, path == flag_path, &host, arena, ret_config, err) == 0)
		return 0;
	missing = err->sys == ENOENT;
	if (!missing || required)
		return fail_load(program, missing, err);
	graft_error_clear(err);
	return graft_config_defaults(&host, arena, ret_config, err);
}

void graft_config_file_warn(const struct graft_config *config, const struct graft_log *log)
{
	for (size_t i = 0; i < config->unknown.n; i++)
		graft_warn(log, "%s", config->unknown.items[i]);
}
