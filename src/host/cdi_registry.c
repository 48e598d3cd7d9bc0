/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_registry: reads specs from directories and resolves names to devices. It keeps what it could
 * not use, so that an error can explain why a device is missing.
 */
#include "host/cdi_registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/strings.h"

#define FILE_MAX       ((size_t)16 * 1024 * 1024)
#define NAMES_IN_ERROR 400u /* bytes of a list of names */

struct scan {
	struct graft_cdi_registry *registry;
	const char *const *kinds;
	size_t n_kinds, priority;
	struct graft_budget *budget; /* may be NULL */
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_arena *scratch; /* holds the contents of files */
};

/* --- reading --- */

/* SPEC ctk-and-cdi 5.4: exactly these two extensions, in lower case. */
static bool is_spec_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".yaml") == 0);
}

int graft_cdi_directory_list(const char *directory, struct graft_arena *arena, const char ***ret_names, size_t *ret_n,
			     struct graft_error *err)
{
	auto_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir)
		return graft_fail_errno(err, errno, "failed to read CDI directory: %s", directory);
	(void)TAKE_FD(fd);
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		if (is_spec_name(entry->d_name) && entry->d_type != DT_DIR)
			(void)graft_arena_push_string(arena, ret_names, ret_n, entry->d_name);
	}
	if (errno != 0)
		return graft_fail_errno(err, errno, "failed to read CDI directory: %s", directory);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (*ret_n > 0)
		qsort(*ret_names, *ret_n, sizeof(**ret_names), graft_compare_strings);
	return 0;
}

static void add_registry_problem(struct graft_cdi_registry *registry, struct graft_arena *arena, const char *file,
				 const char *why)
{
	struct graft_cdi_problem *problem = graft_arena_push(arena, &registry->problems, &registry->n_problems,
							     sizeof(*problem));

	if (!problem)
		return;
	problem->file = graft_arena_strdup(arena, file);
	problem->why = graft_arena_strdup(arena, why);
}

/*
 * Returns whether a text can define a device of a requested kind. A kind appears in it literally or
 * spelled with escapes, which need a backslash, so a text with neither defines only other kinds and
 * need not be parsed.
 */
static bool may_speak_of(const struct scan *scan, const char *text, size_t length)
{
	if (scan->n_kinds == 0 || memchr(text, '\\', length))
		return true;
	for (size_t i = 0; i < scan->n_kinds; i++) {
		if (memmem(text, length, scan->kinds[i], strlen(scan->kinds[i])))
			return true;
	}
	return false;
}

int graft_cdi_registry_add(struct graft_cdi_registry *registry, const struct graft_cdi_spec *spec, size_t priority,
			   struct graft_arena *arena, struct graft_error *err)
{
	size_t n = registry->n_specs;
	struct graft_cdi_spec *slot = graft_arena_push(arena, &registry->specs, &registry->n_specs, sizeof(*slot));
	size_t *priority_slot = graft_arena_push(arena, &registry->priorities, &n, sizeof(*priority_slot));

	if (!slot || !priority_slot)
		return graft_fail_memory(err);
	*slot = *spec;
	*priority_slot = priority;
	return 0;
}

int graft_cdi_file_read(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
			struct graft_error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return graft_fail_errno(err, errno, "failed to open CDI spec: %s", path);
	rc = graft_read_fd(fd, FILE_MAX, arena, ret_text, ret_length);
	return rc < 0 ? graft_fail_errno(err, -rc, "failed to read CDI spec: %s", path) : 0;
}

int graft_cdi_input_read(const char *path, struct graft_arena *arena, const char **ret_text, size_t *ret_length,
			 struct graft_error *err)
{
	int rc = graft_read_input(path, FILE_MAX, arena, ret_text, ret_length);

	if (rc == -ENOENT)
		return graft_fail_errno(err, -rc, "failed to open CDI spec: %s", path);
	return rc < 0 ? graft_fail_errno(err, -rc, "failed to read CDI spec: %s", graft_input_name(path)) : 0;
}

/* Reads one file. An invalid file is recorded as a problem and does not affect the others. */
static int read_registry_spec(struct scan *scan, const char *directory, const char *name, struct graft_error *err)
{
	const char *path = graft_arena_printf(scan->arena, "%s/%s", directory, name);
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_cdi_spec spec;
	char text[sizeof(why.msg) + sizeof(why.ctx)];
	const char *bytes;
	size_t length;

	if (!path)
		return graft_fail_memory(err);
	if (scan->budget && graft_budget_is_spent(scan->budget))
		return graft_fail(err, GRAFT_TOO_BIG, 0, "reading the CDI specs takes too long: %s", path);
	if (graft_cdi_file_read(path, scan->scratch, &bytes, &length, &why) == 0) {
		if (!may_speak_of(scan, bytes, length)) {
			scan->registry->n_passed_over++;
			graft_debug(scan->log, "skipping CDI spec %s: it does not mention the requested devices", path);
			return 0;
		}
		if (graft_cdi_spec_read(path, bytes, length, scan->arena, &spec, &why) == 0) {
			graft_debug(scan->log, "read CDI spec %s: %s/%s, %zu devices", path, spec.vendor, spec.class_,
				    spec.n_devices);
			return graft_cdi_registry_add(scan->registry, &spec, scan->priority, scan->arena, err);
		}
	}
	if (why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	graft_warn(scan->log, "skipping CDI spec: %s", graft_error_text(&why, text, sizeof(text)));
	add_registry_problem(scan->registry, scan->arena, path, graft_error_text(&why, text, sizeof(text)));
	return graft_arena_failed(scan->arena) ? graft_fail_memory(err) : 0;
}

static int read_directory(struct scan *scan, const char *directory, struct graft_error *err)
{
	struct graft_error local = { .status = GRAFT_OK };
	const char **names = NULL;
	size_t n = 0;
	int rc;

	err = err ? err : &local;
	scan->scratch = graft_arena_new(SIZE_MAX / 2);
	if (!scan->scratch)
		return graft_fail_memory(err);
	rc = graft_cdi_directory_list(directory, scan->scratch, &names, &n, err);
	if (rc < 0 && err->sys == ENOENT) {
		graft_debug(scan->log, "no CDI directory %s", directory);
		graft_error_clear(err);
		rc = 0;
	}
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = read_registry_spec(scan, directory, names[i], err);
	scan->scratch = graft_arena_free(scan->scratch);
	return rc;
}

int graft_cdi_registry_read(const char *const *directories, size_t n_directories, const char *const *kinds,
			    size_t n_kinds, struct graft_budget *budget, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_cdi_registry *ret_registry, struct graft_error *err)
{
	struct scan scan = { .registry = ret_registry,
			     .kinds = kinds,
			     .n_kinds = n_kinds,
			     .budget = budget,
			     .log = log,
			     .arena = arena };

	*ret_registry = (struct graft_cdi_registry){ .n_specs = 0 };
	for (scan.priority = 0; scan.priority < n_directories; scan.priority++) {
		if (read_directory(&scan, directories[scan.priority], err) < 0)
			return -1;
	}
	return 0;
}

/* --- resolving --- */

static const struct graft_cdi_device *find_spec_device(const struct graft_cdi_spec *spec,
						       const struct graft_cdi_name *name)
{
	if (strcmp(spec->vendor, name->vendor) != 0 || strcmp(spec->class_, name->class_) != 0)
		return NULL;
	for (size_t i = 0; i < spec->n_devices; i++) {
		if (strcmp(spec->devices[i].name, name->device) == 0)
			return &spec->devices[i];
	}
	return NULL;
}

static void note_conflict(struct graft_cdi_registry *registry, struct graft_arena *arena, const char *name,
			  const char *file, const char *other)
{
	const char *why = graft_arena_printf(arena, "conflicting device \"%s\" (specs \"%s\", \"%s\")", name, file,
					     other);

	if (!why)
		return;
	add_registry_problem(registry, arena, file, why);
	add_registry_problem(registry, arena, other, why);
}

/* Finds the definition that applies, starting with the highest priority. */
static struct graft_cdi_choice find_choice(struct graft_cdi_registry *registry, const char *text,
					   const struct graft_cdi_name *name, struct graft_arena *arena)
{
	struct graft_cdi_choice found = { NULL, NULL };
	size_t priority = 0;

	for (size_t i = registry->n_specs; i-- > 0 && (!found.spec || registry->priorities[i] == priority);) {
		const struct graft_cdi_spec *spec = &registry->specs[i];
		const struct graft_cdi_device *device = find_spec_device(spec, name);

		if (!device)
			continue;
		if (found.spec) {
			note_conflict(registry, arena, text, spec->file, found.spec->file);
			return (struct graft_cdi_choice){ NULL, NULL };
		}
		found = (struct graft_cdi_choice){ spec, device };
		priority = registry->priorities[i];
	}
	return found;
}

static int choose_definition(struct graft_cdi_choice **choices, size_t *n, const struct graft_cdi_choice *choice,
			     struct graft_arena *arena, struct graft_error *err)
{
	struct graft_cdi_choice *slot;

	for (size_t i = 0; i < *n; i++) {
		if ((*choices)[i].spec == choice->spec && (*choices)[i].device == choice->device)
			return 0;
	}
	slot = graft_arena_push(arena, choices, n, sizeof(*slot));
	if (!slot)
		return graft_fail_memory(err);
	*slot = *choice;
	return 0;
}

/*
 * Adds everything that a name stands for; if the name cannot be resolved, adds it to `unknown`
 * instead.
 */
static int resolve_one(struct graft_cdi_registry *registry, const char *text, struct graft_arena *arena,
		       struct graft_cdi_choice **choices, size_t *n, struct graft_buffer *unknown,
		       struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_cdi_choice choice = { NULL, NULL }, common;
	struct graft_cdi_name name;

	if (graft_cdi_parse_name(text, arena, &name, &why) == 0)
		choice = find_choice(registry, text, &name, arena);
	else if (why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	if (!choice.spec) {
		graft_buffer_printf(unknown, "%s%s", unknown->length > 0 ? ", " : "", text);
		return 0;
	}
	common = (struct graft_cdi_choice){ choice.spec, NULL };
	if (choose_definition(choices, n, &common, arena, err) < 0)
		return -1;
	return choose_definition(choices, n, &choice, arena, err);
}

int graft_cdi_registry_resolve(struct graft_cdi_registry *registry, const char *const *names, size_t n_names,
			       struct graft_arena *arena, struct graft_cdi_choice **ret_choices, size_t *ret_n,
			       struct graft_error *err)
{
	struct graft_buffer unknown = { .max = 0 };
	int rc = 0;

	*ret_choices = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < n_names && rc == 0; i++)
		rc = resolve_one(registry, names[i], arena, ret_choices, ret_n, &unknown, err);
	if (rc == 0 && (graft_buffer_failed(&unknown) || graft_arena_failed(arena)))
		rc = graft_fail_memory(err);
	else if (rc == 0 && unknown.length > 0)
		rc = graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "unresolvable CDI devices %.*s", (int)NAMES_IN_ERROR,
				graft_buffer_text(&unknown));
	graft_buffer_done(&unknown);
	return rc;
}
