/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_name: the names of the Container Device Interface: vendor, class, device, and their
 * combinations (SPEC ctk-and-cdi 5.2).
 */
#include <string.h>

#include "formats/cdi/cdi.h"
#include "formats/cdi/cdi_check.h"

/* Unlike <ctype.h>, these do not depend on the locale. */
static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_letter_or_digit(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9');
}

/*
 * Checks all characters but the first. `what` is the beginning of the message, `between` the
 * characters also allowed inside.
 */
static int check_name_characters(const char *name, size_t length, const char *what, const char *between,
				 struct graft_error *err)
{
	for (size_t i = 1; i + 1 < length; i++) {
		unsigned char c = (unsigned char)name[i];

		if (is_letter_or_digit(name[i]) || strchr(between, name[i]))
			continue;
		if (c < 0x20 || c > 0x7e)
			return graft_fail(err, GRAFT_INVALID, 0, "%sinvalid character '\\x%02x' in name %s", what, c,
					  cdi_quote_part(name, length));
		return graft_fail(err, GRAFT_INVALID, 0, "%sinvalid character '%c' in name %s", what, c,
				  cdi_quote_part(name, length));
	}
	if (!is_letter_or_digit(name[length - 1]))
		return graft_fail(err, GRAFT_INVALID, 0, "%s%s, should end with a letter or digit", what,
				  cdi_quote_part(name, length));
	return 0;
}

/* Checks a vendor or a class. One letter is enough (SPEC runtime-and-hook Q23). */
static int check_kind_part(const char *name, size_t length, const char *what, struct graft_error *err)
{
	if (length == 0 || !is_letter(name[0]))
		return graft_fail(err, GRAFT_INVALID, 0, "%s%s, should start with letter", what,
				  cdi_quote_part(name, length));
	return check_name_characters(name, length, what, "_-.", err);
}

int graft_cdi_check_vendor(const char *vendor, struct graft_error *err)
{
	return check_kind_part(vendor, strlen(vendor), "invalid vendor. ", err);
}

int graft_cdi_check_class(const char *class_, struct graft_error *err)
{
	return check_kind_part(class_, strlen(class_), "invalid class. ", err);
}

int graft_cdi_check_device(const char *device, struct graft_error *err)
{
	if (device[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "invalid (empty) device name");
	/*
	 * QUIRK: the wrong "class" in this message is the reference's; people search for this text.
	 */
	if (!is_letter_or_digit(device[0]))
		return graft_fail(err, GRAFT_INVALID, 0, "invalid class %s, should start with a letter or digit",
				  cdi_quote(device));
	return check_name_characters(device, strlen(device), "", "_-.:", err);
}

/* A text split into the parts of a qualified name. */
struct parts {
	const char *vendor, *class_, *device;
	size_t vendor_length, class_length;
};

/* Splits "vendor/class" at the first slash. Without a slash, both parts are empty. */
static struct parts split_kind(const char *kind, size_t length)
{
	const char *slash = memchr(kind, '/', length);
	size_t vendor_length = slash ? (size_t)(slash - kind) : 0;

	if (!slash)
		return (struct parts){ .vendor = kind, .class_ = kind };
	return (struct parts){ .vendor = kind,
			       .vendor_length = vendor_length,
			       .class_ = slash + 1,
			       .class_length = length - vendor_length - 1 };
}

static int check_kind(const struct parts *parts, struct graft_error *err)
{
	if (check_kind_part(parts->vendor, parts->vendor_length, "invalid vendor. ", err) < 0)
		return -1;
	return check_kind_part(parts->class_, parts->class_length, "invalid class. ", err);
}

int cdi_check_kind(const char *kind, struct graft_arena *arena, const char **ret_vendor, const char **ret_class,
		   struct graft_error *err)
{
	struct parts parts = split_kind(kind, strlen(kind));

	if (check_kind(&parts, err) < 0)
		return -1;
	*ret_vendor = graft_arena_strndup(arena, parts.vendor, parts.vendor_length);
	*ret_class = graft_arena_strndup(arena, parts.class_, parts.class_length);
	return *ret_vendor && *ret_class ? 0 : graft_fail_memory(err);
}

static int parse_qualified_name(const char *text, struct parts *ret_parts, struct graft_error *err)
{
	const char *equals = text[0] != '/' ? strchr(text, '=') : NULL;
	struct graft_error why = { .status = GRAFT_OK };
	const char *missing = NULL;

	*ret_parts = split_kind(text, equals ? (size_t)(equals - text) : 0);
	ret_parts->device = equals ? equals + 1 : "";
	if (ret_parts->vendor_length == 0)
		missing = "vendor";
	else if (ret_parts->class_length == 0)
		missing = "class";
	else if (ret_parts->device[0] == '\0')
		missing = "device name";
	if (missing)
		return graft_fail(err, GRAFT_INVALID, 0, "unqualified device %s, missing %s", cdi_quote(text), missing);
	if (check_kind(ret_parts, &why) < 0 || graft_cdi_check_device(ret_parts->device, &why) < 0)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid device %s: %s", cdi_quote(text), why.msg);
	return 0;
}

int graft_cdi_parse_name(const char *text, struct graft_arena *arena, struct graft_cdi_name *ret_name,
			 struct graft_error *err)
{
	struct graft_cdi_name name;
	struct parts parts;

	if (parse_qualified_name(text, &parts, err) < 0)
		return -1;
	name.vendor = graft_arena_strndup(arena, parts.vendor, parts.vendor_length);
	name.class_ = graft_arena_strndup(arena, parts.class_, parts.class_length);
	name.device = graft_arena_strdup(arena, parts.device);
	if (!name.vendor || !name.class_ || !name.device)
		return graft_fail_memory(err);
	*ret_name = name;
	return 0;
}

bool graft_cdi_is_qualified(const char *text)
{
	struct parts parts;

	return parse_qualified_name(text, &parts, NULL) == 0;
}

/* --- annotations --- */

#define ANNOTATIONS_MAX ((size_t)256 * 1024)
#define KEY_NAME_MAX    63u
#define KEY_PREFIX_MAX  253u

/*
 * Returns whether there are letters and digits at both ends, and those or characters of `between`
 * inside.
 */
static bool is_name_part(const char *text, size_t length, const char *between)
{
	if (length == 0 || !is_letter_or_digit(text[0]) || !is_letter_or_digit(text[length - 1]))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!is_letter_or_digit(text[i]) && !strchr(between, text[i]))
			return false;
	}
	return true;
}

/* Returns whether it is a DNS name: labels separated by dots, in any case. */
static bool is_domain(const char *text, size_t length)
{
	size_t begin = 0;

	for (size_t i = 0; i <= length; i++) {
		if (i < length && text[i] != '.')
			continue;
		if (!is_name_part(text + begin, i - begin, "-"))
			return false;
		begin = i + 1;
	}
	return length <= KEY_PREFIX_MAX;
}

static bool is_annotation_key(const char *key)
{
	const char *slash = strchr(key, '/'), *name = slash ? slash + 1 : key;

	return (!slash || is_domain(key, (size_t)(slash - key))) && strlen(name) <= KEY_NAME_MAX &&
	       is_name_part(name, strlen(name), "-_.");
}

int graft_cdi_check_annotations(const struct graft_cdi_annotation *annotations, size_t n, struct graft_error *err)
{
	size_t size = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_annotation_key(annotations[i].key))
			return graft_fail(err, GRAFT_INVALID, 0,
					  "invalid annotation %s: the key must be a name of up to 63 letters, digits, "
					  "'-', '_' and '.', after an optional 'domain/'",
					  cdi_quote(annotations[i].key));
		size += strlen(annotations[i].key) + strlen(annotations[i].value);
	}
	return size <= ANNOTATIONS_MAX ? 0
				       : graft_fail(err, GRAFT_INVALID, 0, "annotations of %zu bytes, the limit is %zu",
						    size, ANNOTATIONS_MAX);
}
