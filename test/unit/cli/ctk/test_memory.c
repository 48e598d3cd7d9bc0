/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that read a file and print or write something, out of memory at each point once: the exit status says so, one line tells it, and what was there
 * stays as it was.
 */
#include "../../allocation.h"
#include "../../unit.h"
#include "ctk_case.h"

static const char spec[] =
    "cdiVersion: 0.5.0\nkind: a.b/c\ndevices:\n- name: \"0\"\n  containerEdits:\n    deviceNodes:\n"
    "    - path: /old/dev/x\n    hooks:\n    - hookName: createRuntime\n      path: /old/h\n"
    "      args: [h, \"/old/a::/old/b\"]\n";
static const char config[] = "# mine\ndisable-require = false\n\n[nvidia-container-cli]\nenvironment = []\n";

static const struct {
	const struct graft_command *command;
	const char *words;
	const char *out;  /* a part of what it prints when all is well; NULL = nothing */
	const char *file; /* that it writes; NULL = none */
} rows[] = {
	{ &ctk_cdi_list, "list --spec-dir=@/cdi", "a.b/c=0\n", NULL },
	{ &ctk_cdi_transform_root, "root --from=/old --to=/new --input=@/cdi/a.yaml", "/new/a::/new/b", NULL },
	{ &ctk_cdi_transform_root, "root --from=/old --to=/new --input=@/cdi/a.yaml --output=@/out.json", NULL,
	  "out.json" },
	{ &ctk_cdi_validate, "validate --spec-dir=@/cdi", "", NULL },
	{ &ctk_cdi_validate, "validate --json @/cdi/a.yaml", "{", NULL },
	{ &ctk_config, "config --config-file=@/config.toml", "# mine\n", NULL },
	{ &ctk_config,
	  "config --config-file=@/config.toml --set disable-require --set nvidia-container-cli.environment=A:B",
	  "disable-require = true", NULL },
	{ &ctk_config, "config --config-file=@/config.toml --in-place --set disable-require", NULL, "config.toml" },
	{ &ctk_config, "config default", "[nvidia-container-cli]", NULL },
	{ &ctk_config, "config default --output=@/out.json", NULL, "out.json" },
	{ &ctk_completion, "completion bash", "complete", NULL },
};

static void prepare(struct ctk_case *test, size_t arena_max)
{
	case_write(test, "cdi/a.yaml", spec, 0644);
	case_write(test, "config.toml", config, 0644);
	(void)unlink(case_path(test, "out.json"));
	case_renew(test, arena_max);
}

/* What a failure must leave: the text of before, or no file. */
static void assert_untouched(struct ctk_case *test, size_t row)
{
	const char *text;

	if (!rows[row].file)
		return;
	case_renew(test, CASE_ARENA);
	text = case_read(test, rows[row].file);
	if (strcmp(rows[row].file, "config.toml") != 0)
		assert_null(text);
	else
		assert_string_equal(text, config);
}

static void assert_told(const struct ctk_case *test, size_t row)
{
	if (!strstr(test->said, "error: "))
		fail_msg("%s: nothing is told:\n%s", rows[row].words, test->said);
}

/* What the command writes when all is well: to standard output, and to its file. */
struct result {
	char out[8192], file[1024];
};

static void take_result(struct ctk_case *test, size_t row, struct result *ret_result)
{
	const char *text;

	(void)snprintf(ret_result->out, sizeof(ret_result->out), "%s", test->out);
	case_renew(test, CASE_ARENA);
	text = rows[row].file ? case_read(test, rows[row].file) : "";
	assert_non_null(text);
	(void)snprintf(ret_result->file, sizeof(ret_result->file), "%s", text);
}

static void run_well(struct ctk_case *test, size_t row, struct result *ret_result)
{
	prepare(test, CASE_ARENA);
	assert_int_equal(case_run(test, rows[row].command, rows[row].words), 0);
	if (rows[row].out && !strstr(test->out, rows[row].out))
		fail_msg("%s: '%s' is not in\n%s", rows[row].words, rows[row].out, test->out);
	take_result(test, row, ret_result);
}

/* Out of memory: reported, and nothing was done; or it made no difference. */
static void assert_all_or_nothing(struct ctk_case *test, size_t row, int status, const struct result *well)
{
	struct result result;

	if (status != 0) {
		assert_int_equal(status, 1);
		assert_told(test, row);
		assert_untouched(test, row);
		return;
	}
	take_result(test, row, &result);
	assert_string_equal(result.out, well->out);
	assert_string_equal(result.file, well->file);
}

static void test_each_allocation(void **state)
{
	struct ctk_case *test = *state;

	assert_int_equal(mkdir(case_path(test, "cdi"), 0755), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool failed = true;
		struct result well;

		run_well(test, i, &well);
		for (int n = 1; failed; n++) {
			int status;

			prepare(test, CASE_ARENA);
			allocation_fail(n);
			status = case_run(test, rows[i].command, rows[i].words);
			failed = allocation_failed();
			assert_all_or_nothing(test, i, status, &well);
		}
	}
}

static void test_each_size(void **state)
{
	struct ctk_case *test = *state;

	assert_int_equal(mkdir(case_path(test, "cdi"), 0755), 0);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct result well;
		int status = 1;

		run_well(test, i, &well);
		for (size_t max = 0; status != 0; max += 64) {
			assert_true(max < (size_t)1 << 20);
			prepare(test, max);
			status = case_run(test, rows[i].command, rows[i].words);
			assert_all_or_nothing(test, i, status, &well);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { CASE(test_each_allocation), CASE(test_each_size) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
