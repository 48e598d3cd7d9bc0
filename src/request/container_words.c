/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_words: extracts lists of device names from variables, mounts and annotations. Knows
 * syntax, but neither precedence nor privilege.
 */
#include "request/container_words.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/cdi/cdi.h"

#define DEVICE_DIRECTORY "/var/run/nvidia-container-devices"

int graft_words_add(struct graft_strings *words, const char *word, struct graft_arena *arena, struct graft_error *err)
{
	if (graft_is_in(words->items, words->n, word))
		return 0;
	if (words->n >= GRAFT_CONTAINER_WORDS_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "more than %d devices are requested",
				  GRAFT_CONTAINER_WORDS_MAX);
	return graft_arena_push_string(arena, &words->items, &words->n, word) ? 0 : graft_fail_memory(err);
}

/*
 * SECURITY: each name is compared with all others, so what an image may ask for is bounded also in
 * bytes, repetitions included. *bytes is what the source has used so far.
 */
static int count_bytes(const char *text, size_t *bytes, struct graft_error *err)
{
	*bytes += strlen(text) + 1;
	return *bytes <= GRAFT_CONTAINER_WORDS_BYTES
		   ? 0
		   : graft_fail(err, GRAFT_TOO_BIG, 0, "the list of requested devices is longer than %d KiB",
				GRAFT_CONTAINER_WORDS_BYTES / 1024);
}

static bool is_word_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

int graft_words_split(const char *list, bool trim, struct graft_arena *arena, struct graft_strings *words,
		      struct graft_error *err)
{
	size_t n = 0, bytes = 0;

	if (count_bytes(list, &bytes, err) < 0)
		return -1;
	for (const char *at = list; at; n++) {
		size_t length = strcspn(at, ",");
		const char *next = at[length] == ',' ? at + length + 1 : NULL;
		const char *word;

		while (trim && length > 0 && is_word_blank(*at)) {
			at++;
			length--;
		}
		while (trim && length > 0 && is_word_blank(at[length - 1]))
			length--;
		/* SECURITY: repeated names take time but no space; include them in the limit */
		if (n >= GRAFT_CONTAINER_WORDS_MAX)
			return graft_fail(err, GRAFT_TOO_BIG, 0, "more than %d devices are requested",
					  GRAFT_CONTAINER_WORDS_MAX);
		word = length > 0 || !trim ? graft_arena_strndup(arena, at, length) : NULL;
		if (!word && (length > 0 || !trim))
			return graft_fail_memory(err);
		if (word && graft_words_add(words, word, arena, err) < 0)
			return -1;
		at = next;
	}
	return 0;
}

void graft_words_reduce(struct graft_strings *words)
{
	if (graft_is_in(words->items, words->n, "void"))
		words->n = 0;
	for (size_t i = 0; i < words->n; i++) {
		if (strcmp(words->items[i], "all") != 0 && strcmp(words->items[i], "none") != 0)
			continue;
		words->items[0] = words->items[i];
		words->n = 1;
	}
}

int graft_words_of_annotations(const struct graft_oci_spec *spec, const struct graft_strings *prefixes,
			       struct graft_arena *arena, struct graft_strings *words, struct graft_error *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < spec->n_annotations; i++) {
		const struct graft_oci_annotation *annotation = &spec->annotations[i];
		bool wanted = false;

		for (size_t p = 0; p < prefixes->n && !wanted; p++)
			wanted = strncmp(annotation->key, prefixes->items[p], strlen(prefixes->items[p])) == 0;
		if (wanted && (count_bytes(annotation->value, &bytes, err) < 0 ||
			       graft_words_split(annotation->value, false, arena, words, err) < 0))
			return graft_wrap(err, "annotation '%s'", annotation->key);
	}
	for (size_t i = 0; i < words->n; i++) {
		if (words->items[i][0] == '\0')
			words->items[i] = "none";
	}
	return 0;
}

/* ---- volume mounts ---- */

/* Returns NULL if the path is missing or relative, or memory is exhausted. */
static const char *clean_path(const char *path, struct graft_arena *arena)
{
	return path ? graft_path_clean(NULL, path, arena) : NULL;
}

/* Returns the part of `text` after `prefix`, or NULL if `text` does not start with it. */
static const char *behind(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* Accepts "vendor/class/name" and "vendor/class=name". */
static int add_cdi_device(const char *rest, const struct graft_log *log, struct graft_arena *arena,
			  struct graft_strings *devices, struct graft_error *err)
{
	char *name = graft_arena_strdup(arena, rest);
	char *slash = name ? strchr(name, '/') : NULL;
	char *second = slash ? strchr(slash + 1, '/') : NULL;

	if (!name)
		return graft_fail_memory(err);
	if (second && !memchr(slash, '=', (size_t)(second - slash)))
		*second = '=';
	if (graft_cdi_is_qualified(name))
		return graft_words_add(devices, name, arena, err);
	graft_warn(log, "ignoring the mount '%s/cdi/%s': it names no CDI device", DEVICE_DIRECTORY, rest);
	return 0;
}

int graft_words_of_mounts(const struct graft_oci_spec *spec, const struct graft_log *log, struct graft_arena *arena,
			  struct graft_strings *devices, struct graft_strings *channels, struct graft_error *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < spec->n_mounts; i++) {
		const char *source = clean_path(spec->mounts[i].source, arena);
		const char *destination = clean_path(spec->mounts[i].destination, arena);
		/* SPEC runtime-and-hook Q7 */
		const char *name = destination ? behind(destination, DEVICE_DIRECTORY "/") : NULL;
		const char *rest;
		int rc;

		if (graft_arena_failed(arena))
			return graft_fail_memory(err);
		if (!name || !source || strcmp(source, "/dev/null") != 0)
			continue;
		if (count_bytes(name, &bytes, err) < 0)
			return -1;
		if ((rest = behind(name, "imex/")) != NULL)
			rc = graft_words_add(channels, rest, arena, err);
		else if ((rest = behind(name, "cdi/")) != NULL)
			rc = add_cdi_device(rest, log, arena, devices, err);
		else
			rc = graft_words_add(devices, name, arena, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}
