/* SPDX-License-Identifier: Apache-2.0 */
/* health_nvml: one child and its lines. health.c knows which GPUs have failed. */
#include "daemon/health_nvml.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kubernetes/kube_facts.h"

#define CHILD_FIRST_MS 1000
#define CHILD_LAST_MS  300000

static void end_nvml_watcher(struct health_nvml *nvml)
{
	graft_loop_forget(nvml->loop, &nvml->watch);
	graft_nvml_watch_end(&nvml->child, nvml->running);
	nvml->running = false;
	nvml->watch.fd = -1;
	nvml->n_line = 0;
}

/*
 * A child that ends by itself because a GPU is lost has not failed; each failure doubles the delay.
 */
static void start_again(struct health_nvml *nvml, const char *why)
{
	if (why && nvml->delay_ms <= CHILD_FIRST_MS)
		graft_warn(nvml->log, "cannot watch GPUs through NVML: %s; trying again", why);
	nvml->delay_ms = why ? graft_loop_next_delay(nvml->delay_ms, 2L * CHILD_FIRST_MS, CHILD_LAST_MS) : 0;
	graft_loop_set_timer(nvml->loop, &nvml->again, why ? nvml->delay_ms : CHILD_FIRST_MS);
}

static void take_report(struct health_nvml *nvml)
{
	struct graft_nvml_report report;

	nvml->line[nvml->n_line] = '\0';
	nvml->n_line = 0;
	if (!graft_nvml_report_parse(nvml->line, &report))
		return;
	if (report.kind == GRAFT_NVML_REPORT_FAILURE) {
		nvml->failed = true;
		start_again(nvml, report.text);
		return;
	}
	nvml->delay_ms = 0;
	health_take_report(nvml->health, &report);
}

static void child_reports(void *arg, short events)
{
	struct health_nvml *nvml = arg;
	char bytes[4096];
	/* SECURITY: once per turn of the loop, which serves others, too, while driver code reports. */
	ssize_t n = read(nvml->child.fd, bytes, sizeof(bytes));

	(void)events;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n')
			take_report(nvml);
		else if (nvml->n_line < sizeof(nvml->line) - 1)
			nvml->line[nvml->n_line++] = bytes[i];
	}
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	/*
	 * The child has ended, or will at its next write; its PID may belong to another process by
	 * now.
	 */
	nvml->running = false;
	end_nvml_watcher(nvml);
	if (!nvml->failed)
		start_again(nvml, NULL);
}

/* The program reaps it (daemon/program.h). */
static bool is_alive(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0;
}

/* Does not replace a child that is stuck in the driver: stuck children would accumulate. */
static void start_nvml_watcher(void *arg)
{
	struct health_nvml *nvml = arg;
	struct graft_error err = { .status = GRAFT_OK };

	if (is_alive(nvml->child.pid)) {
		start_again(nvml, "the process that watches through NVML is stuck in the driver");
		return;
	}
	if (graft_kube_watch_nvml(nvml->flags, nvml->log, nvml->inventory, &nvml->child, &err) < 0) {
		start_again(nvml, err.msg);
		return;
	}
	nvml->running = true;
	nvml->failed = false;
	nvml->watch.fd = nvml->child.fd;
	if (graft_loop_watch(nvml->loop, &nvml->watch, &err) < 0) {
		end_nvml_watcher(nvml);
		start_again(nvml, err.msg);
	}
}

void health_nvml_begin(struct health_nvml *nvml, struct health *health, const struct graft_kube_flags *flags,
		       const struct graft_inventory *inventory)
{
	*nvml = (struct health_nvml){ .loop = health->options.loop,
				      .log = health->options.log,
				      .health = health,
				      .flags = flags,
				      .inventory = inventory,
				      .child = { .fd = -1 } };
	nvml->watch = (struct graft_loop_watch){ .fd = -1, .events = POLLIN, .ready = child_reports, .arg = nvml };
	nvml->again = (struct graft_loop_timer){ .due = start_nvml_watcher, .arg = nvml };
	start_nvml_watcher(nvml);
}

void health_nvml_pause(struct health_nvml *nvml)
{
	if (!nvml->loop)
		return;
	end_nvml_watcher(nvml);
	graft_loop_clear_timer(&nvml->again);
	nvml->loop = NULL;
}

void health_nvml_done(struct health_nvml *nvml)
{
	if (nvml->loop)
		health_forget_nvml(nvml->health);
	health_nvml_pause(nvml);
}

bool health_nvml_runs(const struct health_nvml *nvml)
{
	return nvml->loop && nvml->watch.fd >= 0;
}
