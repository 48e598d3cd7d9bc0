/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages: finds a message in the table. A message only determines where to look; the checks find
 * the cause on this host.
 */
#include "doctor/messages.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "doctor/judge_state.h"

const struct graft_doctor_message graft_doctor_messages[] = {
#define X(texts, cause, remedy, ...) \
	{ texts,                     \
	  cause,                     \
	  remedy,                    \
	  { __VA_ARGS__ },           \
	  sizeof((enum graft_check[]){ __VA_ARGS__ }) / sizeof(enum graft_check) },
	GRAFT_MESSAGE_LIST(X)
#undef X
};
const size_t graft_n_doctor_messages = GRAFT_COUNT(graft_doctor_messages);

static char plain(char c)
{
	return (char)(c == '"' || c == '`' ? '\'' : tolower((unsigned char)c));
}

/* Whether the message has the text at its beginning. Logs write quotes with backslashes. */
static bool message_begins(const char *message, const char *text, size_t length)
{
	for (const char *end = text + length; text < end; text++) {
		while (*message == '\\')
			message++;
		if (plain(*message++) != plain(*text))
			return false;
	}
	return true;
}

/* Whether the message contains `length` bytes of `text`, ignoring case and the kind of quotes. */
static bool contains(const char *message, const char *text, size_t length)
{
	char first = plain(text[0]);

	/* Most places differ in the first byte. */
	while (*message != '\0' && (plain(*message) != first || !message_begins(message, text, length)))
		message++;
	return *message != '\0';
}

const struct graft_doctor_message *graft_doctor_find_message(const char *message)
{
	for (size_t i = 0; i < graft_n_doctor_messages; i++) {
		for (const char *text = graft_doctor_messages[i].texts; *text != '\0';) {
			size_t length = strcspn(text, "|");

			if (contains(message, text, length))
				return &graft_doctor_messages[i];
			text += length + (text[length] == '|');
		}
	}
	return NULL;
}

bool graft_doctor_is_of_cluster(const char *message)
{
	const struct graft_doctor_message *row = graft_doctor_find_message(message);

	for (size_t i = 0; row && i < row->n_checks; i++) {
		if (row->checks[i] == GRAFT_CHECK_DEVICE_PLUGIN)
			return true;
	}
	return false;
}

/*
 * A finding that is not a problem, but has a remedy, is the cause of the message if the message's
 * checks include it: a missing runtime nvidia affects only those who use '--runtime=nvidia'.
 */
void graft_judge_message(struct graft_judge *judge)
{
	const char *text = judge->question->message;
	const struct graft_doctor_message *message = text ? graft_doctor_find_message(text) : NULL;
	struct graft_diagnosis *diagnosis = judge->diagnosis;

	if (!message)
		return;
	diagnosis->message = message->cause;
	diagnosis->message_remedy = message->remedy;
	for (size_t i = 0; i < diagnosis->n_findings; i++) {
		struct graft_finding *finding = &diagnosis->findings[i];

		for (size_t k = 0; k < message->n_checks; k++)
			finding->explains |= finding->check == message->checks[k] && finding->remedy;
		if (finding->explains && finding->level < GRAFT_LEVEL_WARNING)
			finding->level = GRAFT_LEVEL_WARNING;
	}
}

/* --- the subject of a message --- */

/*
 * Returns the text between two others; NULL if they do not occur in this order, or nothing is
 * between them.
 */
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
