/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey: opens the roots, and provides the functions with which the other files of this directory
 * read them. Decides where /proc and /dev are: a driver root that is a container's has its own, a
 * plain tree of driver files does not.
 */
#include "host/survey.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/strings.h"
#include "formats/procfs.h"

#define SCRATCH_MAX   ((size_t)48 << 20)
#define NAMES_MAX     65536
#define DEFAULT_CACHE "/etc/ld.so.cache"

/* Removes trailing slashes, so that a path can be appended; "/" is kept. */
static const char *clean_root(struct graft_arena *arena, const char *root)
{
	size_t length = root ? strlen(root) : 0;

	while (length > 0 && root[length - 1] == '/')
		length--;
	return length == 0 ? graft_arena_strdup(arena, "/") : graft_arena_strndup(arena, root, length);
}

static bool same_directory(const struct graft_root *a, const struct graft_root *b)
{
	struct stat sa, sb;

	return fstat(a->fd, &sa) == 0 && fstat(b->fd, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int open_survey_roots(struct graft_survey *survey, const char *host_root, struct graft_error *err)
{
	const char *root = survey->inventory->root;

	if (graft_root_open(&survey->root, root, err) < 0)
		return -1;
	if (strcmp(root, host_root) == 0)
		return 0;
	if (graft_root_open(&survey->host, host_root, err) < 0)
		return -1;
	if (same_directory(&survey->root, &survey->host))
		graft_root_close(&survey->host);
	return 0;
}

static void choose_proc(struct graft_survey *survey, const char *host_root)
{
	struct graft_inventory *inventory = survey->inventory;
	bool has_host = survey->host.fd >= 0;
	bool in_root = graft_root_has(&survey->root, GRAFT_PROC_DRIVER, O_DIRECTORY);

	inventory->proc_driver_nvidia = has_host ? graft_root_has(&survey->host, GRAFT_PROC_DRIVER, O_DIRECTORY)
						 : in_root;
	survey->proc = in_root || !has_host ? &survey->root : &survey->host;
	inventory->proc_root = survey->proc == &survey->root ? inventory->root : host_root;
}

/* Looks for nodes that exist only with a driver, one or more per platform. */
static bool has_driver_node(int dev_fd)
{
	static const char *const names[] = { "nvidiactl", "dxg", "nvmap", "nvhost-ctrl" };
	struct stat st;

	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		if (fstatat(dev_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

static void choose_dev(struct graft_survey *survey, const char *host_root)
{
	auto_close int own_fd = graft_root_openat(&survey->root, "/dev", O_PATH | O_DIRECTORY);
	auto_close int host_fd = -1;

	graft_note_shortage(&survey->shortage, own_fd);
	survey->dev = &survey->root;
	survey->inventory->dev_root = survey->inventory->root;
	if (survey->host.fd >= 0 && (own_fd < 0 || !has_driver_node(own_fd))) {
		host_fd = graft_root_openat(&survey->host, "/dev", O_PATH | O_DIRECTORY);
		if (host_fd >= 0 && (own_fd < 0 || has_driver_node(host_fd))) {
			survey->dev = &survey->host;
			survey->inventory->dev_root = host_root;
			survey->dev_fd = TAKE_FD(host_fd);
			return;
		}
	}
	survey->dev_fd = own_fd >= 0 ? TAKE_FD(own_fd) : -1;
}

/* SPEC ctk-and-cdi 1.5, --dev-root: look nowhere else. */
static int open_devices(struct graft_survey *survey, struct graft_error *err)
{
	const char *path = clean_root(survey->arena, survey->options->dev_root);

	if (!path)
		return graft_fail_memory(err);
	if (graft_root_open(&survey->given_dev, path, err) < 0)
		return -1;
	survey->dev = &survey->given_dev;
	survey->inventory->dev_root = path;
	survey->dev_fd = graft_root_openat(&survey->given_dev, "/dev", O_PATH | O_DIRECTORY);
	graft_note_shortage(&survey->shortage, survey->dev_fd);
	return 0;
}

static void read_survey_devices(struct graft_survey *survey)
{
	uint32_t major;

	if (graft_survey_read(survey, "/proc/devices", &survey->devices, &survey->devices_length) < 0) {
		survey->devices = "";
		survey->devices_length = 0;
	}
	survey->inventory->caps_devices = graft_survey_major(survey, "nvidia-caps", &major);
}

/* Opens the roots that the inventory names. *ret_host_root is the path of the host's own root. */
static int open_inventory(struct graft_survey *survey, const char **ret_host_root, struct graft_error *err)
{
	const char *host_root = clean_root(survey->arena, survey->options->host_root);

	if (graft_arena_failed(survey->arena))
		return graft_fail_memory(err);
	if (open_survey_roots(survey, host_root, err) < 0)
		return -1;
	graft_lookup_init(&survey->lookup, &survey->root, survey->arena);
	survey->proc = &survey->root;
	*ret_host_root = host_root;
	if (survey->options->dev_root)
		return open_devices(survey, err);
	choose_dev(survey, host_root);
	return 0;
}

static int begin_survey(struct graft_survey *survey, const struct graft_host_options *options, unsigned int needs,
			struct graft_inventory *inventory, struct graft_error *err)
{
	survey->options = options;
	survey->log = options->log;
	survey->needs = needs;
	survey->inventory = inventory;
	survey->arena = inventory ? inventory->arena : NULL;
	survey->scratch = graft_arena_new(SCRATCH_MAX);
	return inventory && survey->scratch ? 0 : graft_fail_memory(err);
}

int graft_survey_open(struct graft_survey *survey, const struct graft_host_options *options, unsigned int needs,
		      struct graft_error *err)
{
	struct graft_inventory *inventory = graft_inventory_new();
	const char *host_root = NULL;
	struct utsname names;

	if (begin_survey(survey, options, needs, inventory, err) < 0)
		return -1;
	inventory->root = clean_root(survey->arena, options->root);
	inventory->ldcache = graft_arena_strdup(survey->arena, options->ldcache ? options->ldcache : DEFAULT_CACHE);
	inventory->machine = graft_arena_strdup(survey->arena, uname(&names) == 0 ? names.machine : "unknown");
	if (open_inventory(survey, &host_root, err) < 0)
		return -1;
	choose_proc(survey, host_root);
	read_survey_devices(survey);
	return 0;
}

int graft_survey_attach(struct graft_survey *survey, const struct graft_host_options *options,
			struct graft_inventory *inventory, struct graft_error *err)
{
	const char *host_root = NULL;

	return begin_survey(survey, options, 0, inventory, err) < 0 ? -1 : open_inventory(survey, &host_root, err);
}

struct graft_inventory *graft_survey_detach(struct graft_survey *survey)
{
	return TAKE_PTR(survey->inventory);
}

void graft_survey_close(struct graft_survey *survey)
{
	graft_lookup_done(&survey->lookup);
	if (survey->dev_fd >= 0)
		(void)close(survey->dev_fd);
	graft_root_close(&survey->root);
	graft_root_close(&survey->host);
	graft_root_close(&survey->given_dev);
	survey->scratch = graft_arena_free(survey->scratch);
	survey->inventory = graft_inventory_free(survey->inventory);
}

int graft_survey_check(const struct graft_survey *survey, const char *what, struct graft_error *err)
{
	int shortage = survey->shortage != 0 ? survey->shortage : survey->lookup.shortage;

	if (graft_arena_failed(survey->arena) || graft_arena_failed(survey->scratch))
		return graft_fail_memory(err);
	return shortage != 0 ? graft_fail_shortage(err, shortage, what) : 0;
}

void graft_survey_omit(struct graft_survey *survey, const char *verb, const char *what, const char *why, ...)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_omission *omission;
	char text[512];
	va_list args;

	va_start(args, why);
	(void)vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	graft_warn(survey->log, "%s %s: %s", verb, what, text);
	for (size_t i = 0; i < inventory->n_omissions; i++) {
		if (strcmp(inventory->omissions[i].what, what) == 0 && strcmp(inventory->omissions[i].why, text) == 0)
			return;
	}
	omission = graft_arena_push(survey->arena, &inventory->omissions, &inventory->n_omissions, sizeof(*omission));
	if (!omission)
		return;
	omission->what = graft_arena_strdup(survey->arena, what);
	omission->why = graft_arena_strdup(survey->arena, text);
	if (!omission->what || !omission->why)
		inventory->n_omissions--;
}

int graft_survey_read(struct graft_survey *survey, const char *path, const char **ret_bytes, size_t *ret_length)
{
	int rc = graft_root_read(&survey->root, path, GRAFT_SOURCE_FILE_MAX, survey->scratch, ret_bytes, ret_length);

	if (rc < 0 && survey->host.fd >= 0)
		rc = graft_root_read(&survey->host, path, GRAFT_SOURCE_FILE_MAX, survey->scratch, ret_bytes,
				     ret_length);
	graft_note_shortage(&survey->shortage, rc);
	return rc;
}

int graft_survey_read_proc(struct graft_survey *survey, const char *path, const char **ret_bytes, size_t *ret_length)
{
	int rc = graft_root_read(survey->proc, path, GRAFT_SOURCE_FILE_MAX, survey->scratch, ret_bytes, ret_length);

	graft_note_shortage(&survey->shortage, rc);
	return rc;
}

bool graft_survey_disabled(const struct graft_survey *survey, size_t disabled_by)
{
	bool disabled = false;

	if (disabled_by != 0)
		memcpy(&disabled, (const char *)survey->options + disabled_by, sizeof(disabled));
	return disabled;
}

bool graft_survey_wants(const struct graft_survey *survey, enum graft_class class_)
{
	return (survey->options->capabilities & graft_class_capabilities(class_)) != 0;
}

static int stat_node(struct graft_survey *survey, struct graft_node *node, struct stat *st)
{
	node->present = false;
	if (survey->dev_fd < 0)
		return -ENOENT;
	if (fstatat(survey->dev_fd, node->path + strlen("/dev/"), st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISCHR(st->st_mode) ? 0 : -ENODEV;
}

int graft_survey_node(struct graft_survey *survey, struct graft_node *node)
{
	struct stat st;
	int rc = stat_node(survey, node, &st);

	if (rc == 0 && (major(st.st_rdev) != node->major || minor(st.st_rdev) != node->minor))
		rc = -ENODEV;
	if (rc == 0)
		graft_node_describe(node, &st);
	return rc;
}

int graft_survey_node_as_is(struct graft_survey *survey, struct graft_node *node)
{
	struct stat st;
	int rc = stat_node(survey, node, &st);

	if (rc == 0)
		graft_node_describe(node, &st);
	return rc;
}

void graft_survey_add_node(struct graft_survey *survey, const char *path, struct graft_node **nodes, size_t *n)
{
	struct graft_node node = { .path = path, .source = path }, *slot;

	if (!path || graft_survey_node_as_is(survey, &node) < 0)
		return;
	slot = graft_arena_push(survey->arena, nodes, n, sizeof(*slot));
	if (slot)
		*slot = node;
	graft_info(survey->log, "listing device %s", path);
}

void graft_survey_omit_node(struct graft_survey *survey, const char *path, int rc)
{
	graft_survey_omit(survey, "missing device", path, "%s", rc == -ENODEV ? "it is another device" : strerror(-rc));
}

void graft_survey_add_extra_file(struct graft_survey *survey, const char *path, const char *target,
				 enum graft_class class_, const char *source)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_extra_file *file = graft_arena_push(survey->arena, &inventory->extra_files,
							 &inventory->n_extra_files, sizeof(*file));

	if (file)
		*file = (struct graft_extra_file){ .path = path,
						   .target = target && strcmp(target, path) != 0 ? target : NULL,
						   .class_ = class_,
						   .source = source };
	graft_info(survey->log, "selecting %s", path);
}

bool graft_survey_major(const struct graft_survey *survey, const char *name, uint32_t *ret_major)
{
	return graft_procfs_devices_major(survey->devices, survey->devices_length, name, ret_major);
}

int graft_survey_list(struct graft_survey *survey, const struct graft_root *root, const char *path,
		      const char ***ret_names, size_t *ret_n)
{
	int rc = graft_root_list(root, path, NAMES_MAX, survey->scratch, ret_names, ret_n, NULL);

	graft_note_shortage(&survey->shortage, rc);
	return rc;
}

int graft_survey_list_sys(struct graft_survey *survey, const char *path, const char ***ret_names, size_t *ret_n)
{
	int rc = graft_survey_list(survey, &survey->root, path, ret_names, ret_n);

	if (rc < 0 && survey->host.fd >= 0)
		rc = graft_survey_list(survey, &survey->host, path, ret_names, ret_n);
	return rc;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the number in a name like "gi12", for the prefix "gi"; -1 if it has another form. */
static int64_t number_after(const char *name, const char *prefix)
{
	const char *digits = name + strlen(prefix);
	unsigned long number;
	char *end;

	if (!graft_starts_with(name, prefix) || !isdigit((unsigned char)*digits))
		return -1;
	errno = 0;
	number = strtoul(digits, &end, 10);
	return errno == 0 && *end == '\0' && number <= INT32_MAX ? (int64_t)number : -1;
}

int graft_survey_list_numbers(struct graft_survey *survey, const struct graft_root *root, const char *path,
			      const char *prefix, uint32_t **ret_numbers, size_t *ret_n)
{
	const char **names;
	size_t n_names;
	int rc = path ? graft_survey_list(survey, root, path, &names, &n_names) : -ENOMEM;

	*ret_numbers = NULL;
	*ret_n = 0;
	for (size_t i = 0; rc == 0 && i < n_names; i++) {
		int64_t number = number_after(names[i], prefix);
		uint32_t *slot = number < 0 ? NULL
					    : graft_arena_push(survey->scratch, ret_numbers, ret_n, sizeof(*slot));

		if (slot)
			*slot = (uint32_t)number;
	}
	if (*ret_n > 1)
		qsort(*ret_numbers, *ret_n, sizeof(**ret_numbers), compare_numbers);
	return rc;
}

bool graft_survey_has_number(const uint32_t *numbers, size_t n, uint32_t number)
{
	return n > 0 && bsearch(&number, numbers, n, sizeof(*numbers), compare_numbers);
}
