/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request: parses values of options and variables into a request, and reads and writes its JSON
 * form. Knows the syntax of device words, not which devices exist: a word of no known form is kept
 * as UNKNOWN, so that selection can fail and name it.
 */
#include "request/request.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* A request is a few lists of words; a megabyte of them is not legitimate. */
#define ARENA_MAX ((size_t)4 << 20)

const char *const graft_device_kind_names[7] = { "unknown", "all", "index", "uuid", "pci", "mig-uuid", "mig-index" };
const char *const graft_compat_mode_names[3] = { "mount", "ldconfig", "disabled" };

static const struct graft_field device_fields[] = {
	GRAFT_F_ENUM(struct graft_device_word, kind, graft_device_kind_names, GRAFT_COUNT(graft_device_kind_names),
		     true, "form of the name; an unknown one matches no device"),
	GRAFT_F_STRING(struct graft_device_word, text, true, "the name as given"),
	GRAFT_F_U32(struct graft_device_word, index, false, "index of the GPU (index, mig-index)"),
	GRAFT_F_U32(struct graft_device_word, mig_index, false, "index of the MIG device in its GPU (mig-index)"),
	GRAFT_F_STRING(struct graft_device_word, bus_id, false, "PCI address with a 32-bit domain (pci)"),
	GRAFT_F_STRING(struct graft_device_word, uuid, false,
		       "UUID of the GPU in the old form MIG-GPU-UUID/GI/CI (mig-uuid)"),
	GRAFT_F_U32(struct graft_device_word, gi, false, "GPU instance in that form"),
	GRAFT_F_U32(struct graft_device_word, ci, false, "compute instance in that form"),
};
static const struct graft_record device_record = { "device_word", sizeof(struct graft_device_word), device_fields,
						   GRAFT_COUNT(device_fields) };

static const struct graft_field imex_fields[] = {
	GRAFT_F_U32(struct graft_imex_channel, id, true, "number of the channel"),
};
static const struct graft_record imex_record = { "imex_channel", sizeof(struct graft_imex_channel), imex_fields,
						 GRAFT_COUNT(imex_fields) };

static const struct graft_field request_fields[] = {
	GRAFT_F_U32(struct graft_request, version, true, "version of this format"),
	GRAFT_F_RECORDS(struct graft_request, devices, &device_record, "device names in the order given"),
	GRAFT_F_FLAGS(struct graft_request, capabilities, graft_capability_names, GRAFT_CAP_BITS,
		      "driver capabilities asked for"),
	GRAFT_F_STRINGS(struct graft_request, requirements, "requirement expressions; all must hold"),
	GRAFT_F_BOOL(struct graft_request, mig_config, "may create and destroy MIG devices"),
	GRAFT_F_BOOL(struct graft_request, mig_monitor, "may watch all MIG devices"),
	GRAFT_F_RECORDS(struct graft_request, imex_channels, &imex_record, "IMEX channels"),
	GRAFT_F_ENUM(struct graft_request, compat_mode, graft_compat_mode_names, GRAFT_COUNT(graft_compat_mode_names),
		     false, "how the image's CUDA forward-compatibility libraries are used; absent: mount"),
	GRAFT_F_BOOL(struct graft_request, no_cgroups, "the caller sets the device rules"),
	GRAFT_F_BOOL(struct graft_request, no_devbind, "the caller provides the device nodes"),
	GRAFT_F_BOOL(struct graft_request, no_persistenced, "without the socket of nvidia-persistenced"),
	GRAFT_F_BOOL(struct graft_request, no_fabricmanager, "without the socket of the fabric manager"),
	GRAFT_F_BOOL(struct graft_request, no_gsp_firmware, "without GSP firmware files"),
	GRAFT_F_BOOL(struct graft_request, no_mps, "without the pipe directory of MPS"),
	GRAFT_F_STRING(struct graft_request, mps_pipe, false, "pipe directory of the MPS daemon of the GPU"),
	GRAFT_F_STRING(struct graft_request, mps_shm, false, "its shared memory, for /dev/shm"),
	GRAFT_F_FLAGS(struct graft_request, gates, graft_gate_names, GRAFT_GATE_MAX,
		      "further parts of the host to give, if it has them"),
	GRAFT_F_BOOL(struct graft_request, all_imex_channels, "every IMEX channel that the host has"),
	GRAFT_F_BOOL(struct graft_request, management,
		     "every device node of the driver instead of those of selected GPUs, to manage all GPUs"),
	GRAFT_F_BOOL(struct graft_request, explicit_driver_libraries, "also libraries that usually belong to an image"),
	GRAFT_F_BOOL(struct graft_request, all_usable,
		     "'all' means the MIG devices of a GPU in MIG mode instead of the GPU, and excludes GPUs that only "
		     "drive displays"),
};
const struct graft_record graft_request_record = { "request", sizeof(struct graft_request), request_fields,
						   GRAFT_COUNT(request_fields) };

struct graft_request *graft_request_new(void)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_request *request = arena ? graft_arena_alloc(arena, sizeof(*request)) : NULL;

	if (!request) {
		(void)graft_arena_free(arena);
		return NULL;
	}
	request->version = GRAFT_REQUEST_VERSION;
	request->arena = arena;
	return request;
}

struct graft_request *graft_request_free(struct graft_request *request)
{
	if (request)
		(void)graft_arena_free(request->arena);
	return NULL;
}

void graft_request_write(const struct graft_request *request, struct graft_buffer *out)
{
	graft_record_write(&graft_request_record, request, out);
}

int graft_request_read(const char *json, size_t length, struct graft_request **ret_request, struct graft_error *err)
{
	struct graft_request *request = graft_request_new();
	uint32_t version;

	if (!request)
		return graft_fail_memory(err);
	request->version = 0;
	if (graft_record_read(&graft_request_record, json, length, request->arena, request, err) < 0) {
		(void)graft_request_free(request);
		return graft_wrap(err, "request");
	}
	version = request->version;
	if (version != GRAFT_REQUEST_VERSION) {
		(void)graft_request_free(request);
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "unsupported request version: %u", version);
	}
	*ret_request = request;
	return 0;
}

/* One item of a comma-separated list. */
struct item {
	const char *at;
	size_t length;
};

/* Finds the next non-empty item of the list at *cursor. Returns false at the end. */
static bool next_request_item(const char **cursor, struct item *ret_item)
{
	const char *at = *cursor;

	if (!at)
		return false;
	at += strspn(at, ",");
	ret_item->at = at;
	ret_item->length = strcspn(at, ",");
	*cursor = at + ret_item->length;
	return ret_item->length > 0;
}

static bool item_is(const struct item *item, const char *word)
{
	return item->length == strlen(word) && strncasecmp(item->at, word, item->length) == 0;
}

/*
 * Reads up to `max_digits` digits. Returns what follows them, or NULL if there are no digits or the
 * value exceeds 32 bits.
 */
static const char *read_request_number(const char *at, unsigned int base, size_t max_digits, uint32_t *ret_value)
{
	uint64_t value = 0;
	size_t n = 0;

	for (; n < max_digits && (base == 16 ? isxdigit((unsigned char)*at) : isdigit((unsigned char)*at)); at++, n++) {
		int c = tolower((unsigned char)*at);

		value = value * base + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
		if (value > UINT32_MAX)
			return NULL;
	}
	*ret_value = (uint32_t)value;
	return n > 0 ? at : NULL;
}

/*
 * Reads a decimal number at the start of an item. SPEC libnvidia-container 7.2: the rules of
 * strtoumax(3), so leading blanks and a plus sign are accepted. A minus sign, which that function
 * would accept and wrap around, is not.
 */
static const char *read_index(const char *at, uint32_t *ret_value)
{
	while (isspace((unsigned char)*at))
		at++;
	if (*at == '+')
		at++;
	return read_request_number(at, 10, SIZE_MAX, ret_value);
}

static bool has_prefix(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncasecmp(text, prefix, length) == 0 && text[length] != '\0';
}

/*
 * Parses "<domain>:<bus>:<device>" in hexadecimal; anything after the third field is ignored (SPEC
 * libnvidia-container 7.2).
 */
static bool parse_pci(struct graft_arena *arena, struct graft_device_word *word)
{
	uint32_t domain, bus, device;
	const char *at = read_request_number(word->text, 16, SIZE_MAX, &domain);

	at = at && *at == ':' ? read_request_number(at + 1, 16, 2, &bus) : NULL;
	at = at && *at == ':' ? read_request_number(at + 1, 16, 2, &device) : NULL;
	if (!at)
		return false;
	word->kind = GRAFT_DEVICE_PCI;
	word->bus_id = graft_arena_printf(arena, "%08x:%02x:%02x.0", domain, bus, device);
	return true;
}

/* Parses "<gpu>" or "<gpu>:<mig>". */
static bool parse_index(struct graft_device_word *word)
{
	uint32_t index, mig_index;
	const char *at = read_index(word->text, &index);

	if (!at)
		return false;
	if (*at == '\0') {
		word->kind = GRAFT_DEVICE_INDEX;
		word->index = index;
		return true;
	}
	at = *at == ':' ? read_request_number(at + 1, 10, SIZE_MAX, &mig_index) : NULL;
	if (!at || *at != '\0')
		return false;
	word->kind = GRAFT_DEVICE_MIG_INDEX;
	word->index = index;
	word->mig_index = mig_index;
	return true;
}

/*
 * Parses "MIG-<uuid>" and, into its parts, "MIG-GPU-<uuid>/<gi>/<ci>", the form of drivers before
 * 470.
 */
static bool parse_mig_uuid(struct graft_arena *arena, struct graft_device_word *word)
{
	const char *gpu = word->text + strlen("MIG-");
	const char *slash, *at;
	uint32_t gi, ci;

	if (!has_prefix(word->text, "MIG-"))
		return false;
	word->kind = GRAFT_DEVICE_MIG_UUID;
	slash = has_prefix(gpu, "GPU-") ? strchr(gpu, '/') : NULL;
	at = slash ? read_request_number(slash + 1, 10, SIZE_MAX, &gi) : NULL;
	at = at && *at == '/' ? read_request_number(at + 1, 10, SIZE_MAX, &ci) : NULL;
	if (at && *at == '\0') {
		word->uuid = graft_arena_strndup(arena, gpu, (size_t)(slash - gpu));
		word->gi = gi;
		word->ci = ci;
	}
	return true;
}

static void classify_device_word(struct graft_arena *arena, struct graft_device_word *word)
{
	if (strcasecmp(word->text, "all") == 0)
		word->kind = GRAFT_DEVICE_ALL;
	else if (has_prefix(word->text, "GPU-"))
		word->kind = GRAFT_DEVICE_UUID;
	else if (!parse_mig_uuid(arena, word) && !parse_index(word) && !parse_pci(arena, word))
		word->kind = GRAFT_DEVICE_UNKNOWN;
}

/*
 * "all" ends the list: words after it are dropped, including those of later uses of the option
 * (SPEC libnvidia-container 7.2).
 */
static bool has_all(const struct graft_request *request)
{
	return request->n_devices > 0 && request->devices[request->n_devices - 1].kind == GRAFT_DEVICE_ALL;
}

int graft_request_devices(struct graft_request *request, const char *list, struct graft_error *err)
{
	struct item item;

	while (!has_all(request) && next_request_item(&list, &item)) {
		struct graft_device_word *word = graft_arena_push(request->arena, &request->devices,
								  &request->n_devices, sizeof(*word));

		if (!word)
			return graft_fail_memory(err);
		word->text = graft_arena_strndup(request->arena, item.at, item.length);
		if (word->text)
			classify_device_word(request->arena, word);
		if (graft_arena_failed(request->arena)) {
			request->n_devices--;
			return graft_fail_memory(err);
		}
	}
	return 0;
}

int graft_request_visible_devices(struct graft_request *request, const char *value, bool *ret_void,
				  struct graft_error *err)
{
	*ret_void = !value || value[0] == '\0' || strcmp(value, "void") == 0;
	if (*ret_void || strcmp(value, "none") == 0)
		return 0;
	return graft_request_devices(request, value, err);
}

int graft_request_requirement(struct graft_request *request, const char *expression, struct graft_error *err)
{
	if (request->n_requirements >= GRAFT_REQUIREMENTS_MAX)
		return graft_fail(err, GRAFT_INVALID, 0, "too many requirements");
	if (!graft_arena_push_string(request->arena, &request->requirements, &request->n_requirements, expression))
		return graft_fail_memory(err);
	return 0;
}

int graft_request_mig(bool *flag, const char *list, struct graft_error *err)
{
	bool all = false;
	struct item item;

	while (next_request_item(&list, &item)) {
		if (!item_is(&item, "all"))
			return graft_fail(err, GRAFT_INVALID, 0, "%.*s: only 'all' devices are currently supported",
					  (int)item.length, item.at);
		all = true;
	}
	*flag = *flag || all;
	return 0;
}

static bool parse_channel(const struct item *item, uint32_t *ret_id)
{
	const char *end = read_request_number(item->at, 10, item->length, ret_id);

	return end == item->at + item->length && *ret_id < GRAFT_IMEX_CHANNEL_LIMIT;
}

int graft_request_imex(struct graft_request *request, const char *list, struct graft_error *err)
{
	const char *cursor = list;
	struct item item;
	uint32_t id;

	while (next_request_item(&cursor, &item)) {
		if (!parse_channel(&item, &id))
			return graft_fail(err, GRAFT_INVALID, 0, "unsupported IMEX channel value: %.*s",
					  (int)item.length, item.at);
	}
	while (next_request_item(&list, &item) && parse_channel(&item, &id)) {
		struct graft_imex_channel *slot = graft_arena_push(request->arena, &request->imex_channels,
								   &request->n_imex_channels, sizeof(*slot));

		if (!slot)
			return graft_fail_memory(err);
		slot->id = id;
	}
	return 0;
}

static bool is_channel_known(const struct graft_request *request, uint32_t id)
{
	for (size_t i = 0; i < request->n_imex_channels; i++) {
		if (request->imex_channels[i].id == id)
			return true;
	}
	return false;
}

int graft_request_imex_word(struct graft_request *request, const char *word, struct graft_error *err)
{
	static const char prefix[] = "channel";
	const char *digits = strncmp(word, prefix, strlen(prefix)) == 0 ? word + strlen(prefix) : word;
	struct graft_imex_channel *slot;
	uint32_t id;

	if (strcmp(word, "all") == 0) {
		request->all_imex_channels = true;
		return 0;
	}
	if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
		return graft_fail(err, GRAFT_INVALID, 0,
				  "invalid channel ID %s: must be a number, or 'channel' and a number", word);
	if (!read_request_number(digits, 10, SIZE_MAX, &id) || id >= GRAFT_IMEX_CHANNEL_LIMIT)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid channel ID %s: must be in the range [0, %u]", word,
				  GRAFT_IMEX_CHANNEL_LIMIT - 1);
	if (is_channel_known(request, id))
		return 0;
	slot = graft_arena_push(request->arena, &request->imex_channels, &request->n_imex_channels, sizeof(*slot));
	if (!slot)
		return graft_fail_memory(err);
	slot->id = id;
	return 0;
}

int graft_request_compat_mode(struct graft_request *request, const char *mode, struct graft_error *err)
{
	bool given = request->compat_mode_given;

	for (unsigned int i = 0; i < GRAFT_COUNT(graft_compat_mode_names); i++) {
		if (strcmp(mode, graft_compat_mode_names[i]) != 0)
			continue;
		if (given && (request->compat_mode == GRAFT_COMPAT_DISABLED || i == GRAFT_COMPAT_DISABLED))
			i = GRAFT_COMPAT_DISABLED;
		else if (given && request->compat_mode != i)
			return graft_fail(err, GRAFT_INVALID, 0,
					  "only one cuda-compat-mode can be specified at a time");
		request->compat_mode = (enum graft_compat_mode)i;
		request->compat_mode_given = true;
		return 0;
	}
	return graft_fail(err, GRAFT_INVALID, 0, "unsupported cuda-compat-mode: %s", mode);
}

int graft_request_capabilities(struct graft_request *request, const char *list, struct graft_error *err)
{
	uint32_t capabilities = 0;
	struct item item;

	while (next_request_item(&list, &item)) {
		uint32_t capability = graft_capability_of(item.at, item.length);

		if (capability == 0)
			return graft_fail(err, GRAFT_INVALID, 0, "unsupported capability: %.*s", (int)item.length,
					  item.at);
		capabilities |= capability;
	}
	request->capabilities |= capabilities;
	return 0;
}
