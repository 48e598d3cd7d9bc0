/* SPDX-License-Identifier: Apache-2.0 */
/* go_build: the modules of a Go program, whole and damaged, in a section and in a program. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "formats/loader/go_build.h"
#include "go_program.h"

#define CDI  "tags.cncf.io/container-device-interface"
#define HEAD "path\tgithub.com/containers/podman/v5/cmd/podman\nmod\tgithub.com/containers/podman/v5\t(devel)\t\n"

static const struct {
	const char *text, *want;
} cases[] = {
	{ HEAD "dep\tgithub.com/a/b\tv1.4.0\th1:a=\ndep\t" CDI "\tv0.8.0\th1:b=\nbuild\t-compiler=gc\n", "0.8.0" },
	{ HEAD "dep\t" CDI "\tv0.8.0", "0.8.0" },
	{ HEAD "dep\t" CDI "\tv0.8.0\n=>\texample.com/cdi\tv0.6.2\th1:c=\n", "0.6.2" },
	{ HEAD "dep\t" CDI "\tv0.8.0\n=>\t./cdi\t\n", NULL },
	{ HEAD "dep\t" CDI "\tv0.8.0\ndep\tother\tv1\n=>\tother2\tv0.6.2\n", "0.8.0" },
	{ HEAD "dep\t" CDI "/specs-go\tv0.8.0\n", NULL },
	{ HEAD "mod\t" CDI "\tv0.8.0\n", NULL },
	{ HEAD "dep\t" CDI "\t(devel)\n", NULL },
	{ HEAD "dep\t" CDI, NULL },
	{ HEAD "build\t-compiler=gc\n", NULL },
	{ "", NULL },
};

static void check_text(const char *text, const char *want)
{
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct go_section section = make_go_section(text);
	const char *got = graft_go_build_parse(section.bytes, section.length, CDI, arena);

	if ((got == NULL) != (want == NULL) || (got && strcmp(got, want) != 0))
		fail_msg("'%s': %s instead of %s", text, got ? got : "nothing", want ? want : "nothing");
	(void)graft_arena_free(arena);
}

static void test_modules(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++)
		check_text(cases[i].text, cases[i].want);
}

/* Cut anywhere, it gives nothing; a text of addresses, a length that is too long, or another section neither. */
static void test_damaged(void **state)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	struct go_section whole = make_go_section(cases[0].text);

	for (size_t length = 0; length < whole.length; length++) {
		/* As long as it is, so that a sanitizer sees what reads beyond. */
		void *cut = malloc(length + 1);

		assert_non_null(cut);
		memcpy(cut, whole.bytes, length);
		assert_null(graft_go_build_parse(cut, length, CDI, arena));
		free(cut);
	}
	whole.bytes[15] = 0;
	assert_null(graft_go_build_parse(whole.bytes, whole.length, CDI, arena));
	whole = make_go_section(cases[0].text);
	memset(whole.bytes + 32, 0xff, 8);
	assert_null(graft_go_build_parse(whole.bytes, whole.length, CDI, arena));
	whole = make_go_section(cases[0].text);
	whole.bytes[1] = 'X';
	assert_null(graft_go_build_parse(whole.bytes, whole.length, CDI, arena));
	(void)graft_arena_free(arena);
}

static void test_program(void **state)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	struct go_program program = make_go_program(cases[0].text);
	char path[] = "/tmp/graft-test-go-build.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_null(graft_go_build_read(fd, CDI, arena));
	assert_int_equal(write(fd, &program, sizeof(program)), sizeof(program));
	assert_string_equal(graft_go_build_read(fd, CDI, arena), "0.8.0");
	assert_null(graft_go_build_read(fd, "example.com/other", arena));
	assert_int_equal(close(fd), 0);
	assert_null(graft_go_build_read(-1, CDI, arena));
	(void)graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
