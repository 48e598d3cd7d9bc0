/* SPDX-License-Identifier: Apache-2.0 */
/*
 * installed: names of replaced toolkits, and the two places that show whether the driver is loaded.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "start/installed.h"

static void test_directories(void **state)
{
	static const struct {
		const char *self, *directory; /* NULL: none */
	} rows[] = {
		{ "/usr/bin/nvidia-ctk", "/usr/bin" },
		{ "/usr/local/nvidia/toolkit/nvidia-ctk", "/usr/local/nvidia/toolkit" },
		{ "/usr/local/nvidia/.graft-toolkit-old/nvidia-ctk.real", "/usr/local/nvidia/toolkit" },
		{ "/usr/local/nvidia/.graft-toolkit-17/nvidia-ctk (deleted)", "/usr/local/nvidia/toolkit" },
		{ "/usr/local/nvidia/.toolkit-17/nvidia-ctk", "/usr/local/nvidia/.toolkit-17" },
		{ "/usr/bin/nvidia-ctk (deleted)", "/usr/bin" },
		{ "/nvidia-ctk", "" },
		{ "nvidia-ctk", NULL },
		{ "", NULL },
	};
	char directory[PATH_MAX], name[PATH_MAX + 2];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_int_equal(graft_installed_directory(rows[i].self, directory), rows[i].directory != NULL);
		if (rows[i].directory)
			assert_string_equal(directory, rows[i].directory);
	}
	memset(name, 'n', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	assert_false(graft_installed_directory(name, directory));
}

static void put(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	test_put(AT_FDCWD, path, text);
}

static void test_driver(void **state)
{
	char folder[] = "/tmp/graft-installed-XXXXXX", path[PATH_MAX];

	assert_non_null(mkdtemp(folder));
	assert_false(graft_driver_is_loaded(folder));
	put(folder, "modules", "nvidia_uvm 1 0 - Live 0x0\nmy_nvidia 1 0\nxnvidia 2 0\n");
	assert_false(graft_driver_is_loaded(folder));
	put(folder, "modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 0 - Live 0x0\n");
	assert_true(graft_driver_is_loaded(folder));
	put(folder, "modules", "nvidia 1 0 - Live 0x0\n");
	assert_true(graft_driver_is_loaded(folder));
	put(folder, "modules", "");
	assert_false(graft_driver_is_loaded(folder));
	(void)snprintf(path, sizeof(path), "%s/driver", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/driver/nvidia", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	put(folder, "driver/nvidia/version", "NVRM version\n");
	assert_true(graft_driver_is_loaded(folder));
	assert_int_equal(test_remove_folder(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
