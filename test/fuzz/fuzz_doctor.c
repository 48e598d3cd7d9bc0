/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of a host from an untrusted sender: any facts can be judged. Other input is a message about
 * an unknown host.
 */
#include "doctor/judge.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct graft_health nothing = { .version = GRAFT_HEALTH_VERSION };
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	struct graft_health *health = NULL;
	struct graft_doctor_question question = { .message = "device error: GPU-0: unknown device" };
	struct graft_diagnosis diagnosis;
	const char *device, *requirement;

	if (size <= ((size_t)256 << 10) && graft_health_read((const char *)data, size, &health, NULL) < 0)
		question.message = graft_arena_strndup(arena, (const char *)data, size);
	graft_doctor_read_message(question.message, arena, &device, &requirement);
	question.devices = &device;
	question.n_devices = device ? 1 : 0;
	(void)graft_doctor_judge(health ? health : &nothing, &question, arena, &diagnosis, NULL);
	(void)graft_health_free(health);
	(void)graft_arena_free(arena);
	return 0;
}
