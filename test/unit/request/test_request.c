/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "request/request.h"

static struct graft_request *new_request(void)
{
	struct graft_request *request = graft_request_new();

	assert_non_null(request);
	assert_int_equal(request->version, GRAFT_REQUEST_VERSION);
	return request;
}

static void fails(int result, const struct graft_error *err, const char *text)
{
	assert_int_equal(result, -1);
	assert_int_equal(err->status, GRAFT_INVALID);
	assert_string_equal(err->msg, text);
	assert_int_equal(err->sys, 0);
}

static void test_device_words(void **state)
{
	static const struct {
		const char *text;
		enum graft_device_kind kind;
		uint32_t index, mig_index;
		const char *bus_id;
	} rows[] = {
		{ "all", GRAFT_DEVICE_ALL, 0, 0, NULL },
		{ "ALL", GRAFT_DEVICE_ALL, 0, 0, NULL },
		{ "alll", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "0", GRAFT_DEVICE_INDEX, 0, 0, NULL },
		{ "15", GRAFT_DEVICE_INDEX, 15, 0, NULL },
		{ " +7", GRAFT_DEVICE_INDEX, 7, 0, NULL },
		{ "007", GRAFT_DEVICE_INDEX, 7, 0, NULL },
		{ "4294967295", GRAFT_DEVICE_INDEX, 4294967295u, 0, NULL },
		{ "4294967296", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "99999999999999999999999999", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "-1", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "-0", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "+", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ " ", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "0x1", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "1 ", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "1a", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "GPU-3c8e4f4a-1111-2222-3333-444455556666", GRAFT_DEVICE_UUID, 0, 0, NULL },
		{ "gpu-3C8E", GRAFT_DEVICE_UUID, 0, 0, NULL },
		{ "GPU-", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "GPU", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "0000:1b:00.0", GRAFT_DEVICE_PCI, 0, 0, "00000000:1b:00.0" },
		{ "00000000:1B:00.0", GRAFT_DEVICE_PCI, 0, 0, "00000000:1b:00.0" },
		{ "0:1c:0", GRAFT_DEVICE_PCI, 0, 0, "00000000:1c:00.0" },
		{ "1b:1c:2.7trailing", GRAFT_DEVICE_PCI, 0, 0, "0000001b:1c:02.0" },
		{ "fffffffff:1c:0", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "1c:00.0", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "0:1c0:0", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "0:1c:", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ ":1c:0", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "0:1", GRAFT_DEVICE_MIG_INDEX, 0, 1, NULL },
		{ "12:34", GRAFT_DEVICE_MIG_INDEX, 12, 34, NULL },
		{ "0:", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "0:-1", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "0:1x", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "MIG-", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "mig-aaaa", GRAFT_DEVICE_MIG_UUID, 0, 0, NULL },
		/* SPEC libnvidia-container 7.2: these two mean nothing as a device word */
		{ "none", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "void", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
		{ "../../etc", GRAFT_DEVICE_UNKNOWN, 0, 0, NULL },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = new_request();
		const struct graft_device_word *word;

		assert_int_equal(graft_request_devices(request, rows[i].text, &err), 0);
		assert_int_equal(request->n_devices, 1);
		word = &request->devices[0];
		if (word->kind != rows[i].kind)
			fail_msg("'%s' is %s instead of %s", rows[i].text, graft_device_kind_names[word->kind],
				 graft_device_kind_names[rows[i].kind]);
		assert_string_equal(word->text, rows[i].text);
		assert_int_equal(word->index, rows[i].index);
		assert_int_equal(word->mig_index, rows[i].mig_index);
		if (rows[i].bus_id)
			assert_string_equal(word->bus_id, rows[i].bus_id);
		else
			assert_null(word->bus_id);
		assert_null(word->uuid);
		request = graft_request_free(request);
		assert_null(request);
	}
}

static void test_old_mig_names(void **state)
{
	static const struct {
		const char *text, *uuid;
		uint32_t gi, ci;
	} rows[] = {
		{ "MIG-GPU-3c8e/7/0", "GPU-3c8e", 7, 0 }, { "mig-gpu-3c8e/13/2", "gpu-3c8e", 13, 2 },
		{ "MIG-GPU-3c8e/7", NULL, 0, 0 },         { "MIG-GPU-3c8e/7/", NULL, 0, 0 },
		{ "MIG-GPU-3c8e/7/0/1", NULL, 0, 0 },     { "MIG-GPU-3c8e/-7/0", NULL, 0, 0 },
		{ "MIG-GPU-3c8e", NULL, 0, 0 },           { "MIG-3c8e/7/0", NULL, 0, 0 },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = new_request();

		assert_int_equal(graft_request_devices(request, rows[i].text, &err), 0);
		assert_int_equal(request->devices[0].kind, GRAFT_DEVICE_MIG_UUID);
		if (rows[i].uuid)
			assert_string_equal(request->devices[0].uuid, rows[i].uuid);
		else
			assert_null(request->devices[0].uuid);
		assert_int_equal(request->devices[0].gi, rows[i].gi);
		assert_int_equal(request->devices[0].ci, rows[i].ci);
		(void)graft_request_free(request);
	}
}

static void test_device_lists(void **state)
{
	static const struct {
		const char *first, *second; /* two uses of the option */
		const char *words;          /* what is kept */
	} rows[] = {
		{ NULL, NULL, "" },          { "", "", "" },
		{ ",,,", NULL, "" },         { "0,1", NULL, "0 1" },
		{ ",0,,1,", "2", "0 1 2" },  { "0,0,0", NULL, "0 0 0" },
		{ "all,junk", NULL, "all" }, { "0,all,1", "2", "0 all" },
		{ "all", "all", "all" },     { "junk,all", NULL, "junk all" },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = new_request();
		struct graft_buffer text = { 0 };

		assert_int_equal(graft_request_devices(request, rows[i].first, &err), 0);
		assert_int_equal(graft_request_devices(request, rows[i].second, &err), 0);
		for (size_t j = 0; j < request->n_devices; j++)
			graft_buffer_printf(&text, "%s%s", j > 0 ? " " : "", request->devices[j].text);
		assert_string_equal(graft_buffer_text(&text), rows[i].words);
		graft_buffer_done(&text);
		(void)graft_request_free(request);
	}
}

static void test_visible_devices(void **state)
{
	static const struct {
		const char *value;
		bool is_void;
		size_t n;
	} rows[] = {
		{ NULL, true, 0 }, { "", true, 0 },     { "void", true, 0 },    { "none", false, 0 },
		{ "0", false, 1 }, { "all", false, 1 }, { "none,0", false, 2 }, { "0,void", false, 2 },
	};
	struct graft_error err;
	bool is_void;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = new_request();

		assert_int_equal(graft_request_visible_devices(request, rows[i].value, &is_void, &err), 0);
		assert_int_equal(is_void, rows[i].is_void);
		assert_int_equal(request->n_devices, rows[i].n);
		(void)graft_request_free(request);
	}
}

static void test_requirements_are_counted(void **state)
{
	struct graft_request *request = new_request();
	struct graft_error err;

	for (unsigned int i = 0; i < GRAFT_REQUIREMENTS_MAX; i++)
		assert_int_equal(graft_request_requirement(request, "not even an expression", &err), 0);
	fails(graft_request_requirement(request, "cuda>=12", &err), &err, "too many requirements");
	assert_int_equal(request->n_requirements, GRAFT_REQUIREMENTS_MAX);
	(void)graft_request_free(request);
}

static void test_mig_lists(void **state)
{
	static const struct {
		const char *list;
		bool flag;
		const char *error;
	} rows[] = {
		{ NULL, false, NULL },
		{ "", false, NULL },
		{ "all", true, NULL },
		{ ",All,all", true, NULL },
		{ "0", false, "0: only 'all' devices are currently supported" },
		{ "all,GPU-1", false, "GPU-1: only 'all' devices are currently supported" },
		{ "al", false, "al: only 'all' devices are currently supported" },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool flag = false;
		int result = graft_request_mig(&flag, rows[i].list, &err);

		if (rows[i].error)
			fails(result, &err, rows[i].error);
		else
			assert_int_equal(result, 0);
		assert_int_equal(flag, rows[i].flag);
	}
}

static void test_imex_channels(void **state)
{
	static const struct {
		const char *list, *ids, *error;
	} rows[] = {
		{ NULL, "", NULL },
		{ "", "", NULL },
		{ "0", "0", NULL },
		{ ",3,,1,3", "3 1 3", NULL },
		{ "1048575", "1048575", NULL },
		{ "1048576", "", "unsupported IMEX channel value: 1048576" },
		{ "1,99999999999999999999", "", "unsupported IMEX channel value: 99999999999999999999" },
		{ "2,all", "", "unsupported IMEX channel value: all" },
		{ "-1", "", "unsupported IMEX channel value: -1" },
		{ "1x", "", "unsupported IMEX channel value: 1x" },
		{ " 1", "", "unsupported IMEX channel value:  1" },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = new_request();
		struct graft_buffer text = { 0 };
		int result = graft_request_imex(request, rows[i].list, &err);

		if (rows[i].error)
			fails(result, &err, rows[i].error);
		else
			assert_int_equal(result, 0);
		for (size_t j = 0; j < request->n_imex_channels; j++)
			graft_buffer_printf(&text, "%s%u", j > 0 ? " " : "", request->imex_channels[j].id);
		assert_string_equal(graft_buffer_text(&text), rows[i].ids);
		graft_buffer_done(&text);
		(void)graft_request_free(request);
	}
}

/* SPEC runtime-and-hook 7.11, 14.15 */
static void test_imex_words(void **state)
{
	static const struct {
		const char *words[3];
		const char *ids, *error;
		bool all;
	} rows[] = {
		{ { "3", "4" }, "3 4", NULL, false },
		{ { "0", "channel0", "00" }, "0", NULL, false },
		{ { "channel1048575", "2" }, "1048575 2", NULL, false },
		{ { "all", "7" }, "7", NULL, true },
		{ { "bogus" }, "", "invalid channel ID bogus: must be a number, or 'channel' and a number", false },
		{ { "channel" }, "", "invalid channel ID channel: must be a number, or 'channel' and a number", false },
		{ { "" }, "", "invalid channel ID : must be a number, or 'channel' and a number", false },
		{ { "none" }, "", "invalid channel ID none: must be a number, or 'channel' and a number", false },
		{ { "1,2" }, "", "invalid channel ID 1,2: must be a number, or 'channel' and a number", false },
		{ { "-1" }, "", "invalid channel ID -1: must be a number, or 'channel' and a number", false },
		{ { "1", "1048576" }, "1", "invalid channel ID 1048576: must be in the range [0, 1048575]", false },
		{ { "99999999999999999999" },
		  "",
		  "invalid channel ID 99999999999999999999: must be in the range [0, 1048575]",
		  false },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = new_request();
		struct graft_buffer text = { 0 };
		int result = 0;

		for (size_t j = 0; j < GRAFT_COUNT(rows[i].words) && rows[i].words[j] && result == 0; j++)
			result = graft_request_imex_word(request, rows[i].words[j], &err);
		if (rows[i].error)
			fails(result, &err, rows[i].error);
		else
			assert_int_equal(result, 0);
		for (size_t j = 0; j < request->n_imex_channels; j++)
			graft_buffer_printf(&text, "%s%u", j > 0 ? " " : "", request->imex_channels[j].id);
		assert_string_equal(graft_buffer_text(&text), rows[i].ids);
		assert_int_equal(request->all_imex_channels, rows[i].all);
		graft_buffer_done(&text);
		(void)graft_request_free(request);
	}
}

static void test_compat_modes(void **state)
{
	static const char only_one[] = "only one cuda-compat-mode can be specified at a time";
	static const struct {
		const char *first, *second;
		enum graft_compat_mode mode;
		const char *error; /* of the second, or of the first without a second */
	} rows[] = {
		{ NULL, NULL, GRAFT_COMPAT_MOUNT, NULL },
		{ "mount", NULL, GRAFT_COMPAT_MOUNT, NULL },
		{ "ldconfig", NULL, GRAFT_COMPAT_LDCONFIG, NULL },
		{ "disabled", NULL, GRAFT_COMPAT_DISABLED, NULL },
		{ "mount", "mount", GRAFT_COMPAT_MOUNT, NULL },
		{ "mount", "ldconfig", GRAFT_COMPAT_MOUNT, only_one },
		{ "ldconfig", "mount", GRAFT_COMPAT_LDCONFIG, only_one },
		{ "ldconfig", "disabled", GRAFT_COMPAT_DISABLED, NULL },
		{ "disabled", "mount", GRAFT_COMPAT_DISABLED, NULL },
		{ "Mount", NULL, GRAFT_COMPAT_MOUNT, "unsupported cuda-compat-mode: Mount" },
		{ "", NULL, GRAFT_COMPAT_MOUNT, "unsupported cuda-compat-mode: " },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = new_request();
		int result = rows[i].first ? graft_request_compat_mode(request, rows[i].first, &err) : 0;

		if (rows[i].second)
			result = graft_request_compat_mode(request, rows[i].second, &err);
		if (rows[i].error)
			fails(result, &err, rows[i].error);
		else
			assert_int_equal(result, 0);
		assert_int_equal(request->compat_mode, rows[i].mode);
		(void)graft_request_free(request);
	}
}

static void test_capabilities(void **state)
{
	static const struct {
		const char *list;
		uint32_t wanted;
		const char *error;
	} rows[] = {
		{ NULL, 0, NULL },
		{ "", 0, NULL },
		{ "compute", GRAFT_CAP_COMPUTE, NULL },
		{ "compute,utility,", GRAFT_CAP_COMPUTE | GRAFT_CAP_UTILITY, NULL },
		{ "all", GRAFT_CAP_ALL, NULL },
		{ "display,ngx,video,graphics,compat32",
		  GRAFT_CAP_DISPLAY | GRAFT_CAP_NGX | GRAFT_CAP_VIDEO | GRAFT_CAP_GRAPHICS | GRAFT_CAP_COMPAT32, NULL },
		{ "compute,magic", 0, "unsupported capability: magic" },
		{ "Compute", 0, "unsupported capability: Compute" },
		{ "comput", 0, "unsupported capability: comput" },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = new_request();
		int result = graft_request_capabilities(request, rows[i].list, &err);

		if (rows[i].error)
			fails(result, &err, rows[i].error);
		else
			assert_int_equal(result, 0);
		assert_int_equal(request->capabilities, rows[i].wanted);
		(void)graft_request_free(request);
	}
}

static void fill(struct graft_request *request)
{
	struct graft_error err;

	assert_int_equal(graft_request_devices(request, "0,GPU-1,0:1b:0,MIG-GPU-2/3/4,1:2,junk", &err), 0);
	assert_int_equal(graft_request_capabilities(request, "compute,compat32", &err), 0);
	assert_int_equal(graft_request_requirement(request, "cuda>=12.0 \"quoted\"\n", &err), 0);
	assert_int_equal(graft_request_imex(request, "0,5", &err), 0);
	assert_int_equal(graft_request_compat_mode(request, "ldconfig", &err), 0);
	request->mig_config = request->mig_monitor = true;
	request->no_cgroups = request->no_devbind = true;
	request->no_persistenced = request->no_fabricmanager = request->no_gsp_firmware = true;
}

static void test_json_form(void **state)
{
	struct graft_request *request = new_request(), *again = NULL;
	struct graft_buffer text = { 0 }, text_again = { 0 };
	struct graft_error err = { 0 };
	char path[128] = "";

	fill(request);
	graft_request_write(request, &text);
	if (graft_request_read(graft_buffer_text(&text), text.length, &again, &err) < 0)
		fail_msg("%s: %s", err.ctx, err.msg);
	if (!graft_record_equal(&graft_request_record, request, again, path, sizeof(path)))
		fail_msg("differs at %s", path);
	graft_request_write(again, &text_again);
	assert_string_equal(graft_buffer_text(&text), graft_buffer_text(&text_again));
	graft_buffer_done(&text);
	graft_buffer_done(&text_again);
	(void)graft_request_free(request);
	(void)graft_request_free(again);
}

static void test_json_is_read_strictly(void **state)
{
	static const struct {
		const char *json;
		enum graft_status status;
		const char *message;
	} rows[] = {
		{ "{\"version\": 2}", GRAFT_UNSUPPORTED, "unsupported request version: 2" },
		{ "{}", GRAFT_FORMAT, "version: is missing" },
		{ "{\"version\": 1, \"devices\": \"all\"}", GRAFT_FORMAT, "devices: must be a list" },
		{ "{\"version\": 1, \"devices\": [{\"kind\": \"every\", \"text\": \"x\"}]}", GRAFT_FORMAT,
		  "devices[0].kind: unknown word 'every'" },
		{ "{\"version\": 1, \"capabilities\": [\"magic\"]}", GRAFT_FORMAT,
		  "capabilities[0]: unknown word 'magic'" },
		{ "{\"version\": 1, \"arena\": 1}", GRAFT_FORMAT, "arena: unknown member" },
		{ "", GRAFT_FORMAT, "invalid JSON at line 1, column 1: unexpected end" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_request *request = NULL;
		struct graft_error err = { 0 };

		assert_int_equal(graft_request_read(rows[i].json, strlen(rows[i].json), &request, &err), -1);
		assert_null(request);
		assert_int_equal(err.status, rows[i].status);
		assert_string_equal(err.msg, rows[i].message);
	}
}

static void test_names_are_unique(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(graft_device_kind_names); i++) {
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(graft_device_kind_names[i], graft_device_kind_names[j]);
	}
	for (size_t i = 0; i < GRAFT_COUNT(graft_compat_mode_names); i++) {
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(graft_compat_mode_names[i], graft_compat_mode_names[j]);
	}
}

/* Fails the n-th allocation from now on; 0 = none. Linked with --wrap=malloc,--wrap=calloc. */
static unsigned int fail_at;
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool is_time_to_fail(void)
{
	return fail_at > 0 && --fail_at == 0;
}

void *__wrap_malloc(size_t size)
{
	return is_time_to_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return is_time_to_fail() ? NULL : __real_calloc(n, size);
}

/*
 * A request so large that its arena needs several blocks. Returns -1 when an allocation failed, and
 * checks that it was reported.
 */
static int build(const char *list)
{
	struct graft_request *request = graft_request_new();
	struct graft_error err = { 0 };
	bool is_void;
	int result;

	if (!request)
		return -1;
	result = graft_request_visible_devices(request, list, &is_void, &err);
	for (unsigned int i = 0; i < 8 && result == 0; i++)
		result = graft_request_requirement(request, list, &err);
	if (result == 0)
		result = graft_request_imex(request, "1,2,3", &err);
	if (result == 0)
		result = graft_request_imex_word(request, "channel4", &err);
	if (result < 0)
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	for (size_t i = 0; i < request->n_devices; i++)
		assert_non_null(request->devices[i].text);
	(void)graft_request_free(request);
	return result;
}

static void test_every_allocation_may_fail(void **state)
{
	unsigned int n = 0;
	char *list = malloc(8000);

	assert_non_null(list);
	list[0] = '\0';
	for (size_t at = 0; at < 7900; at += 13)
		memcpy(list + at, "0000:1b:00.0,", 14);
	do {
		fail_at = ++n;
	} while (build(list) < 0 && n < 1000);
	fail_at = 0;
	assert_in_range(n, 5, 999);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_words),
		cmocka_unit_test(test_old_mig_names),
		cmocka_unit_test(test_device_lists),
		cmocka_unit_test(test_visible_devices),
		cmocka_unit_test(test_requirements_are_counted),
		cmocka_unit_test(test_mig_lists),
		cmocka_unit_test(test_imex_channels),
		cmocka_unit_test(test_imex_words),
		cmocka_unit_test(test_compat_modes),
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_json_form),
		cmocka_unit_test(test_json_is_read_strictly),
		cmocka_unit_test(test_names_are_unique),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
