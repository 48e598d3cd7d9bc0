/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_watch: the parent's side: starts and ends the child, and reads its lines. Loads no code of
 * the driver.
 */
#include "host/nvml_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/survey.h"

int graft_nvml_watch_begin(const struct graft_host_options *options, const struct graft_inventory *inventory,
			   struct graft_nvml_watch *ret_watch, struct graft_error *err)
{
	const char *watched[GRAFT_NVML_GPUS_MAX];
	struct graft_nvml_question question;

	*ret_watch = (struct graft_nvml_watch){ .fd = -1 };
	if (!inventory->nvml_library)
		return graft_nvml_fail_missing(GRAFT_NVML_SONAME, err);
	graft_nvml_prepare(options, inventory, 0, &question);
	question.watched = watched;
	for (size_t i = 0; i < inventory->n_gpus && question.n_watched < GRAFT_NVML_GPUS_MAX; i++) {
		if (inventory->gpus[i].bus_id && !inventory->gpus[i].excluded)
			watched[question.n_watched++] = inventory->gpus[i].bus_id;
	}
	if (graft_nvml_start(&question, &ret_watch->pid, &ret_watch->fd, err) < 0)
		return -1;
	(void)fcntl(ret_watch->fd, F_SETFL, O_NONBLOCK);
	return 0;
}

void graft_nvml_watch_end(struct graft_nvml_watch *watch, bool kill_child)
{
	if (kill_child && watch->pid > 0)
		(void)kill(watch->pid, SIGKILL);
	if (watch->fd >= 0)
		(void)close(watch->fd);
	watch->fd = -1;
}

static bool take_report_number(const char **at, uint32_t *ret_number)
{
	unsigned long number;
	char *end;

	if ((*at)[0] != ' ' || (*at)[1] < '0' || (*at)[1] > '9')
		return false;
	errno = 0;
	number = strtoul(*at + 1, &end, 10);
	*at = end;
	*ret_number = (uint32_t)number;
	return errno == 0 && number <= UINT32_MAX;
}

bool graft_nvml_report_parse(const char *line, struct graft_nvml_report *ret_report)
{
	static const struct {
		const char *word;
		enum graft_nvml_report_kind kind;
	} kinds[] = {
		{ "xid ", GRAFT_NVML_REPORT_XID },
		{ "lost ", GRAFT_NVML_REPORT_LOST },
		{ "answers ", GRAFT_NVML_REPORT_ANSWERS },
		{ "failure ", GRAFT_NVML_REPORT_FAILURE },
	};
	const char *rest = NULL;
	size_t length;

	*ret_report = (struct graft_nvml_report){ .xid = 0 };
	for (size_t i = 0; i < GRAFT_COUNT(kinds) && !rest; i++) {
		if (strncmp(line, kinds[i].word, strlen(kinds[i].word)) != 0)
			continue;
		rest = line + strlen(kinds[i].word);
		ret_report->kind = kinds[i].kind;
	}
	/* SECURITY: text from the driver's code goes to the log, so only printable text is accepted. */
	if (!rest || !graft_nvml_text_is_valid(rest))
		return false;
	length = ret_report->kind == GRAFT_NVML_REPORT_XID ? strcspn(rest, " ") : strlen(rest);
	memcpy(ret_report->text, rest, length);
	if (ret_report->kind != GRAFT_NVML_REPORT_XID)
		return true;
	rest += length;
	if (length == 0 || !take_report_number(&rest, &ret_report->xid))
		return false;
	ret_report->has_instance = *rest != '\0';
	return !ret_report->has_instance || (take_report_number(&rest, &ret_report->gi) &&
					     take_report_number(&rest, &ret_report->ci) && *rest == '\0');
}
