/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a specification was made from: the facts of a host, both places where they are kept, and how
 * a changed host is recognised.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "fixture.h"
#include "formats/cdi/cdi_write.h"
#include "plan/cdi_fingerprint.h"

#define ARENA_MAX ((size_t)1 << 20)
#define BOOT      "0bd5b3a1-0d1c-4f2b-9a54-3f7c2b1e8a90"
#define GPUS      "00000000:1b:00.0=GPU-aaaa,00000000:1c:00.0=GPU-bbbb,00000001:1b:00.0=GPU-cccc"
#define FLAGS     "--mode=nvml --csv.file=/a%20b%3B%25"
#define MIG       "00000000:1c:00.0=1/0+2/0"

static struct graft_cdi_fingerprint make(const struct fixture *f, bool gpus)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_fingerprint made;

	assert_int_equal(graft_cdi_fingerprint_make(&f->inventory, gpus, BOOT, arena, &made, &err), 0);
	return made;
}

static void test_make(void **state)
{
	struct graft_cdi_fingerprint made;
	struct fixture f;

	fixture_init(&f);
	f.migs[0].gi = 1;
	f.migs[1].gi = 2;
	f.migs[0].ci = f.migs[1].ci = 0;
	made = make(&f, true);
	assert_string_equal(made.driver_version, "550.54.14");
	assert_string_equal(made.boot_id, BOOT);
	assert_string_equal(made.gpus, GPUS); /* without the excluded one */
	assert_string_equal(made.mig, MIG);
	made = make(&f, false);
	assert_null(made.gpus);
	assert_null(made.mig);
	/* What procfs does not show cannot be compared later. */
	f.inventory.gpus[0].source = "nvml";
	assert_null(make(&f, true).gpus);
	assert_null(make(&f, true).mig);
	f.inventory.n_gpus = 0;
	made = make(&f, true);
	assert_string_equal(made.gpus, "");
	assert_string_equal(made.mig, "");
}

static struct graft_cdi_hook *add_hook(struct graft_cdi_spec *spec)
{
	struct graft_cdi_hook *hook = graft_arena_push(arena, &spec->edits.hooks, &spec->edits.n_hooks, sizeof(*hook));

	hook->stage = "createContainer";
	hook->path = "/usr/bin/nvidia-cdi-hook";
	graft_arena_push_string(arena, &hook->env, &hook->n_env, "NVIDIA_CTK_DEBUG=false");
	return hook;
}

static struct graft_cdi_spec a_spec(bool hooks)
{
	static struct graft_cdi_node node = { .path = "/dev/nvidia0" };
	static struct graft_cdi_device device = { .name = "0", .edits = { .nodes = &node, .n_nodes = 1 } };
	struct graft_cdi_spec spec = { .vendor = "nvidia.com", .class_ = "gpu", .devices = &device, .n_devices = 1 };

	for (int i = 0; hooks && i < 2; i++)
		(void)add_hook(&spec);
	return spec;
}

/* Through text and back, as others will read it. */
static void reread(struct graft_cdi_spec *spec)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer text = { 0 };

	if (graft_cdi_spec_write(spec, GRAFT_CDI_YAML, &text, &err) < 0 ||
	    graft_cdi_spec_read("spec", graft_buffer_text(&text), text.length, arena, spec, &err) < 0)
		fail_msg("%s", err.msg);
	graft_buffer_done(&text);
}

static void test_places(void **state)
{
	static const struct graft_cdi_fingerprint whole = { "550.54.14", GPUS, MIG, BOOT, FLAGS };
	static const struct {
		enum graft_cdi_provenance where;
		bool hooks, groups;
		int stored;
		const char *version;
		size_t n_annotations;
	} rows[] = {
		{ GRAFT_CDI_PROVENANCE_AUTO, true, false, 1, "0.5.0", 0 },
		{ GRAFT_CDI_PROVENANCE_AUTO, true, true, 1, "0.7.0", 5 },
		{ GRAFT_CDI_PROVENANCE_AUTO, false, true, 1, "0.7.0", 5 },
		{ GRAFT_CDI_PROVENANCE_AUTO, false, false, 0, "0.5.0", 0 },
		{ GRAFT_CDI_PROVENANCE_ANNOTATIONS, false, false, 1, "0.6.0", 5 },
		{ GRAFT_CDI_PROVENANCE_ANNOTATIONS, true, false, 1, "0.6.0", 5 },
		{ GRAFT_CDI_PROVENANCE_NONE, true, true, 0, "0.7.0", 0 },
	};
	static uint32_t group = 44;
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_cdi_spec spec = a_spec(rows[i].hooks);
		struct graft_cdi_fingerprint found;

		spec.edits.gids = &group;
		spec.edits.n_gids = rows[i].groups;
		assert_int_equal(graft_cdi_fingerprint_store(&whole, rows[i].where, arena, &spec, &err),
				 rows[i].stored);
		assert_int_equal(spec.n_annotations, rows[i].n_annotations);
		assert_int_equal(graft_cdi_check_annotations(spec.annotations, spec.n_annotations, &err), 0);
		assert_string_equal(graft_cdi_spec_minimum_version(&spec), rows[i].version);
		reread(&spec);
		assert_int_equal(graft_cdi_fingerprint_find(&spec, arena, &found, &err), rows[i].stored);
		if (!rows[i].stored) {
			assert_null(found.driver_version);
			continue;
		}
		assert_string_equal(found.driver_version, whole.driver_version);
		assert_string_equal(found.gpus, whole.gpus);
		assert_string_equal(found.mig, whole.mig);
		assert_string_equal(found.boot_id, whole.boot_id);
		assert_string_equal(found.flags, whole.flags);
	}
}

/* A file of another program, or of another release of ours. */
static void test_foreign(void **state)
{
	static const struct {
		const char *variable, *driver_version;
		int found;
	} rows[] = {
		{ "GRAFT_MADE_FROM=driver-version=1.2;tomorrow=x;mig=", "1.2", 1 },
		{ "GRAFT_MADE_FROM=;;driver-version=1.2", "1.2", 1 },
		{ "GRAFT_MADE_FROM=driver-version", NULL, 1 },
		{ "GRAFT_MADE_FROM=driver-versions=1.2", NULL, 1 },
		{ "GRAFT_MADE_FROM=", NULL, 1 },
		{ "GRAFT_MADE=driver-version=1.2", NULL, 0 },
	};
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_cdi_spec spec = a_spec(true);
		struct graft_cdi_fingerprint found;

		graft_arena_push_string(arena, &spec.edits.hooks[1].env, &spec.edits.hooks[1].n_env, rows[i].variable);
		assert_int_equal(graft_cdi_fingerprint_find(&spec, arena, &found, &err), rows[i].found);
		if (rows[i].driver_version)
			assert_string_equal(found.driver_version, rows[i].driver_version);
		else
			assert_null(found.driver_version);
	}
}

/* Only ours goes, and the edits that were given away before keep it. */
static void test_drop(void **state)
{
	static const struct graft_cdi_fingerprint made = { .driver_version = "1" };
	struct graft_cdi_spec spec = a_spec(true);
	struct graft_cdi_edits edits;

	edits = spec.edits;
	assert_int_equal(graft_cdi_fingerprint_drop(&edits, arena, NULL), 0);
	assert_ptr_equal(edits.hooks, spec.edits.hooks);
	assert_int_equal(graft_cdi_fingerprint_store(&made, GRAFT_CDI_PROVENANCE_AUTO, arena, &spec, NULL), 1);
	edits = spec.edits;
	assert_int_equal(graft_cdi_fingerprint_drop(&edits, arena, NULL), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(edits.hooks[i].n_env, 1);
		assert_string_equal(edits.hooks[i].env[0], "NVIDIA_CTK_DEBUG=false");
		assert_string_equal(edits.hooks[i].path, "/usr/bin/nvidia-cdi-hook");
	}
	assert_int_equal(spec.edits.hooks[0].n_env, 2);
}

static void test_flags(void **state)
{
	static const char *const words[] = { "--mode=nvml", "--csv.file=/a b;%", "--x=\t\xc3\xb6", "" };
	static const struct {
		const char *text, *words; /* with '|' behind each */
	} rows[] = {
		{ "", "" },
		{ "  --a   --b=c ", "--a|--b=c|" },
		{ "%41%42%2", "AB%2|" },
		{ "%zz%00%3b%", "%zz%00%3b%|" }, /* nothing that we write */
		{ "%20%25%3B", " %;|" },
	};
	struct graft_error err = { .status = GRAFT_OK };
	const char **read;
	size_t n;

	assert_string_equal(graft_cdi_flags_write(words, 3, arena),
			    "--mode=nvml --csv.file=/a%20b%3B%25 --x=%09%C3%B6");
	assert_int_equal(graft_cdi_flags_read(graft_cdi_flags_write(words, 3, arena), arena, &read, &n, &err), 0);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(read[i], words[i]);
	assert_string_equal(graft_cdi_flags_write(NULL, 0, arena), "");
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *joined = "";

		assert_int_equal(graft_cdi_flags_read(rows[i].text, arena, &read, &n, &err), 0);
		for (size_t j = 0; j < n; j++)
			joined = graft_arena_printf(arena, "%s%s|", joined, read[j]);
		assert_string_equal(joined, rows[i].words);
	}
}

static void test_compare(void **state)
{
	static const struct {
		struct graft_cdi_fingerprint made, now;
		const char *why; /* NULL = it fits */
	} rows[] = {
		{ { "1", GPUS, MIG, "a", "-x" }, { "1", GPUS, MIG, "a", "-y" }, NULL },
		{ { "1", GPUS, MIG, "a", NULL },
		  { "1", GPUS, MIG, "b", NULL },
		  NULL }, /* a boot changes nothing that is in it */
		{ { .gpus = NULL }, { "1", GPUS, MIG, "a", NULL }, NULL },
		{ { "1", GPUS, MIG, "a", NULL }, { .gpus = NULL }, NULL },
		{ { .driver_version = "1" },
		  { .driver_version = "2" },
		  "it was made for driver 1, and this host has 2" },
		{ { .gpus = "a=X,b=Y" }, { .gpus = "a=X" }, "the GPU at b is no longer there" },
		{ { .gpus = "a=X" }, { .gpus = "a=X,b=Y" }, "the GPU at b is new" },
		{ { .gpus = "" }, { .gpus = "b=Y" }, "the GPU at b is new" },
		{ { .gpus = "a=X,b=Y" }, { .gpus = "b=y,A=X" }, NULL },
		{ { .gpus = "a=X" }, { .gpus = "a=Z" }, "at a there is another GPU: Z instead of X" },
		{ { .gpus = "a=" }, { .gpus = "a=X" }, NULL }, /* it was not known then */
		{ { .gpus = "a" }, { .gpus = "a=X" }, NULL },
		{ { .gpus = "aa=X" }, { .gpus = "a=X" }, "the GPU at aa is no longer there" },
		{ { .mig = "" }, { .mig = "a=1/0" }, "the MIG devices of the GPU at a have changed" },
		{ { .mig = "a=1/0" }, { .mig = "" }, "the MIG devices of the GPU at a have changed" },
		{ { .mig = "a=1/0" }, { .mig = "a=1/0+2/0" }, "the MIG devices of the GPU at a have changed" },
		{ { .mig = "a=1/0,b=3/1" }, { .mig = "a=1/0,b=3/1" }, NULL },
	};
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *why = "";

		assert_int_equal(graft_cdi_fingerprint_compare(&rows[i].made, &rows[i].now, arena, &why, &err), 0);
		if (rows[i].why ? !why || strcmp(why, rows[i].why) != 0 : why != NULL)
			fail_msg("row %zu: %s", i, why ? why : "it fits");
	}
}

static void test_narrow(void **state)
{
	static const struct {
		const char *devices, *places, *mig; /* separated by commas */
	} rows[] = {
		{ "0", "00000000:1c:00.0,00000001:1b:00.0", "" },
		{ "1", "00000000:1b:00.0,00000001:1b:00.0", MIG },
		{ "2,0", "00000000:1c:00.0", "" },
		{ "GPU-cccc", "00000000:1b:00.0,00000000:1c:00.0", "" },
		{ "gpu-AAAA,1", "00000001:1b:00.0", MIG },
		{ "0,1,2", "", MIG },
		/* What may be anything is about all of them. */
		{ "", "", MIG },
		{ "all", "", MIG },
		{ "0,all", "", MIG },
		{ "1:0", "", MIG },
		{ "3", "", MIG },
		{ "0x0", "", MIG },
		{ "GPU-aaa", "", MIG },
		{ "GPU-aaaaa", "", MIG },
		{ "MIG-aaaa", "", MIG },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_cdi_fingerprint made = { "550.54.14", GPUS, MIG, BOOT, FLAGS };
		const char **devices = NULL, **places, *text = "";
		size_t n_devices = 0, n_places;

		for (const char *at = rows[i].devices; *at != '\0';) {
			size_t length = strcspn(at, ",");

			graft_arena_push_string(arena, &devices, &n_devices, graft_arena_strndup(arena, at, length));
			at += length + (at[length] == ',');
		}
		assert_int_equal(
		    graft_cdi_fingerprint_narrow(&made, devices, n_devices, arena, &places, &n_places, NULL), 0);
		for (size_t j = 0; j < n_places; j++)
			text = graft_arena_printf(arena, "%s%s%s", text, j > 0 ? "," : "", places[j]);
		if (strcmp(text, rows[i].places) != 0 || strcmp(made.mig, rows[i].mig) != 0)
			fail_msg("%s: '%s' and MIG '%s'", rows[i].devices, text, made.mig);
		assert_string_equal(made.gpus, GPUS);
	}
}

/* The GPU of another container may be another one; that it is there and where, matters to all. */
static void test_narrow_compare(void **state)
{
	static const struct {
		const char *gpus, *mig, *why;
	} rows[] = {
		{ "00000000:1b:00.0=GPU-aaaa,00000000:1c:00.0=,00000001:1b:00.0=", "", NULL },
		{ "00000000:1b:00.0=GPU-dddd,00000000:1c:00.0=,00000001:1b:00.0=", "",
		  "at 00000000:1b:00.0 there is another GPU: GPU-dddd instead of GPU-aaaa" },
		{ "00000000:1b:00.0=GPU-aaaa,00000000:1c:00.0=", "", "the GPU at 00000001:1b:00.0 is no longer there" },
		{ "00000000:1b:00.0=GPU-aaaa,00000000:1c:00.0=,00000000:1d:00.0=GPU-dddd,00000001:1b:00.0=", "",
		  "the GPU at 00000000:1d:00.0 is new" },
		{ "00000000:1b:00.0=GPU-aaaa,00000000:1c:00.0=,00000001:1b:00.0=", "00000000:1b:00.0=1/0",
		  "the MIG devices of the GPU at 00000000:1b:00.0 have changed" },
	};
	static const char *const devices[] = { "0" };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_cdi_fingerprint made = { "550.54.14", GPUS, MIG, BOOT, FLAGS };
		const struct graft_cdi_fingerprint now = { "550.54.14", rows[i].gpus, rows[i].mig, BOOT, NULL };
		const char **places, *why;
		size_t n;

		assert_int_equal(graft_cdi_fingerprint_narrow(&made, devices, 1, arena, &places, &n, NULL), 0);
		assert_int_equal(graft_cdi_fingerprint_compare(&made, &now, arena, &why, NULL), 0);
		if (!why != !rows[i].why || (why && strcmp(why, rows[i].why) != 0))
			fail_msg("row %zu: %s", i, why ? why : "fits");
	}
}

/*
 * Nodes get other numbers when the driver leaves a GPU alone, so a number would mean another
 * device.
 */
static void test_compare_nodes(void **state)
{
	static struct graft_cdi_node nodes[] = {
		{ .path = "/dev/nvidia0" },
		{ .path = "/dev/nvidiactl" },
		{ .path = "/dev/nvidia1", .host_path = "/driver/dev/nvidia2" },
		{ .path = "/dev/dri/card3" },
	};
	static struct graft_cdi_device all[] = {
		{ .name = "0", .edits = { .nodes = nodes, .n_nodes = 2 } },
		{ .name = "1", .edits = { .nodes = &nodes[2], .n_nodes = 1 } },
		{ .name = "GPU-cccc", .edits = { .nodes = &nodes[3], .n_nodes = 1 } },
	};
	static const struct graft_cdi_spec spec = { .devices = all, .n_devices = 3 };
	static const struct {
		const char *device, *paths[3], *why; /* of the GPUs; NULL: not known */
	} rows[] = {
		{ "0", { "/dev/nvidia0", NULL, NULL }, NULL },
		{ "0",
		  { "/dev/nvidia1", NULL, NULL },
		  "the GPU at 00000000:1b:00.0 is /dev/nvidia1 now, not /dev/nvidia0" },
		{ "0", { NULL, "/dev/nvidia0", NULL }, NULL },
		{ "1", { "/dev/nvidia7", "/dev/nvidia2", NULL }, NULL },
		{ "1",
		  { NULL, "/dev/nvidia1", NULL },
		  "the GPU at 00000000:1c:00.0 is /dev/nvidia1 now, not /dev/nvidia2" },
		{ "GPU-cccc", { NULL, NULL, "/dev/nvidia9" }, NULL },
		{ "all", { "/dev/nvidia7", "/dev/nvidia7", "/dev/nvidia7" }, NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_cdi_fingerprint made = { .gpus = GPUS };
		struct graft_gpu gpus[] = { { .bus_id = "00000000:1b:00.0" },
					    { .bus_id = "00000000:1C:00.0" },
					    { .bus_id = "00000001:1b:00.0" } };
		const struct graft_inventory now = { .gpus = gpus, .n_gpus = 3 };
		const char *why;

		for (size_t j = 0; j < 3; j++)
			gpus[j].node.path = rows[i].paths[j];
		assert_int_equal(
		    graft_cdi_fingerprint_compare_nodes(&made, &now, &spec, &rows[i].device, 1, arena, &why, NULL), 0);
		if (!why != !rows[i].why || (why && strcmp(why, rows[i].why) != 0))
			fail_msg("row %zu: %s", i, why ? why : "fits");
	}
	assert_int_equal(graft_cdi_fingerprint_compare_nodes(&(struct graft_cdi_fingerprint){ .gpus = NULL },
							     &(struct graft_inventory){ .n_gpus = 0 }, &spec,
							     &rows[0].device, 1, arena, &(const char *){ NULL }, NULL),
			 0);
}

static void test_allocations(void **state)
{
	for (int n = 1;; n++) {
		struct graft_cdi_fingerprint made, found, other = { .driver_version = "1" };
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_arena *first = arena, *small = graft_arena_new(ARENA_MAX);
		struct graft_cdi_spec spec = a_spec(true);
		struct fixture f;
		const char *why;
		bool failed;
		int rc = 0;

		fixture_init(&f);
		allocation_fail(n);
		/* Until more blocks than one are needed. */
		for (int i = 0; i < 100 && rc >= 0; i++) {
			static const char *const words[] = { "--a", "--b" };
			const char **read;
			size_t n_read;

			rc = graft_cdi_fingerprint_make(&f.inventory, true, BOOT, small, &made, &err);
			if (rc == 0 && !(made.flags = graft_cdi_flags_write(words, 2, small)))
				rc = graft_fail_memory(&err);
			if (rc == 0)
				rc = graft_cdi_flags_read(made.flags, small, &read, &n_read, &err);
			if (rc == 0)
				rc = graft_cdi_fingerprint_store(&made, GRAFT_CDI_PROVENANCE_AUTO, small, &spec, &err);
			if (rc >= 0)
				rc = graft_cdi_fingerprint_find(&spec, small, &found, &err);
			if (rc >= 0)
				rc = graft_cdi_fingerprint_drop(&spec.edits, small, &err);
			if (rc >= 0)
				rc = graft_cdi_fingerprint_compare(&found, &other, small, &why, &err);
		}
		failed = allocation_reported(rc, &err);
		(void)graft_arena_free(small);
		arena = first;
		if (!failed) {
			assert_true(n > 1);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_make, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_places, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_foreign, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_drop, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_flags, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_compare, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_narrow, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_narrow_compare, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_compare_nodes, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_allocations, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
