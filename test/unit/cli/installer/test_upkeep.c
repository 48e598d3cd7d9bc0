/* SPDX-License-Identifier: Apache-2.0 */
/* What the installer does while it waits: not two things that disturb each other. */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../ctk/ctk_case.h"
#include "base/clock.h"
#include "cli/installer/installer.h"

#define LOOK_MS 400

static volatile bool *is_looking;      /* shared with the process that looks */
static unsigned int n_sweeps, n_clock; /* calls; of the clock, since the first sweep */
static bool swept_meanwhile;

int64_t __real_graft_clock_ms(void);
int64_t __wrap_graft_clock_ms(void);
int __wrap_installer_toolkit_install(const struct installer_options *o, const struct ctk_list *runtimes,
				     struct graft_error *err);
bool __wrap_installer_toolkit_sweep(const struct installer_options *o);

/*
 * Once the first call has made the second sweep due in a minute, jumps, so that it is due in the
 * middle of the look, which begins after 200 ms.
 */
int64_t __wrap_graft_clock_ms(void)
{
	if (n_sweeps > 0)
		n_clock++;
	return __real_graft_clock_ms() + (n_clock > 1 ? 60000 - 200 - LOOK_MS / 2 : 0);
}

/* Fills a stage for a while. */
int __wrap_installer_toolkit_install(const struct installer_options *o, const struct ctk_list *runtimes,
				     struct graft_error *err)
{
	(void)o;
	(void)runtimes;
	(void)err;
	*is_looking = true;
	(void)usleep(LOOK_MS * 1000);
	*is_looking = false;
	return 0;
}

bool __wrap_installer_toolkit_sweep(const struct installer_options *o)
{
	(void)o;
	swept_meanwhile |= *is_looking;
	if (n_sweeps++ > 0)
		(void)kill(getpid(), SIGTERM);
	return false;
}

/* It would remove the stage that the look is filling. */
static void test_no_sweep_during_look(void **state)
{
	const struct ctk_list none = { .n = 0 };
	struct ctk_case *test = *state;
	struct installer_options o;
	struct graft_error err;
	pid_t nri = -1;

	is_looking = mmap(NULL, sizeof(*is_looking), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(is_looking, MAP_FAILED);
	installer_options_init(&o);
	o.base.ctk = &test->ctk;
	o.no_runtime_config = true;
	o.install_dir = o.toolkit = test->directory;
	assert_int_equal(installer_wait(&o, &none, &nri, &err), 0);
	assert_int_equal(n_sweeps, 2);
	assert_false(swept_meanwhile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_sweep_during_look, case_open, case_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
