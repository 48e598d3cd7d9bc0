/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge: combines the judgements in the order of the checks. The files judge_*.c interpret the
 * facts.
 */
#include "doctor/judge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "doctor/judge_state.h"

#define TEXT_MAX 2048

const char *const graft_level_names[GRAFT_LEVEL_MAX] = {
#define X(name, word) word,
	GRAFT_LEVEL_LIST(X)
#undef X
};

const char *const graft_check_ids[GRAFT_CHECK_MAX] = {
#define X(name, id, what) id,
	GRAFT_CHECK_LIST(X)
#undef X
};

/* --- the JSON form --- */

static const struct graft_field finding_fields[] = {
	GRAFT_F_ENUM(struct graft_finding, check, graft_check_ids, GRAFT_CHECK_MAX, true, "id of the check"),
	GRAFT_F_ENUM(struct graft_finding, level, graft_level_names, GRAFT_LEVEL_MAX, true, "how bad it is"),
	GRAFT_F_STRING(struct graft_finding, subject, true, "what it is about"),
	GRAFT_F_STRING(struct graft_finding, cause, true, "what was found, and why it is wrong"),
	GRAFT_F_STRING(struct graft_finding, remedy, false, "what to do"),
	GRAFT_F_BOOL(struct graft_finding, explains, "it may be the cause of the message that was asked about"),
};
static const struct graft_record finding_record = { "finding", sizeof(struct graft_finding), finding_fields,
						    GRAFT_COUNT(finding_fields) };

static const struct graft_field way_fields[] = {
	GRAFT_F_STRING(struct graft_way, engine, true, "the engine's name"),
	GRAFT_F_STRING(struct graft_way, command, true, "what gives a container GPUs"),
	GRAFT_F_ENUM(struct graft_way, level, graft_level_names, GRAFT_LEVEL_MAX, true, "ok: it works"),
	GRAFT_F_STRING(struct graft_way, why, false, "why not, or what is not known"),
};
static const struct graft_record way_record = { "way", sizeof(struct graft_way), way_fields, GRAFT_COUNT(way_fields) };

static const struct graft_field diagnosis_fields[] = {
	GRAFT_F_U32(struct graft_diagnosis, version, true, "version of this format"),
	GRAFT_F_ENUM(struct graft_diagnosis, verdict, graft_level_names, GRAFT_LEVEL_MAX, true, "the worst level"),
	GRAFT_F_STRING(struct graft_diagnosis, message, false, "the usual cause of the message that was asked about"),
	GRAFT_F_STRING(struct graft_diagnosis, message_remedy, false, "its usual remedy"),
	GRAFT_F_BOOL(struct graft_diagnosis, simulated, "the driver is Graft's simulated one"),
	GRAFT_F_RECORDS(struct graft_diagnosis, findings, &finding_record, "in the order of the checks"),
	GRAFT_F_RECORDS(struct graft_diagnosis, ways, &way_record, "how containers get GPUs on this host"),
};
const struct graft_record graft_diagnosis_record = { "diagnosis", sizeof(struct graft_diagnosis), diagnosis_fields,
						     GRAFT_COUNT(diagnosis_fields) };

/* --- findings --- */

struct graft_finding *graft_judge_add(struct graft_judge *judge, enum graft_check check, enum graft_level level,
				      const char *subject, const char *cause, ...)
{
	struct graft_diagnosis *diagnosis = judge->diagnosis;
	struct graft_finding *finding;
	char text[TEXT_MAX];
	va_list args;

	va_start(args, cause);
	(void)vsnprintf(text, sizeof(text), cause, args);
	va_end(args);
	finding = graft_arena_push(judge->arena, &diagnosis->findings, &diagnosis->n_findings, sizeof(*finding));
	if (!finding)
		return &judge->lost;
	finding->check = check;
	finding->level = level;
	finding->subject = subject ? subject : "";
	finding->cause = graft_arena_strdup(judge->arena, text);
	return finding;
}

const char *graft_judge_text(struct graft_judge *judge, const char *format, ...)
{
	char text[TEXT_MAX];
	const char *copy;
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	copy = graft_arena_strdup(judge->arena, text);
	return copy ? copy : "";
}

/* --- shared by several files --- */

const char *graft_judge_module_version(const struct graft_judge *judge)
{
	const struct graft_health_module *module = graft_health_find_module(judge->health, "nvidia");

	if (module && module->loaded && module->version)
		return module->version;
	return judge->health->inventory.driver_version.value;
}

bool graft_judge_is_native(const struct graft_judge *judge)
{
	enum graft_platform platform = judge->health->inventory.platform;

	return platform != GRAFT_PLATFORM_WSL2 && platform != GRAFT_PLATFORM_TEGRA;
}

bool graft_judge_has_kernel_driver(const struct graft_judge *judge)
{
	const struct graft_health_module *module = graft_health_find_module(judge->health, "nvidia");

	return !graft_judge_is_native(judge) || (module && module->loaded) ||
	       judge->health->inventory.proc_driver_nvidia || judge->health->nvml.lists_gpus;
}

size_t graft_judge_count_gpus(const struct graft_judge *judge)
{
	return graft_inventory_count_gpus(&judge->health->inventory);
}

const char *graft_judge_find_program(const struct graft_judge *judge, const char *name)
{
	for (size_t i = 0; i < judge->health->n_programs; i++) {
		if (strcmp(judge->health->programs[i].name, name) == 0)
			return judge->health->programs[i].path;
	}
	return NULL;
}

const char *graft_judge_file_remedy(struct graft_judge *judge, const char *problem, const char *more)
{
	const char *at = strstr(problem, "line ");
	unsigned long line = at ? strtoul(at + strlen("line "), NULL, 10) : 0;

	if (line == 0)
		return strstr(problem, strerror(EACCES)) ? "Run 'sudo nvidia-ctk doctor' to have it read."
							 : graft_judge_text(judge, "Correct the file; %s.", more);
	if (strstr(problem, "a comment"))
		return graft_judge_text(judge, "Remove the comment in line %lu; %s.", line, more);
	if (strstr(problem, "a comma"))
		return graft_judge_text(judge, "Remove the comma before the bracket in line %lu; %s.", line, more);
	return graft_judge_text(judge, "Correct line %lu; %s.", line, more);
}

/*
 * One finding covers everything that was not seen: the list of paths is the same for every user but
 * root.
 */
static void judge_unseen(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	if (health->n_unseen > 0)
		graft_judge_add(judge, GRAFT_CHECK_UNSEEN, GRAFT_LEVEL_UNKNOWN, health->unseen[0].path,
				"could not be read (%s)%s", health->unseen[0].why,
				health->n_unseen == 1
				    ? ""
				    : graft_judge_text(judge, ", and %zu other%s", health->n_unseen - 1,
						       health->n_unseen == 2 ? "" : "s"))
		    ->remedy = "Run 'sudo nvidia-ctk doctor' to see everything.";
	if (health->processes_hidden)
		graft_judge_add(judge, GRAFT_CHECK_UNSEEN, GRAFT_LEVEL_UNKNOWN, "/proc",
				"shows only the caller's own processes: other daemons may be running")
		    ->remedy = "Run 'sudo nvidia-ctk doctor' to see everything.";
}

/* Stable: findings of one check keep the order in which they were made. */
static void sort_findings(struct graft_diagnosis *diagnosis)
{
	struct graft_finding *findings = diagnosis->findings;

	for (size_t i = 1; i < diagnosis->n_findings; i++) {
		struct graft_finding moved = findings[i];
		size_t k = i;

		for (; k > 0 && findings[k - 1].check > moved.check; k--)
			findings[k] = findings[k - 1];
		findings[k] = moved;
	}
}

int graft_doctor_judge(const struct graft_health *health, const struct graft_doctor_question *question,
		       struct graft_arena *arena, struct graft_diagnosis *ret_diagnosis, struct graft_error *err)
{
	static void (*const groups[])(struct graft_judge * judge) = {
		graft_judge_kernel,  graft_judge_nodes, graft_judge_libraries, graft_judge_daemons, graft_judge_rights,
		graft_judge_toolkit, graft_judge_specs, graft_judge_docker,    graft_judge_engines, graft_judge_cluster,
	};
	struct graft_judge judge = {
		.health = health, .question = question, .arena = arena, .diagnosis = ret_diagnosis
	};

	*ret_diagnosis = (struct graft_diagnosis){ .version = GRAFT_DIAGNOSIS_VERSION,
						   .simulated = health->inventory.simulated };
	for (size_t i = 0; i < GRAFT_COUNT(groups); i++)
		groups[i](&judge);
	if (graft_judge_question(&judge, err) < 0)
		return -1;
	judge_unseen(&judge);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	sort_findings(ret_diagnosis);
	graft_judge_message(&judge);
	for (size_t i = 0; i < ret_diagnosis->n_findings; i++) {
		enum graft_level level = ret_diagnosis->findings[i].level;

		if (level > ret_diagnosis->verdict && level != GRAFT_LEVEL_UNKNOWN)
			ret_diagnosis->verdict = level;
	}
	graft_judge_ways(&judge);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
