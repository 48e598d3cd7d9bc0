/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_requirements: what an image requires of the driver, and which capabilities a container
 * gets. Knows the variables and their syntax; request/requirement.h and the planner decide whether
 * a requirement holds.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "request/container.h"
#include "request/container_words.h"

#define REQUIREMENT_PREFIX "NVIDIA_REQUIRE_"

/* ---- requirements ---- */

static bool is_true(const char *value)
{
	static const char *const words[] = { "1", "t", "T", "TRUE", "true", "True" };

	return value && graft_is_in(words, GRAFT_COUNT(words), value);
}

/*
 * Returns the length of the name in "NAME=VALUE" if it is a requirement, else 0. The variable for
 * JetPack has another meaning.
 */
static size_t requirement_name(const char *entry)
{
	static const char jetpack[] = REQUIREMENT_PREFIX "JETPACK";

	if (strncmp(entry, REQUIREMENT_PREFIX, strlen(REQUIREMENT_PREFIX)) != 0 ||
	    strncmp(entry, jetpack, strlen(jetpack)) == 0)
		return 0;
	return strcspn(entry, "=");
}

static bool is_requirement_listed(const char *const *entries, size_t n, const char *entry, size_t name_length)
{
	for (size_t i = 0; i < n; i++) {
		if (strncmp(entries[i], entry, name_length + 1) == 0)
			return true;
	}
	return false;
}

/*
 * The last of several entries with one name applies, so search from the end. SECURITY: stop at one
 * more than a request accepts: that is enough for it to be refused, and keeps an environment with a
 * million requirements cheap. So does that names are compared only as far as they are together no
 * longer than the list of devices may be: after that, each entry counts as another requirement.
 */
static size_t find_requirements(const struct graft_oci_spec *spec, const char **entries, size_t max)
{
	size_t n = 0, bytes = 0;

	for (size_t i = spec->n_env; i > 0 && n < max; i--) {
		const char *entry = spec->env[i - 1];
		size_t name_length = requirement_name(entry);

		bytes += name_length;
		if (name_length > 0 &&
		    (bytes > GRAFT_CONTAINER_WORDS_BYTES || !is_requirement_listed(entries, n, entry, name_length)))
			entries[n++] = entry;
	}
	return n;
}

int graft_container_read_requirements(const struct graft_oci_spec *spec, const struct graft_config *config,
				      struct graft_arena *arena, struct graft_container *container,
				      struct graft_error *err)
{
	const char *entries[GRAFT_REQUIREMENTS_MAX + 1];
	struct graft_strings *requirements = &container->requirements;
	size_t n;

	container->requirements_disabled = config->disable_require ||
					   is_true(graft_oci_spec_env(spec, "NVIDIA_DISABLE_REQUIRE"));
	if (container->requirements_disabled)
		return 0;
	for (n = find_requirements(spec, entries, GRAFT_COUNT(entries)); n > 0; n--) {
		const char *value = strchr(entries[n - 1], '=');

		if (!graft_arena_push_string(arena, &requirements->items, &requirements->n, value ? value + 1 : ""))
			return graft_fail_memory(err);
	}
	return 0;
}

/* Skips a number of a version: digits without a leading zero. Returns what follows, or NULL. */
static const char *skip_number(const char *at)
{
	size_t n = strspn(at, "0123456789");

	return n == 0 || (n > 1 && at[0] == '0') ? NULL : at + n;
}

static bool fits_32_bits(const char *digits)
{
	uint64_t value = 0;

	for (; isdigit((unsigned char)*digits) && value <= UINT32_MAX; digits++)
		value = value * 10 + (uint64_t)(*digits - '0');
	return value <= UINT32_MAX;
}

/*
 * Skips "-rc.1" or "+build.5": non-empty identifiers of letters, digits and hyphens; numbers in a
 * pre-release have no leading zeros. Returns what follows, or NULL.
 */
static const char *skip_identifiers(const char *at, bool pre_release)
{
	do {
		size_t length, digits;

		at++;
		length = strspn(at, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-");
		digits = strspn(at, "0123456789");
		if (length == 0 || (pre_release && digits == length && length > 1 && at[0] == '0'))
			return NULL;
		at += length;
	} while (*at == '.');
	return at;
}

/*
 * Parses a semantic version with an optional "v"; the minor and patch numbers may be missing,
 * together with everything after them (SPEC runtime-and-hook 14.13).
 */
static bool parse_cuda_version(const char *text, const char **ret_major, const char **ret_minor)
{
	const char *at = text + (text[0] == 'v');

	*ret_major = at;
	*ret_minor = "0";
	at = skip_number(at);
	if (at && *at == '.') {
		*ret_minor = ++at;
		at = skip_number(at);
		if (at && *at == '.') {
			at = skip_number(at + 1);
			if (at && *at == '-')
				at = skip_identifiers(at, true);
			if (at && *at == '+')
				at = skip_identifiers(at, false);
		}
	}
	return at && *at == '\0' && fits_32_bits(*ret_major) && fits_32_bits(*ret_minor);
}

int graft_container_legacy_requirement(const struct graft_oci_spec *spec, struct graft_arena *arena,
				       struct graft_container *container, struct graft_error *err)
{
	const char *version = graft_oci_spec_env(spec, "CUDA_VERSION");
	struct graft_strings *requirements = &container->requirements;
	const char *major, *minor, *text;

	if (!container->legacy_image || container->requirements_disabled || !version)
		return 0;
	if (!parse_cuda_version(version, &major, &minor))
		return graft_fail(err, GRAFT_INVALID, 0,
				  "failed to get requirements: invalid CUDA_VERSION '%s' of the image: a version like "
				  "12.4 or 12.4.1 is expected",
				  version);
	text = graft_arena_printf(arena, "cuda>=%.*s.%.*s", (int)strspn(major, "0123456789"), major,
				  (int)strspn(minor, "0123456789"), minor);
	if (!text || !graft_arena_push_string(arena, &requirements->items, &requirements->n, text))
		return graft_fail_memory(err);
	return 0;
}

/* ---- capabilities ---- */

#define CAPABILITIES_TEXT_MAX 256
/* SECURITY: an image chooses the list, and sorting it for a message takes many passes. */
#define CAPABILITIES_LIST_MAX 4096

/*
 * Finds the next item of a comma-separated list, without surrounding blanks; it may be empty.
 * Returns false at the end.
 */
static bool next_word(const char **cursor, const char **ret_word, size_t *ret_length)
{
	const char *at = *cursor;
	size_t length;

	if (!at)
		return false;
	length = strcspn(at, ",");
	*cursor = at[length] == ',' ? at + length + 1 : NULL;
	while (length > 0 && isspace((unsigned char)*at)) {
		at++;
		length--;
	}
	while (length > 0 && isspace((unsigned char)at[length - 1]))
		length--;
	*ret_word = at;
	*ret_length = length;
	return true;
}

static int compare_words(const char *a, size_t a_length, const char *b, size_t b_length)
{
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

	return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

/*
 * Advances *word to the next item of the list in sort order, starting from NULL. Returns false at
 * the end.
 */
static bool least_word(const char *list, const char **word, size_t *length)
{
	const char *candidate, *best = NULL;
	size_t candidate_length, best_length = 0;

	while (next_word(&list, &candidate, &candidate_length)) {
		if (candidate_length > 0 &&
		    (!*word || compare_words(candidate, candidate_length, *word, *length) > 0) &&
		    (!best || compare_words(candidate, candidate_length, best, best_length) < 0)) {
			best = candidate;
			best_length = candidate_length;
		}
	}
	*word = best;
	*length = best_length;
	return best != NULL;
}

/* Formats the items of a list in sort order, as far as they fit. */
static const char *sorted_words(const char *list, char *text, size_t size)
{
	const char *word = NULL;
	size_t length = 0, used = 0;

	text[0] = '\0';
	while (least_word(list, &word, &length) && used + length + 2 < size) {
		(void)snprintf(text + used, size - used, "%s%.*s", used > 0 ? "," : "", (int)length, word);
		used = strlen(text);
	}
	return text;
}

static const char *capability_text(unsigned int capabilities, char *text, size_t size)
{
	char list[CAPABILITIES_TEXT_MAX] = "";
	size_t used = 0;

	for (unsigned int bit = 0; bit < GRAFT_CAP_BITS; bit++) {
		if ((capabilities >> bit & 1u) != 0)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s,", graft_capability_names[bit]);
	}
	return sorted_words(list, text, size);
}

/* SPEC runtime-and-hook Q16: the reference implementation exits here without a message. */
static int read_supported(const char *supported, unsigned int *ret_capabilities, struct graft_error *err)
{
	char known[CAPABILITIES_TEXT_MAX];
	const char *word;
	size_t length;

	*ret_capabilities = 0;
	while (next_word(&supported, &word, &length)) {
		unsigned int capability = graft_capability_of(word, length);

		if (length > 0 && capability == 0)
			return graft_fail(err, GRAFT_INVALID, 0,
					  "invalid value of supported-driver-capabilities in the configuration: "
					  "unknown capability '%.*s' (known are '%s' and 'all')",
					  (int)length, word, capability_text(GRAFT_CAP_ALL, known, sizeof(known)));
		*ret_capabilities |= capability;
	}
	return 0;
}

/*
 * Reads what an image requests. *ret_all: the list contains "all"; *ret_unknown: it contains
 * something that is not a capability.
 */
static unsigned int read_asked(const char *list, bool *ret_all, bool *ret_unknown)
{
	unsigned int asked = 0;
	const char *word;
	size_t length;

	*ret_all = *ret_unknown = false;
	while (next_word(&list, &word, &length)) {
		unsigned int capability = graft_capability_of(word, length);

		*ret_all = *ret_all || capability == GRAFT_CAP_ALL;
		*ret_unknown = *ret_unknown || (length > 0 && capability == 0);
		asked |= capability;
	}
	return asked;
}

int graft_container_capabilities(const struct graft_container *container, const char *supported,
				 unsigned int *ret_capabilities, struct graft_error *err)
{
	const unsigned int defaults = GRAFT_CAP_UTILITY | GRAFT_CAP_COMPUTE;
	const char *list = container->driver_capabilities;
	char found[CAPABILITIES_TEXT_MAX], allowed[CAPABILITIES_TEXT_MAX];
	unsigned int ceiling, asked;
	bool all, unknown;

	if (read_supported(supported, &ceiling, err) < 0)
		return -1;
	if (list && strlen(list) > CAPABILITIES_LIST_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "the list of driver capabilities is longer than %d KiB",
				  CAPABILITIES_LIST_MAX / 1024);
	asked = read_asked(list, &all, &unknown);
	if (all || (!list && container->legacy_image))
		*ret_capabilities = ceiling;
	else if (asked == 0 && !unknown)
		*ret_capabilities = ceiling & defaults;
	else if (!unknown && (asked & ~ceiling) == 0)
		*ret_capabilities = asked;
	else
		return graft_fail(err, GRAFT_INVALID, 0, "unsupported capabilities found in '%s' (allowed '%s')",
				  sorted_words(list, found, sizeof(found)),
				  capability_text(asked & ceiling, allowed, sizeof(allowed)));
	return 0;
}
