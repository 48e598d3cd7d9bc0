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

/* Returns 1 if facts are kept, 0 if not or if they cannot be read, -1 if out of memory. */
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

/* A process that may not write the file asks again the next time. */
static void keep_facts(const char *file, const struct graft_log *log, const struct graft_kept_facts *facts)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_buffer text = { .max = KEPT_MAX };
	char reason[sizeof(why.msg) + sizeof(why.ctx)];

	graft_kept_write(facts, &text);
	if (!graft_buffer_failed(&text) && graft_host_file_write(file, text.bytes, text.length, KEPT_MODE, &why) < 0)
		graft_info(log, "cannot save the answer of NVML: %s", graft_error_text(&why, reason, sizeof(reason)));
	graft_buffer_done(&text);
}

/*
 * Asks, and counts how often in a row the answer was preliminary. The saved answer stays if NVML
 * does not answer.
 */
static int ask_again(const struct graft_host_options *options, const char *file, uint32_t n_asked,
		     const struct graft_inventory *inventory, struct graft_arena *arena, struct graft_kept_facts *facts,
		     struct graft_error *err)
{
	const struct graft_kept_facts before = *facts;
	struct graft_error why = { .status = GRAFT_OK };
	int rc = graft_kept_ask(options, inventory, arena, facts, &why);

	if (rc < 0 && (n_asked == 0 || why.status == GRAFT_NO_MEMORY)) {
		*err = why;
		return -1;
	}
	if (rc < 0) {
		graft_warn(options->log, "NVML has stopped answering: %s", GRAFT_ERROR_TEXT(&why));
		*facts = before;
	}
	facts->asked_s = (uint32_t)(graft_clock_ms() / 1000);
	facts->n_asked = facts->nvml.n_unsettled > 0 ? n_asked + 1 : 0;
	if (facts->n_asked > 0)
		graft_info(options->log, "NVML's answer is preliminary: %s (1 of %zu reasons); %s",
			   facts->nvml.unsettled[0], facts->nvml.n_unsettled,
			   facts->n_asked < GRAFT_KEPT_ASKS ? "asking again later"
							    : "asking again after an event or SIGHUP");
	keep_facts(file, options->log, facts);
	return 0;
}

/*
 * Identifies the host, and searches for facts kept about it. Returns 1 if they suffice; 0 if NVML
 * has to be asked, with the number of questions so far in *ret_n_asked; -1 with the error set.
 */
static int find_kept(const struct graft_host_options *options, const char *file, enum graft_kube_ask ask,
		     const struct graft_inventory *inventory, struct graft_arena *arena, struct graft_kept_facts *facts,
		     uint32_t *ret_n_asked, struct graft_error *err)
{
	int kept = 0;

	if (graft_kept_identify(options, inventory, arena, facts, err) < 0)
		return -1;
	if (ask != GRAFT_KUBE_ASK_ANEW)
		kept = read_kept(file, options->log, arena, facts, err);
	if (kept < 0)
		return -1;
	if (ask == GRAFT_KUBE_ASK_EVENT && facts->n_asked > 1)
		facts->n_asked = 1;
	*ret_n_asked = kept > 0 ? facts->n_asked : 0;
	return kept > 0 && graft_kept_wait_s(facts, graft_clock_ms() / 1000) != 0;
}

static const char *kept_file(const char *file, const struct graft_inventory *inventory)
{
	if (file)
		return file;
	return inventory->simulated ? SIMULATED_FILE : GRAFT_KEPT_FILE;
}

int graft_kube_facts(const struct graft_host_options *options, const char *file, enum graft_kube_ask ask,
		     struct graft_inventory *inventory, struct graft_arena *arena, struct graft_kept_facts *ret_facts,
		     struct graft_error *err)
{
	uint32_t n_asked = 0;
	int rc;

	file = kept_file(file, inventory);
	rc = find_kept(options, file, ask, inventory, arena, ret_facts, &n_asked, err);
	if (rc == 0)
		rc = ask_again(options, file, n_asked, inventory, arena, ret_facts, err);
	return rc < 0 ? -1 : graft_kept_complete(ret_facts, options->log, inventory, err);
}

struct facts_question {
	const struct graft_host_options *options;
	const char *file;
	uint32_t n_asked;
	const struct graft_inventory *inventory;
	struct graft_arena *arena;
	struct graft_kept_facts *facts;
};

static int ask_elsewhere(const void *arg, struct graft_buffer *answer, struct graft_error *err)
{
	const struct facts_question *question = arg;

	if (ask_again(question->options, question->file, question->n_asked, question->inventory, question->arena,
		      question->facts, err) < 0)
		return -1;
	graft_kept_write(question->facts, answer);
	return 0;
}

int graft_kube_facts_begin(const struct graft_host_options *options, const char *file, enum graft_kube_ask ask,
			   struct graft_inventory *inventory, struct graft_arena *arena,
			   struct graft_kept_facts *ret_facts, struct graft_kube_question *ret_question,
			   struct graft_error *err)
{
	struct facts_question asked = { .options = options,
					.file = kept_file(file, inventory),
					.inventory = inventory,
					.arena = arena,
					.facts = ret_facts };
	const struct graft_kube_asking asking = {
		.name = "graft:[facts]", .max = KEPT_MAX, .ask = ask_elsewhere, .arg = &asked
	};
	int rc = find_kept(options, asked.file, ask, inventory, arena, ret_facts, &asked.n_asked, err);

	if (rc > 0)
		return graft_kept_complete(ret_facts, options->log, inventory, err);
	if (rc < 0 || graft_kube_question_begin(ret_question, &asking, err) < 0)
		return -1;
	return 1;
}

/* A complete answer, from a process of the same program. */
static int take_facts(struct graft_kube_question *question, struct graft_arena *arena, struct graft_kept_facts *facts,
		      struct graft_error *err)
{
	struct graft_kept_facts kept = { .version = 0 };
	struct graft_error why;
	const char *text;
	size_t n;
	int rc = graft_kube_question_take(question, &text, &n, err);

	if (rc < 0)
		return -1;
	if (rc > 0)
		return graft_fail(err, GRAFT_NVML, 0, "nvml error: the process that asked ended without an answer");
	if (graft_record_read(&graft_kept_facts_record, text, n, arena, &kept, &why) < 0)
		return why.status == GRAFT_NO_MEMORY
			   ? graft_fail_memory(err)
			   : graft_fail(err, GRAFT_NVML, 0, "nvml error: the answer is malformed: %s", why.msg);
	*facts = kept;
	return 0;
}

int graft_kube_facts_end(struct graft_kube_question *question, const struct graft_log *log,
			 struct graft_inventory *inventory, struct graft_arena *arena, struct graft_kept_facts *facts,
			 struct graft_error *err)
{
	int rc = take_facts(question, arena, facts, err);

	graft_kube_question_done(question);
	return rc < 0 ? -1 : graft_kept_complete(facts, log, inventory, err);
}
