/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_judge: the state of one judgement, shared by the files doctor*.c. Private to src/plan. Memory that fails is remembered in the arena. */
#ifndef GRAFT_PLAN_DOCTOR_JUDGE_H
#define GRAFT_PLAN_DOCTOR_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "plan/doctor.h"

struct graft_judge {
	const struct graft_health *health;
	const struct graft_doctor_question *question;
	struct graft_arena *arena;
	struct graft_diagnosis *diagnosis;
	struct graft_finding lost; /* where a finding goes for which there is no memory */
};

/*
 * Adds a finding; returns it for its remedy, or a place where a remedy does no harm when memory failed. `subject` must live as long as the facts or the
 * arena.
 */
__attribute__((format(printf, 5, 6))) struct graft_finding *graft_judge_add(struct graft_judge *judge,
									    enum graft_check check,
									    enum graft_level level, const char *subject,
									    const char *cause, ...);
/* A text in the arena; never NULL. */
__attribute__((format(printf, 2, 3))) const char *graft_judge_text(struct graft_judge *judge, const char *format, ...);

/* The version of the kernel's side of the driver; NULL when it does not run. */
const char *graft_judge_module_version(const struct graft_judge *judge);
/* Whether the driver is a kernel module with device nodes of its own: neither WSL2 nor Tegra. */
bool graft_judge_is_native(const struct graft_judge *judge);
/* Whether the kernel's side runs, in whatever way the platform has it. */
bool graft_judge_has_kernel_driver(const struct graft_judge *judge);
/* GPUs that the driver has and uses. */
size_t graft_judge_count_gpus(const struct graft_judge *judge);
/* The program's row, or NULL. */
const char *graft_judge_find_program(const struct graft_judge *judge, const char *name);
/* Whether any usable spec has devices of this kind ("nvidia.com/gpu"). */
bool graft_judge_has_cdi_kind(const struct graft_judge *judge, const char *kind);

/* One function per group of checks; each in its file. */
void graft_judge_kernel(struct graft_judge *judge);                           /* doctor_kernel.c */
void graft_judge_nodes(struct graft_judge *judge);                            /* doctor_nodes.c */
void graft_judge_libraries(struct graft_judge *judge);                        /* doctor_libraries.c */
void graft_judge_daemons(struct graft_judge *judge);                          /* doctor_daemons.c */
void graft_judge_rights(struct graft_judge *judge);                           /* doctor_rights.c */
void graft_judge_toolkit(struct graft_judge *judge);                          /* doctor_toolkit.c */
void graft_judge_docker(struct graft_judge *judge);                           /* doctor_docker.c */
void graft_judge_engines(struct graft_judge *judge);                          /* doctor_engines.c */
int graft_judge_question(struct graft_judge *judge, struct graft_error *err); /* doctor_question.c */
void graft_judge_message(struct graft_judge *judge);                          /* doctor_message.c */

#endif
