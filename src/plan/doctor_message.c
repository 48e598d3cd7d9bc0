/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_message: messages that people paste, and which checks find what is behind them. A message tells where to look; what is the matter on this host the
 * checks tell.
 */
#include <string.h>

#include "base/cleanup.h"
#include "plan/doctor_judge.h"

const struct graft_doctor_message graft_doctor_messages[] = {
#define X(text, other, usual, ...) \
	{ text, other, usual, { __VA_ARGS__ }, sizeof((enum graft_check[]){ __VA_ARGS__ }) / sizeof(enum graft_check) },
	GRAFT_MESSAGE_LIST(X)
#undef X
};
const size_t graft_n_doctor_messages = GRAFT_COUNT(graft_doctor_messages);

static const struct graft_doctor_message *find_message(const char *text)
{
	for (size_t i = 0; i < graft_n_doctor_messages; i++) {
		const struct graft_doctor_message *message = &graft_doctor_messages[i];

		if (strcasestr(text, message->text) || (message->other && strcasestr(text, message->other)))
			return message;
	}
	return NULL;
}

void graft_judge_message(struct graft_judge *judge)
{
	const struct graft_doctor_message *message = judge->question->message ? find_message(judge->question->message)
									      : NULL;
	struct graft_diagnosis *diagnosis = judge->diagnosis;

	if (!message)
		return;
	diagnosis->message = message->usual;
	for (size_t i = 0; i < diagnosis->n_findings; i++) {
		struct graft_finding *finding = &diagnosis->findings[i];

		for (size_t k = 0; k < message->n_checks && finding->level > GRAFT_LEVEL_UNKNOWN; k++)
			finding->explains |= finding->check == message->checks[k];
	}
}

/* --- what a message is about --- */

/* What stands between two texts; NULL when they do not stand there in this order, or nothing is between. */
static const char *between(const char *text, const char *before, const char *behind, struct graft_arena *arena)
{
	const char *start = strcasestr(text, before), *end;

	if (!start)
		return NULL;
	start += strlen(before);
	start += strspn(start, " ");
	end = behind ? strcasestr(start, behind) : start + strcspn(start, " ;\n\"\\");
	return end && end > start ? graft_arena_strndup(arena, start, (size_t)(end - start)) : NULL;
}

void graft_doctor_read_message(const char *message, struct graft_arena *arena, const char **ret_device,
			       const char **ret_requirement)
{
	const char *device = between(message, "device error:", ": unknown device", arena);

	if (!device)
		device = between(message, "unresolvable CDI devices", NULL, arena);
	*ret_device = device;
	*ret_requirement = between(message, "unsatisfied condition:", NULL, arena);
	if (*ret_requirement && strchr(*ret_requirement, ','))
		*ret_requirement = graft_arena_strndup(arena, *ret_requirement, strcspn(*ret_requirement, ","));
}
