/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_state: the state of one judgement, shared by the files judge*.c. Private to src/doctor.
 * Failed allocations are recorded in the arena.
 */
#ifndef GRAFT_DOCTOR_JUDGE_STATE_H
#define GRAFT_DOCTOR_JUDGE_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "doctor/judge.h"

struct graft_judge {
	const struct graft_health *health;
	const struct graft_doctor_question *question;
	struct graft_arena *arena;
	struct graft_diagnosis *diagnosis;
	struct graft_finding lost; /* returned if there is no memory for a finding */
};

/*
 * Adds a finding and returns it, so that its remedy can be set; if out of memory, returns a dummy
 * in which that does no harm. `subject` must live as long as the facts or the arena.
 */
__attribute__((format(printf, 5, 6))) struct graft_finding *graft_judge_add(struct graft_judge *judge,
									    enum graft_check check,
									    enum graft_level level, const char *subject,
									    const char *cause, ...);
/* Formats a text in the arena; never NULL. */
__attribute__((format(printf, 2, 3))) const char *graft_judge_text(struct graft_judge *judge, const char *format, ...);

/* Returns the version of the driver's kernel side; NULL if it does not run. */
const char *graft_judge_module_version(const struct graft_judge *judge);
/*
 * Whether the driver is a kernel module with device nodes of its own, which is not the case on WSL2
 * and Tegra.
 */
bool graft_judge_is_native(const struct graft_judge *judge);
/* Whether the driver's kernel side runs, in whatever form the platform has it. */
bool graft_judge_has_kernel_driver(const struct graft_judge *judge);
/* Counts the GPUs that the driver has and uses. */
size_t graft_judge_count_gpus(const struct graft_judge *judge);
/* Returns the path of the program, or NULL. */
const char *graft_judge_find_program(const struct graft_judge *judge, const char *name);
/*
 * Formats a remedy for a file that could not be parsed. If `problem` locates a comment, the remedy
 * is to remove it, and otherwise to correct the line. `more` is a clause to append.
 */
const char *graft_judge_file_remedy(struct graft_judge *judge, const char *problem, const char *more);
/*
 * Whether the driver is simulated and the engine starts its containers outside this simulated
 * host, where there is none. On a real host, a daemon with mounts of its own has the same driver.
 */
bool graft_judge_is_outside(const struct graft_judge *judge, const struct graft_health_engine *engine);
/* Returns the systemctl command that does `verb` with the engine's unit. */
const char *graft_judge_systemctl(struct graft_judge *judge, const struct graft_health_engine *engine,
				  const char *verb);
/* Whether the engine does not start, or Podman not work, as it cannot read one of its files. */
bool graft_judge_cannot_start(const struct graft_health_engine *engine);
/*
 * Returns the commands that register the runtime in the configuration of containerd, a distribution
 * that includes it, or CRI-O, and restart it.
 */
const char *graft_judge_configure_command(struct graft_judge *judge, const struct graft_health_engine *engine);
/* Whether the running daemon has answered, so that its files are irrelevant. */
bool graft_judge_docker_answers(const struct graft_health_engine *engine);

/* The program that reads config.toml on a way to a GPU. */
enum graft_judge_reader { GRAFT_READER_NONE, GRAFT_READER_HOOK, GRAFT_READER_RUNTIME };
/* Whether config.toml keeps that program from starting a container. */
bool graft_judge_stops(const struct graft_judge *judge, enum graft_judge_reader reader);

/* Returns "version 4.3.1", or "CDI library 0.6.2" if only that is known. One of them must be. */
const char *graft_judge_version(struct graft_judge *judge, const struct graft_health_engine *engine);
/* Whether the hook of `--gpus` is newer than the daemon, so that the daemon may not know of it. */
bool graft_judge_is_hook_newer(const struct graft_health_engine *engine);

/* What `--device nvidia.com/gpu=...` does with an engine; of several specs the best counts. */
enum graft_judge_cdi_state {
	GRAFT_CDI_OFF,       /* the engine does not read specs, or CDI is disabled */
	GRAFT_CDI_NO_SPEC,   /* no spec has GPUs */
	GRAFT_CDI_ELSEWHERE, /* it is in a directory that the engine does not read */
	GRAFT_CDI_TOO_NEW,   /* the engine does not know its version */
	GRAFT_CDI_PERHAPS,   /* the version of the engine is unknown, and not every version reads it */
	GRAFT_CDI_STALE,
	GRAFT_CDI_WORKS,
};
struct graft_judge_cdi {
	enum graft_judge_cdi_state state;
	const struct graft_health_spec *spec;  /* NULL unless there is one */
	const struct graft_cdi_reader *reader; /* NULL: unknown version */
	const char *directory;                 /* first one that the engine reads; NULL = the usual ones */
};
struct graft_judge_cdi graft_judge_cdi_of(const struct graft_judge *judge, const struct graft_health_engine *engine);

/* One function per group of checks, each in its own file. */
void graft_judge_kernel(struct graft_judge *judge);                           /* judge_kernel.c */
void graft_judge_nodes(struct graft_judge *judge);                            /* judge_nodes.c */
void graft_judge_libraries(struct graft_judge *judge);                        /* judge_libraries.c */
void graft_judge_daemons(struct graft_judge *judge);                          /* judge_daemons.c */
void graft_judge_rights(struct graft_judge *judge);                           /* judge_rights.c */
void graft_judge_toolkit(struct graft_judge *judge);                          /* judge_toolkit.c */
void graft_judge_specs(struct graft_judge *judge);                            /* judge_cdi.c */
void graft_judge_docker(struct graft_judge *judge);                           /* judge_docker.c */
void graft_judge_engines(struct graft_judge *judge);                          /* judge_engines.c */
void graft_judge_cluster(struct graft_judge *judge);                          /* judge_cluster.c */
void graft_judge_owners(struct graft_judge *judge);                           /* judge_owners.c */
int graft_judge_question(struct graft_judge *judge, struct graft_error *err); /* judge_question.c */
void graft_judge_message(struct graft_judge *judge);                          /* messages.c */
void graft_judge_ways(struct graft_judge *judge);                             /* judge_ways.c */

#endif
