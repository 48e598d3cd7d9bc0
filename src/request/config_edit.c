/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_edit: applies settings in the form of `config --set` (SPEC ctk-and-cdi 1.4, 6.2) to a
 * document. Knows neither where the document is nor what reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/options.h"
#include "request/config.h"

static const struct graft_config_key *find_config_key(const char *name, size_t length)
{
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const char *known = graft_config_keys[i].name;

		if (strncmp(known, name, length) == 0 && known[length] == '\0')
			return &graft_config_keys[i];
	}
	return NULL;
}

/* Returns whether a name is that of a table or of a key: known[length] is '.' or the end. */
static bool is_config_name(const char *name, size_t length)
{
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const char *known = graft_config_keys[i].name;

		if (strncmp(known, name, length) == 0 && (known[length] == '\0' || known[length] == '.'))
			return true;
	}
	return false;
}

/* ---- several settings in one value ---- */

static bool is_setting(const char *text)
{
	return find_config_key(text, strcspn(text, "=,")) != NULL;
}

int graft_config_split_settings(const char *value, struct graft_arena *arena, struct graft_strings *ret_settings,
				struct graft_error *err)
{
	const char *start = value;

	*ret_settings = (struct graft_strings){ 0 };
	for (const char *at = value;; at++) {
		const char **item;

		if (*at != '\0' && !(*at == ',' && is_setting(at + 1)))
			continue;
		item = graft_arena_push(arena, &ret_settings->items, &ret_settings->n, sizeof(*item));
		if (item)
			*item = graft_arena_strndup(arena, start, (size_t)(at - start));
		if (!item || !*item)
			return graft_fail_memory(err);
		if (*at == '\0')
			return 0;
		start = at + 1;
	}
}

/* ---- a new key replaces its sample ---- */

struct line {
	size_t start, end; /* after the newline */
};

static struct line line_at(const char *text, size_t length, size_t at)
{
	const char *newline = memchr(text + at, '\n', length - at);
	struct line line = { at, newline ? (size_t)(newline - text) + 1 : length };

	while (line.start > 0 && text[line.start - 1] != '\n')
		line.start--;
	return line;
}

static struct line numbered_line(const char *text, size_t length, size_t number)
{
	struct line line = line_at(text, length, 0);

	while (--number > 0 && line.end < length)
		line = line_at(text, length, line.end);
	return line;
}

static bool is_line(const char *text, struct line line, const struct graft_buffer *wanted)
{
	size_t length = line.end - line.start;

	while (length > 0 && (text[line.start + length - 1] == '\n' || text[line.start + length - 1] == '\r'))
		length--;
	return length == wanted->length && memcmp(text + line.start, graft_buffer_text(wanted), length) == 0;
}

/* Finds the sample in the table that contains the key's line. */
static bool find_sample(const char *text, size_t length, struct line key, const struct graft_buffer *sample,
			struct line *ret_line)
{
	for (struct line line = key; line.start > 0;) {
		line = line_at(text, length, line.start - 1);
		if (text[line.start] == '[')
			break;
		*ret_line = line;
		if (is_line(text, line, sample))
			return true;
	}
	for (struct line line = key; line.end < length;) {
		line = line_at(text, length, line.end);
		if (text[line.start] == '[')
			break;
		*ret_line = line;
		if (is_line(text, line, sample))
			return true;
	}
	return false;
}

static int replace_sample(struct graft_toml **toml, struct line key, struct line sample, struct graft_error *err)
{
	struct line first = key.start < sample.start ? key : sample, second = key.start < sample.start ? sample : key;
	struct graft_toml *edited = NULL;
	struct graft_buffer out = { .max = 0 };
	size_t length;
	const char *text = graft_toml_text(*toml, &length);
	int rc;

	graft_buffer_add(&out, text, first.start);
	if (first.start == sample.start)
		graft_buffer_add(&out, text + key.start, key.end - key.start);
	graft_buffer_add(&out, text + first.end, second.start - first.end);
	if (second.start == sample.start)
		graft_buffer_add(&out, text + key.start, key.end - key.start);
	graft_buffer_add(&out, text + second.end, length - second.end);
	rc = graft_buffer_failed(&out)
		 ? graft_fail_memory(err)
		 : graft_toml_parse(graft_toml_name(*toml), graft_buffer_text(&out), out.length, &edited, err);
	graft_buffer_done(&out);
	if (rc < 0)
		return -1;
	graft_toml_free(*toml);
	*toml = edited;
	return 0;
}

/*
 * Moves a key that was just added, on a line of its own, to the line of its sample, which it
 * replaces. Multi-line strings could contain what looks like a sample, so a document with any is
 * left alone.
 */
static int take_place_of_sample(struct graft_toml **toml, const struct graft_config_key *key, struct graft_error *err)
{
	struct graft_buffer wanted = { .max = 0 };
	unsigned int number, column;
	size_t length;
	const char *text = graft_toml_text(*toml, &length), *dot = strrchr(key->name, '.');
	const char *name = dot ? dot + 1 : key->name;
	struct line line, sample;
	int rc = 0;

	graft_toml_position(*toml, key->name, &number, &column);
	if (!key->sample || number == 0 || strstr(text, "\"\"\"") || strstr(text, "'''"))
		return 0;
	line = numbered_line(text, length, number);
	graft_config_sample_line(key, &wanted);
	if (graft_buffer_failed(&wanted))
		rc = graft_fail_memory(err);
	else if (strncmp(text + line.start, name, strlen(name)) == 0 &&
		 find_sample(text, length, line, &wanted, &sample))
		rc = replace_sample(toml, line, sample, err);
	graft_buffer_done(&wanted);
	return rc;
}

/* ---- one setting ---- */

static int refuse_setting(const char *setting, const struct graft_error *why, struct graft_error *err)
{
	(void)graft_fail(err, why->status, why->sys, "invalid --set option %s: %s", setting, why->msg);
	return graft_with_hint(err, "See 'man nvidia-container-runtime-config' for every key and its values.");
}

/*
 * The key that was probably meant: one that is spelled similarly, or has that name in another
 * table.
 */
static const char *find_meant_key(const char *name, size_t length)
{
	char word[GRAFT_CONFIG_NAME_SIZE];
	struct graft_nearest_search nearest = { .word = word };
	const char *part, *elsewhere = NULL;

	if (length == 0 || length >= sizeof(word))
		return NULL;
	(void)snprintf(word, sizeof(word), "%.*s", (int)length, name);
	part = strrchr(word, '.');
	for (size_t i = 0; i < graft_config_n_keys; i++) {
		const char *known = graft_config_keys[i].name, *last = strrchr(known, '.');
		unsigned int distance = graft_nearest_distance(part ? part + 1 : word, last ? last + 1 : known);

		/* In a long name, much of the last part could differ. */
		if (distance != GRAFT_NEAREST_FAR)
			graft_nearest_consider(&nearest, known);
		if (distance == 0 && !elsewhere)
			elsewhere = known;
	}
	return nearest.best ? nearest.best : elsewhere;
}

/* Names the first part of the name that does not exist. */
static int fail_undefined(const char *name, size_t length, struct graft_error *err)
{
	size_t begin = 0, end = strcspn(name, ".=");
	const char *meant = find_meant_key(name, length);

	while (end < length && is_config_name(name, end)) {
		begin = end + 1;
		end = begin + strcspn(name + begin, ".=");
	}
	return graft_fail(err, GRAFT_INVALID, 0, "invalid config option: undefined field: \"%.*s\"%s%s%s",
			  (int)(end - begin), name + begin, meant ? " (did you mean '" : "", meant ? meant : "",
			  meant ? "'?)" : "");
}

static int set_bool(struct graft_toml *toml, const char *path, const char *setting, const char *value,
		    struct graft_error *err)
{
	const struct graft_option flag = { .name = "set", .offset = 0 };
	bool on = false;

	if (graft_option_set_true(&on, &flag, value, NULL) < 0)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid format: expected true or false; got %s", setting);
	return graft_toml_set_bool(toml, path, on, err);
}

/* `words` is a copy of the value; it is cut into pieces in place. */
static int set_list(struct graft_toml *toml, const char *path, char *words, const char *separator,
		    struct graft_error *err)
{
	const char *mark = strstr(words, separator) ? separator : ",";
	size_t n = 0, max = 1 + strlen(words);
	auto_free const char **items = calloc(max, sizeof(*items));

	if (!items)
		return graft_fail_memory(err);
	for (char *next = words[0] != '\0' ? words : NULL; next;) {
		items[n++] = next;
		next = strstr(next, mark);
		if (next) {
			*next = '\0';
			next += strlen(mark);
		}
	}
	return graft_toml_set_strings(toml, path, items, n, err);
}

static int set_value(struct graft_toml *toml, const struct graft_config_key *key, const char *setting,
		     const char *value, const char *separator, struct graft_error *err)
{
	char path[GRAFT_CONFIG_NAME_SIZE];
	auto_free char *words = NULL;

	graft_config_spelling(toml, key->name, path);
	if (key->optional && value && strcmp(value, "nil") == 0)
		return graft_toml_remove(toml, path, err);
	if (key->kind == GRAFT_CONFIG_BOOL)
		return set_bool(toml, path, setting, value, err);
	if (!value)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid format: expected key=value; got %s", setting);
	if (key->kind == GRAFT_CONFIG_STRING)
		return graft_toml_set_string(toml, path, value, err);
	words = strdup(value);
	return words ? set_list(toml, path, words, separator, err) : graft_fail_memory(err);
}

/* Reports why a name cannot be set. */
static int fail_name(const char *setting, size_t length, struct graft_error *err)
{
	if (length == 0 || !is_config_name(setting, length))
		return fail_undefined(setting, length, err);
	if (setting[length] == '=')
		return graft_fail(err, GRAFT_INVALID, 0, "unsupported type for [%.*s] (table)", (int)length, setting);
	return graft_fail(err, GRAFT_INVALID, 0, "invalid format: expected key=value; got %s", setting);
}

int graft_config_set(struct graft_toml **toml, const char *setting, const char *separator, struct graft_error *err)
{
	size_t length = strcspn(setting, "=");
	const char *value = setting[length] == '=' ? setting + length + 1 : NULL;
	const struct graft_config_key *key = find_config_key(setting, length);
	struct graft_error why = { .status = GRAFT_OK };
	bool present;

	if (!key) {
		(void)fail_name(setting, length, &why);
		return refuse_setting(setting, &why, err);
	}
	present = graft_toml_has(*toml, key->name);
	if (set_value(*toml, key, setting, value, separator, &why) < 0)
		return refuse_setting(setting, &why, err);
	return present ? 0 : take_place_of_sample(toml, key, err);
}
