/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs: parsers for text files of the kernel and of the driver. Each walks the lines of a range
 * of bytes, and does not know where they come from. A line that contains a NUL is never accepted:
 * its values could not be distinguished from shorter ones.
 */
#include "formats/procfs.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

/* A part of the text. */
struct span {
	const char *s;
	size_t n;
};

static bool next_line(struct span *rest, struct span *ret_line)
{
	const char *end;

	if (rest->n == 0)
		return false;
	end = memchr(rest->s, '\n', rest->n);
	ret_line->s = rest->s;
	ret_line->n = end ? (size_t)(end - rest->s) : rest->n;
	rest->n -= end ? ret_line->n + 1 : ret_line->n;
	rest->s += end ? ret_line->n + 1 : ret_line->n;
	return true;
}

static struct span trim_proc_text(struct span text)
{
	while (text.n > 0 && isspace((unsigned char)text.s[0])) {
		text.s++;
		text.n--;
	}
	while (text.n > 0 && isspace((unsigned char)text.s[text.n - 1]))
		text.n--;
	return text;
}

/* Removes `word` from the front. */
static bool take_word(struct span *text, const char *word)
{
	size_t n = strlen(word);

	if (text->n < n || memcmp(text->s, word, n) != 0)
		return false;
	text->s += n;
	text->n -= n;
	return true;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : INT_MAX;
}

/* Removes a number of at least one digit that fits into 32 bits from the front. */
static bool take_u32(struct span *text, int base, uint32_t *ret_value)
{
	uint64_t value = 0;
	size_t i = 0;

	for (; i < text->n && digit_value(text->s[i]) < base; i++) {
		value = value * (uint64_t)base + (uint64_t)digit_value(text->s[i]);
		if (value > UINT32_MAX)
			return false;
	}
	if (i == 0)
		return false;
	text->s += i;
	text->n -= i;
	*ret_value = (uint32_t)value;
	return true;
}

static bool take_int(struct span *text, int *ret_value)
{
	uint32_t value;

	if (!take_u32(text, 10, &value) || value > INT_MAX)
		return false;
	*ret_value = (int)value;
	return true;
}

static bool has_nul(struct span line)
{
	return memchr(line.s, '\0', line.n) != NULL;
}

/*
 * Reads lines into a list. `parse` fills in a zeroed item of `size` bytes; it returns 1, 0 for a
 * line to be skipped, or -1 if out of memory.
 */
static int read_items(const char *text, size_t length, struct graft_arena *arena, size_t size,
		      int (*parse)(struct span line, struct graft_arena *arena, void *item), void *ret_items,
		      size_t *ret_n)
{
	struct span rest = { text, length }, line;
	char *items = NULL, *slot;
	size_t n = 0;

	while (next_line(&rest, &line)) {
		union {
			struct graft_key_value key_value;
			struct graft_mig_minor mig_minor;
			struct graft_mountinfo mount;
		} item;
		int rc;

		memset(&item, 0, sizeof(item));
		rc = parse(line, arena, &item);
		if (rc == 0)
			continue;
		slot = rc > 0 ? graft_arena_push(arena, &items, &n, size) : NULL;
		if (!slot)
			return -1;
		memcpy(slot, &item, size);
	}
	memcpy(ret_items, &items, sizeof(items));
	*ret_n = n;
	return 0;
}

static int parse_proc_pair(struct span line, struct graft_arena *arena, void *ret_item)
{
	const char *colon = memchr(line.s, ':', line.n);
	struct graft_key_value *item = ret_item;
	struct span key, value;

	if (!colon || has_nul(line))
		return 0;
	key = trim_proc_text((struct span){ line.s, (size_t)(colon - line.s) });
	value = trim_proc_text((struct span){ colon + 1, line.n - (size_t)(colon - line.s) - 1 });
	if (key.n == 0)
		return 0;
	item->key = graft_arena_strndup(arena, key.s, key.n);
	item->value = graft_arena_strndup(arena, value.s, value.n);
	return item->key && item->value ? 1 : -1;
}

int graft_procfs_key_values(const char *text, size_t length, struct graft_arena *arena,
			    struct graft_key_value **ret_items, size_t *ret_n)
{
	return read_items(text, length, arena, sizeof(**ret_items), parse_proc_pair, ret_items, ret_n);
}

const char *graft_key_value_find(const struct graft_key_value *items, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(items[i].key, key) == 0)
			return items[i].value;
	}
	return NULL;
}

/*
 * Returns the length of the dotted number at the start of `text`: "550.54.14"; 0 if there is none
 * or it contains no dot.
 */
static size_t dotted_number(struct span text)
{
	size_t n = 0, dots = 0;

	while (n < text.n) {
		if (isdigit((unsigned char)text.s[n]))
			n++;
		else if (n > 0 && text.s[n] == '.' && n + 1 < text.n && isdigit((unsigned char)text.s[n + 1])) {
			dots++;
			n++;
		} else
			break;
	}
	return dots > 0 ? n : 0;
}

const char *graft_procfs_driver_version(const char *text, size_t length, struct graft_arena *arena)
{
	struct span rest = { text, length }, line;

	while (next_line(&rest, &line)) {
		if (!take_word(&line, "NVRM version:"))
			continue;
		for (size_t i = 0; i < line.n; i++) {
			/* A number within a word ("x86_64", "v1.2") is not the version. */
			struct span word = { line.s + i, line.n - i };
			size_t n = i > 0 && !isspace((unsigned char)line.s[i - 1]) ? 0 : dotted_number(word);

			if (n > 0 && (n == word.n || isspace((unsigned char)word.s[n])))
				return graft_arena_strndup(arena, word.s, n);
		}
	}
	return NULL;
}

bool graft_procfs_devices_major(const char *text, size_t length, const char *name, uint32_t *ret_major)
{
	struct span rest = { text, length }, line;
	bool characters = false;

	while (next_line(&rest, &line)) {
		uint32_t major;

		line = trim_proc_text(line);
		if (line.n > 0 && line.s[line.n - 1] == ':') {
			characters = line.n == strlen("Character devices:") &&
				     memcmp(line.s, "Character devices:", line.n) == 0;
			continue;
		}
		if (!characters || !take_u32(&line, 10, &major) || line.n == 0 || !isspace((unsigned char)line.s[0]))
			continue;
		line = trim_proc_text(line);
		if (line.n == strlen(name) && memcmp(line.s, name, line.n) == 0) {
			*ret_major = major;
			return true;
		}
	}
	return false;
}

/* "gpu0/gi1/ci2/access" or without the ci part. */
static bool take_instance(struct span *line, struct graft_mig_minor *item)
{
	if (!take_word(line, "gpu") || !take_int(line, &item->gpu) || !take_word(line, "/gi") ||
	    !take_int(line, &item->gi))
		return false;
	item->kind = GRAFT_MIG_MINOR_GI;
	if (take_word(line, "/ci")) {
		item->kind = GRAFT_MIG_MINOR_CI;
		if (!take_int(line, &item->ci))
			return false;
	}
	return take_word(line, "/access");
}

static int parse_mig_minor(struct span line, struct graft_arena *arena, void *ret_item)
{
	struct graft_mig_minor *item = ret_item;

	(void)arena;
	*item = (struct graft_mig_minor){ .kind = GRAFT_MIG_MINOR_CONFIG, .gpu = -1, .gi = -1, .ci = -1 };
	line = trim_proc_text(line);
	if (take_word(&line, "monitor"))
		item->kind = GRAFT_MIG_MINOR_MONITOR;
	else if (!take_word(&line, "config") && !take_instance(&line, item))
		return 0;
	if (line.n == 0 || !isspace((unsigned char)line.s[0]))
		return 0;
	line = trim_proc_text(line);
	return take_u32(&line, 10, &item->minor) && line.n == 0;
}

int graft_procfs_mig_minors(const char *text, size_t length, struct graft_arena *arena,
			    struct graft_mig_minor **ret_items, size_t *ret_n)
{
	return read_items(text, length, arena, sizeof(**ret_items), parse_mig_minor, ret_items, ret_n);
}

/* Decodes the kernel's \ooo escapes (blank, tab, newline, backslash, '#') in place. */
static void decode_octal(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
		    s[3] <= '7') {
			char c = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));

			if (c != '\0') {
				*to++ = c;
				s += 4;
				continue;
			}
		}
		*to++ = *s++;
	}
	*to = '\0';
}

/*
 * Cuts the next word, which ends at a single blank, off `*at`. Returns NULL at the end or if the
 * word is empty.
 */
static char *cut_word(char **at)
{
	char *word = *at, *blank;

	if (!word || *word == '\0' || *word == ' ')
		return NULL;
	blank = strchr(word, ' ');
	if (blank)
		*blank = '\0';
	*at = blank ? blank + 1 : NULL;
	return word;
}

static bool parse_device_number(const char *word, uint32_t *ret_major, uint32_t *ret_minor)
{
	struct span text = { word, strlen(word) };

	return take_u32(&text, 10, ret_major) && take_word(&text, ":") && take_u32(&text, 10, ret_minor) && text.n == 0;
}

static bool parse_mount_id(const char *word, int *ret_id)
{
	struct span text = { word, strlen(word) };

	return take_int(&text, ret_id) && text.n == 0;
}

/*
 * Parses everything after the "-" of a mountinfo line. The source may be empty (two blanks in a
 * row).
 */
static bool parse_mount_end(char *at, struct graft_mountinfo *item)
{
	char *blank;

	item->fs_type = cut_word(&at);
	if (!item->fs_type || !at)
		return false;
	blank = strchr(at, ' ');
	if (!blank)
		return false;
	*blank = '\0';
	decode_octal(at);
	item->source = at;
	item->super_options = blank + 1;
	return true;
}

/* Cuts a copy of the line into pieces, to which the item points. */
static int parse_mount(struct span text, struct graft_arena *arena, void *ret_item)
{
	char *line = has_nul(text) ? NULL : graft_arena_strndup(arena, text.s, text.n), *words[6], *word;
	struct graft_mountinfo *item = ret_item;

	if (!line)
		return has_nul(text) ? 0 : -1;
	for (size_t i = 0; i < 6; i++) {
		words[i] = cut_word(&line);
		if (!words[i])
			return 0;
	}
	if (!parse_mount_id(words[0], &item->mount_id) || !parse_mount_id(words[1], &item->parent_id) ||
	    !parse_device_number(words[2], &item->major, &item->minor))
		return 0;
	decode_octal(words[3]);
	decode_octal(words[4]);
	item->root = words[3];
	item->mount_point = words[4];
	item->options = words[5];
	do {
		word = cut_word(&line);
		if (!word)
			return 0;
		item->shared = item->shared || graft_starts_with(word, "shared:");
	} while (strcmp(word, "-") != 0);
	return parse_mount_end(line, item);
}

int graft_procfs_mountinfo(const char *text, size_t length, struct graft_arena *arena,
			   struct graft_mountinfo **ret_items, size_t *ret_n)
{
	return read_items(text, length, arena, sizeof(**ret_items), parse_mount, ret_items, ret_n);
}

int graft_procfs_cgroup(const char *text, size_t length, struct graft_arena *arena,
			struct graft_cgroup_entry **ret_items, size_t *ret_n, struct graft_error *err)
{
	struct span rest = { text, length }, line;
	struct graft_cgroup_entry *items = NULL;
	size_t n = 0;

	while (next_line(&rest, &line)) {
		char *copy = graft_arena_strndup(arena, line.s, line.n);
		char *controllers = copy ? strchr(copy, ':') : NULL;
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		struct graft_cgroup_entry *item;

		if (!copy)
			return graft_fail_memory(err);
		if (line.n == 0)
			continue;
		if (!path || has_nul(line))
			return graft_fail(err, GRAFT_FORMAT, 0, "malformed cgroup entry: %s", copy);
		*path = '\0';
		item = graft_arena_push(arena, &items, &n, sizeof(*item));
		if (!item)
			return graft_fail_memory(err);
		*item = (struct graft_cgroup_entry){ .controllers = controllers + 1, .path = path + 1 };
	}
	*ret_items = items;
	*ret_n = n;
	return 0;
}

/* Removes exactly `digits` hexadecimal digits from the front. */
static bool take_hex(struct span *text, size_t digits, uint32_t *ret_value)
{
	struct span number = { text->s, digits };

	if (text->n < digits || !take_u32(&number, 16, ret_value) || number.n != 0)
		return false;
	text->s += digits;
	text->n -= digits;
	return true;
}

bool graft_pci_parse(const char *text, struct graft_pci_address *ret_address)
{
	const char *colon = strchr(text, ':');
	struct span rest = { text, strlen(text) };
	size_t digits = colon ? (size_t)(colon - text) : 0;
	struct graft_pci_address address;

	if (digits < 4 || digits > 8 || !take_hex(&rest, digits, &address.domain) || !take_word(&rest, ":") ||
	    !take_hex(&rest, 2, &address.bus) || !take_word(&rest, ":") || !take_hex(&rest, 2, &address.device) ||
	    !take_word(&rest, ".") || !take_hex(&rest, 1, &address.function) || rest.n != 0)
		return false;
	if (address.device > 0x1f || address.function > 7)
		return false;
	*ret_address = address;
	return true;
}

const char *graft_pci_sysfs_name(const char *address, struct graft_arena *arena)
{
	struct graft_pci_address pci;

	if (!graft_pci_parse(address, &pci))
		return NULL;
	return graft_arena_printf(arena, "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.device, pci.function);
}

int graft_pci_compare(const struct graft_pci_address *a, const struct graft_pci_address *b)
{
	const uint32_t left[] = { a->domain, a->bus, a->device, a->function };
	const uint32_t right[] = { b->domain, b->bus, b->device, b->function };

	for (size_t i = 0; i < 4; i++) {
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	}
	return 0;
}

const char *graft_procfs_without_device_files(const char *text, struct graft_arena *arena, bool *ret_changed)
{
	static const char yes[] = "ModifyDeviceFiles: 1";
	const size_t length = strlen(yes);
	char *copy = graft_arena_strdup(arena, text);
	struct span rest = { copy, copy ? strlen(copy) : 0 }, line;
	bool forbidden = false;

	*ret_changed = false;
	while (next_line(&rest, &line)) {
		if (line.n != length)
			continue;
		if (memcmp(line.s, yes, length) == 0) {
			copy[line.s - copy + (ptrdiff_t)length - 1] = '0';
			*ret_changed = true;
		} else if (memcmp(line.s, GRAFT_PARAMS_NO_DEVICE_FILES, length) == 0) {
			forbidden = true;
		}
	}
	*ret_changed = *ret_changed && !forbidden;
	return copy;
}

bool graft_procfs_is_in_container(const char *ids)
{
	return ids && strpbrk(ids, " \t") != NULL;
}

const char *graft_procfs_option(const struct graft_command_line *line, const char *name)
{
	const char *end = line->text + line->length;
	size_t n = strlen(name);

	for (const char *at = line->text; at < end; at += strlen(at) + 1) {
		const char *next = at + strlen(at) + 1;

		if (strncmp(at, name, n) != 0)
			continue;
		if (at[n] == '=')
			return at + n + 1;
		if (at[n] == '\0' && next < end)
			return next;
	}
	return NULL;
}

/* Reads a field of /proc/PID/stat that is a number, from the fourth on, which follows the state. */
static bool read_stat_number(const char *state, int field, uint64_t *ret_number)
{
	const char *at = state;
	char *end;

	for (int i = 3; at && i < field; i++)
		at = strchr(at + 1, ' ');
	if (!at || at[1] < '0' || at[1] > '9')
		return false;
	*ret_number = strtoull(at + 1, &end, 10);
	return *end == ' ' || *end == '\n' || *end == '\0';
}

/* Returns the state, after the name, or NULL. */
static const char *find_stat_state(const char *text)
{
	const char *end = strrchr(text, ')');

	return end && end[1] == ' ' && end[2] != '\0' ? end + 2 : NULL;
}

bool graft_procfs_stat(const char *text, char *ret_state, uint64_t *ret_start)
{
	const char *state = find_stat_state(text);

	if (!state)
		return false;
	*ret_state = *state;
	return read_stat_number(state, 22, ret_start);
}

bool graft_procfs_family(const char *text, struct graft_process_family *ret_family)
{
	const char *state = find_stat_state(text), *name = strchr(text, '(');
	uint64_t parent, user, system;
	size_t length;

	if (!state || !name || !read_stat_number(state, 4, &parent) || parent > INT_MAX ||
	    !read_stat_number(state, 16, &user) || !read_stat_number(state, 17, &system) || user + system < user)
		return false;
	length = (size_t)(state - 2 - ++name);
	if (length >= sizeof(ret_family->name))
		return false;
	*ret_family = (struct graft_process_family){ .parent = (int)parent, .children_ticks = user + system };
	memcpy(ret_family->name, name, length);
	return true;
}
