/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_dev: what config.json specifies for /dev. Mounts are made by test/integration/cdi-hook.bats.
 */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "formats/oci_dev.h"

#define DEV   "{\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\"}"
#define FIRST "{\"mounts\": [" DEV ", "

static const struct row {
	const char *name, *config;
	bool tmpfs;
	const char *sources;
} rows[] = {
	{ "nothing is mounted", "{}", false, "" },
	{ "a tmpfs", "{\"mounts\": [" DEV "]}", true, "" },
	{ "another spelling", "{\"mounts\": [{\"destination\": \"//dev/.\", \"type\": \"tmpfs\"}]}", true, "" },
	{ "a part of a tmpfs",
	  "{\"mounts\": [{\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"/srv\", \"options\": "
	  "[\"rbind\"]}]}",
	  false, "" },
	{ "that of the host", "{\"mounts\": [{\"destination\": \"/dev\", \"type\": \"devtmpfs\"}]}", false, "" },
	{ "a volume over it", FIRST "{\"destination\": \"/dev\", \"source\": \"/srv\", \"options\": [\"bind\"]}]}",
	  false, "" },
	{ "volumes",
	  FIRST "{\"destination\": \"/a\", \"source\": \"/srv\", \"type\": \"bind\", \"options\": [\"ro\", \"bind\"]},"
		"{\"destination\": \"/b\", \"source\": \"/mnt\", \"type\": \"none\"},"
		"{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"}]}",
	  true, "/srv /mnt " },
	{ "the host's procfs", FIRST "{\"destination\": \"/proc\", \"source\": \"/proc\"}]}", true, "/proc " },
	{ "no source", FIRST "{\"destination\": \"/a\", \"type\": \"bind\"}]}", false, "" },
	{ "a relative source", FIRST "{\"destination\": \"/a\", \"source\": \"srv\"}]}", false, "" },
	{ "a source with dots", FIRST "{\"destination\": \"/a\", \"source\": \"/srv/../proc/self\"}]}", false, "" },
	{ "a source with empty components", FIRST "{\"destination\": \"/a\", \"source\": \"/proc//self\"}]}", false,
	  "" },
	{ "a descriptor", FIRST "{\"destination\": \"/a\", \"source\": \"/proc/self/fd/3\"}]}", false, "" },
	{ "a descriptor by another name", FIRST "{\"destination\": \"/a\", \"source\": \"/dev/fd/3\"}]}", false, "" },
	{ "a thread", FIRST "{\"destination\": \"/a\", \"source\": \"/proc/thread-self/root\"}]}", false, "" },
	{ "a file system that is not new",
	  FIRST "{\"destination\": \"/a\", \"type\": \"devtmpfs\", \"source\": \"devtmpfs\"}]}", false, "" },
};

static void reads(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_json_document struct graft_json_document *document = NULL;
		struct graft_arena *arena = graft_arena_new(1 << 20);
		struct graft_oci_dev dev;
		struct graft_oci_spec spec;
		char sources[256] = "";

		assert_int_equal(
		    graft_json_document_parse(rows[i].name, rows[i].config, strlen(rows[i].config), &document, NULL),
		    0);
		assert_int_equal(graft_oci_spec_read(document, arena, &spec, NULL), 0);
		graft_oci_dev_read(&spec, arena, &dev);
		for (size_t j = 0; j < dev.n_sources; j++) {
			(void)strncat(sources, dev.sources[j], sizeof(sources) - strlen(sources) - 1);
			(void)strncat(sources, " ", sizeof(sources) - strlen(sources) - 1);
		}
		if (dev.tmpfs != rows[i].tmpfs || strcmp(sources, rows[i].sources) != 0)
			fail_msg("%s: %d '%s'", rows[i].name, dev.tmpfs, sources);
		graft_arena_free(arena);
	}
}

static void without_memory_it_says_nothing(void **state)
{
	const struct row *volumes = &rows[6];
	bool seen = false;

	for (size_t max = 1024; max < 65536; max += 64) {
		auto_json_document struct graft_json_document *document = NULL;
		struct graft_arena *arena = graft_arena_new(1 << 20), *small = graft_arena_new(max);
		struct graft_oci_dev dev;
		struct graft_oci_spec spec;

		assert_int_equal(
		    graft_json_document_parse(volumes->name, volumes->config, strlen(volumes->config), &document, NULL),
		    0);
		assert_int_equal(graft_oci_spec_read(document, arena, &spec, NULL), 0);
		(void)graft_arena_alloc(small, max - 64);
		graft_oci_dev_read(&spec, small, &dev);
		assert_true(dev.n_sources == (dev.tmpfs ? 2 : 0));
		seen = seen || (!dev.tmpfs && graft_arena_failed(small));
		graft_arena_free(small);
		graft_arena_free(arena);
	}
	assert_true(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(without_memory_it_says_nothing),
	};

	return cmocka_run_group_tests_name("oci_dev", tests, NULL, NULL);
}
