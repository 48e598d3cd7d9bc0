/* SPDX-License-Identifier: Apache-2.0 */
/* kube_facts: reads the file of kept facts, and writes it. */
#include "kubernetes/kube_facts.h"

#include <errno.h>
#include <fcntl.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/root.h"

#define SIMULATED_FILE "/run/graft-sim/facts.json"
#define KEPT_MAX       ((size_t)4 << 20)
#define KEPT_MODE      0644

/* Returns 1 if facts are kept, 0 if not, -1 without memory. What cannot be read is not there. */
static int read_kept(const char *file, const struct graft_log *log, struct graft_arena *arena,
		     struct graft_kept_facts *facts, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *text;
	size_t length;

	if (graft_root_open(&root, "/", err) < 0)
		return -1;
	if (graft_root_read(&root, file, KEPT_MAX, arena, &text, &length) < 0)
		return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
	return graft_kept_parse(text, length, log, arena, facts, err);
}

/* A process that may not write asks again the next time. */
static void keep_facts(const char *file, const struct graft_log *log, const struct graft_kept_facts *facts)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_buffer text = { .max = KEPT_MAX };
	char reason[sizeof(why.msg) + sizeof(why.ctx)];

	graft_kept_write(facts, &text);
	if (!graft_buffer_failed(&text) && graft_host_file_write(file, text.bytes, text.length, KEPT_MODE, &why) < 0)
		graft_info(log, "what NVML said is not kept: %s", graft_error_text(&why, reason, sizeof(reason)));
	graft_buffer_done(&text);
}

/* Asks, and counts how often in a row the answer was not final. What was kept stays if nothing answers. */
static int ask_again(const struct graft_host_options *options, const char *file, uint32_t n_asked,
		     const struct graft_inventory *inventory, struct graft_arena *arena, struct graft_kept_facts *facts,
		     struct graft_error *err)
{
	const struct graft_kept_facts before = *facts;
	struct graft_error why = { .status = GRAFT_OK };
	char text[sizeof(why.msg) + sizeof(why.ctx)];
	int rc = graft_kept_ask(options, inventory, arena, facts, &why);

	if (rc < 0 && (n_asked == 0 || why.status == GRAFT_NO_MEMORY)) {
		*err = why;
		return -1;
	}
	if (rc < 0) {
		graft_warn(options->log, "NVML does not answer again: %s", graft_error_text(&why, text, sizeof(text)));
		*facts = before;
	}
	facts->asked_s = (uint32_t)(graft_clock_ms() / 1000);
	facts->n_asked = facts->nvml.n_unsettled > 0 ? n_asked + 1 : 0;
	if (facts->n_asked > 0)
		graft_info(options->log, "NVML's answer is not final: %s (reason 1 of %zu); %s",
			   facts->nvml.unsettled[0], facts->nvml.n_unsettled,
			   facts->n_asked < GRAFT_KEPT_ASKS ? "it is asked again later"
							    : "it is asked again after an event or SIGHUP");
	keep_facts(file, options->log, facts);
	return 0;
}

int graft_kube_facts(const struct graft_host_options *options, const char *file, enum graft_kube_ask ask,
		     struct graft_inventory *inventory, struct graft_arena *arena, struct graft_kept_facts *ret_facts,
		     struct graft_error *err)
{
	int kept = 0;

	if (!file)
		file = inventory->simulated ? SIMULATED_FILE : GRAFT_KEPT_FILE;
	if (graft_kept_identify(options, inventory, arena, ret_facts, err) < 0)
		return -1;
	if (ask != GRAFT_KUBE_ASK_ANEW)
		kept = read_kept(file, options->log, arena, ret_facts, err);
	if (kept < 0)
		return -1;
	if (ask == GRAFT_KUBE_ASK_EVENT && ret_facts->n_asked > 1)
		ret_facts->n_asked = 1;
	if ((kept == 0 || graft_kept_wait_s(ret_facts, graft_clock_ms() / 1000) == 0) &&
	    ask_again(options, file, kept > 0 ? ret_facts->n_asked : 0, inventory, arena, ret_facts, err) < 0)
		return -1;
	return graft_kept_complete(ret_facts, options->log, inventory, err);
}
