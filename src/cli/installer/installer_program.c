/* SPDX-License-Identifier: Apache-2.0 */
/* installer_program: the sequence of SPEC installer-and-nri 3, and its signals (6). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/installer/installer.h"
#include "cli/log_line.h"

#define TRIES         6 /* five seconds apart (SPEC installer-and-nri 5) */
#define CLEANUP_TRIES 3 /* Kubernetes kills a pod that has not ended after 30 seconds */

const int installer_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, 0 };

/* The file that a signal during the installation removes; a handler cannot be given it. */
static const char *volatile early_pid_file;

/*
 * Ending half-way is harmless: the toolkit and the files are replaced as a whole, and the next
 * start does the rest.
 */
static void exit_early(int number)
{
	static const char line[] = "level=info msg=\"Signal received, exiting early\"\n";
	const char *path = early_pid_file;

	(void)number;
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	if (path)
		(void)unlink(path);
	_exit(0);
}

static void handle_early_signals(void)
{
	struct sigaction action = { .sa_handler = exit_early };

	for (size_t i = 0; installer_signals[i] != 0; i++)
		(void)sigaction(installer_signals[i], &action, NULL);
}

/* ---- the steps ---- */

static int list_low_level(const struct installer_options *o, struct ctk_list *ret_runtimes, struct graft_error *err)
{
	if (o->nri)
		return installer_config_read_runtimes(o, ret_runtimes, err);
	if (o->runtimes.n > 0) {
		*ret_runtimes = o->runtimes;
		return 0;
	}
	return installer_engine_list_runtimes(o, ret_runtimes, err);
}

/* SPEC installer-and-nri 4: the configuration is also printed. */
static int print_installed_config(const struct installer_options *o, const struct ctk_list *runtimes,
				  struct graft_error *err)
{
	struct graft_engine_text text;

	if (installer_config_make(o, runtimes, &text, err) < 0)
		return -1;
	(void)printf("Using config:\n%s\n", text.bytes);
	(void)fflush(stdout);
	return 0;
}

static int tolerate(const struct installer_options *o, int rc, struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx)];

	if (rc >= 0 || !o->ignore_errors)
		return rc;
	graft_warn(&o->base.ctk->log, "Ignoring error: %s", graft_error_text(err, text, sizeof(text)));
	graft_error_clear(err);
	return 0;
}

static int install(const struct installer_options *o, const struct ctk_list *runtimes, struct graft_error *err)
{
	(void)installer_toolkit_sweep(o);
	graft_info(&o->base.ctk->log, "Installing NVIDIA container toolkit to '%s'", o->toolkit);
	if (tolerate(o, installer_toolkit_install(o, runtimes, err), err) < 0 ||
	    tolerate(o, print_installed_config(o, runtimes, err), err) < 0 ||
	    tolerate(o, installer_nodes_make(o, err), err) < 0 || tolerate(o, installer_cdi_write(o, err), err) < 0)
		return graft_wrap(err, "unable to install toolkit");
	return 0;
}

static int set_engine_up(const struct installer_options *o, struct graft_error *err)
{
	int rc;

	if (o->no_runtime_config || o->nri)
		return 0;
	rc = installer_engine_configure(o, err);
	if (rc < 0 || installer_engine_reload(o, rc > 0, TRIES, err) < 0)
		return graft_wrap(err, "unable to setup runtime");
	return 0;
}

static int clean_engine_up(const struct installer_options *o, struct graft_error *err)
{
	int rc;

	if (o->no_runtime_config || o->nri)
		return 0;
	rc = installer_engine_restore(o, err);
	if (rc < 0 || (rc > 0 && installer_engine_reload(o, true, CLEANUP_TRIES, err) < 0))
		return graft_wrap(err, "unable to cleanup runtime");
	return 0;
}

/* ---- the sequence ---- */

static int stay(const struct installer_options *o, const struct ctk_list *runtimes, struct graft_error *err)
{
	const struct graft_log *log = &o->base.ctk->log;
	pid_t nri = -1;
	int rc;

	if (o->nri) {
		nri = installer_nri_start(o, err);
		if (nri < 0)
			return graft_wrap(err, "unable to start the NRI plugin");
	}
	rc = installer_wait(o, runtimes, &nri, err);
	if (rc == 0)
		rc = clean_engine_up(o, err);
	if (nri > 0)
		(void)kill(nri, SIGTERM);
	graft_info(log, "Shutting Down");
	return rc;
}

static int run_with_lock(struct installer_options *o, struct graft_error *err)
{
	struct graft_error refusal = { .status = GRAFT_OK };
	struct ctk_list runtimes;

	if (!o->nri && installer_engine_find_files(o, &refusal) < 0 && refusal.status != GRAFT_UNSUPPORTED) {
		*err = refusal;
		return graft_wrap(err, "unable to setup runtime");
	}
	if (list_low_level(o, &runtimes, err) < 0)
		return graft_wrap(err, "unable to determine the low-level runtimes");
	if (install(o, &runtimes, err) < 0)
		return -1;
	/* K3s that is restarted finds the toolkit by itself. */
	if (refusal.status != GRAFT_OK) {
		*err = refusal;
		return graft_wrap(err, "unable to setup runtime");
	}
	if (set_engine_up(o, err) < 0)
		return -1;
	if (o->no_daemon) {
		(void)installer_toolkit_sweep(o);
		return 0;
	}
	return stay(o, &runtimes, err);
}

static int run_installer_steps(struct installer_options *o, struct graft_error *err)
{
	auto_close int lock = -1;
	int rc;

	graft_info(&o->base.ctk->log, "Starting %s", INSTALLER_PROGRAM);
	if (installer_options_check(o, err) < 0)
		return -1;
	graft_info(&o->base.ctk->log, "Initializing");
	lock = installer_pid_file_take(o, err);
	if (lock < 0)
		return -1;
	early_pid_file = o->pid_file;
	handle_early_signals();
	rc = run_with_lock(o, err);
	early_pid_file = NULL;
	(void)unlink(o->pid_file);
	if (rc == 0)
		graft_info(&o->base.ctk->log, "Completed %s", INSTALLER_PROGRAM);
	return rc;
}

static int run_installer(struct ctk *ctk, int argc, char **argv)
{
	struct installer_options options;
	struct graft_error err = { .status = GRAFT_OK };
	int first, status = 0;

	installer_options_init(&options);
	if (ctk_parse(ctk, &installer_command, &options, argc, argv, &first, &status) < 0)
		return status;
	ctk->debug = options.debug;
	ctk_set_log_level(ctk);
	if (first < argc)
		graft_warn(&ctk->log, "ignoring '%s' and all that follows: write options as --option=VALUE",
			   argv[first]);
	if (run_installer_steps(&options, &err) == 0)
		return 0;
	cli_log_failure(&ctk->log, "error running " INSTALLER_PROGRAM, &err);
	return 1;
}

int installer_main(int argc, char **argv)
{
	return ctk_run_program(INSTALLER_PROGRAM, argc, argv, run_installer);
}
