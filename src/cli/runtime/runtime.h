/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime: nvidia-container-runtime, a shim in front of a low-level OCI runtime (SPEC runtime-and-hook 3 to 10). On `create` it edits the
 * bundle's config.json, then becomes runc or crun. One file per mode.
 *
 *   main          arguments -> config.toml -> log -> low-level runtime -> (create: config.json -> container -> mode -> edits) -> execve
 *
 * Where something waits until the container is made, the low-level runtime is called and not become, and what waited is done behind it (finish.h).
 *
 * A container that asks for no GPU is decided from one pass over config.json; nothing of the driver is looked at.
 */
#ifndef GRAFT_CLI_RUNTIME_RUNTIME_H
#define GRAFT_CLI_RUNTIME_RUNTIME_H

#include "apply/to_oci.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/json_document.h"
#include "formats/oci_spec.h"
#include "request/config.h"
#include "request/container.h"
#include "request/oci_arguments.h"

/* One `create`: what a mode gets. It edits `document` and, where a mode may, the container's root; it writes no file of the bundle. */
struct runtime_create {
	const struct graft_config *config;
	const char *low_level; /* path of the low-level runtime */
	const char *bundle;    /* NULL = the working directory */
	struct graft_json_document *document;
	const struct graft_oci_spec *spec;       /* view of the document as it was read */
	const struct graft_container *container; /* wants_devices, or legacy mode */
	const char *hook_path;                   /* nvidia-container-runtime-hook, resolved (SPEC 3.6) */
	const char *cdi_hook_path;               /* nvidia-cdi-hook, resolved; absolute */
	const char *hook_root;     /* the root's absolute path, where its hooks need not wait for the state; or NULL */
	const char **other_mounts; /* where container edits mount something: plans for the root know nothing of it */
	size_t n_other_mounts;
	bool comes_back; /* whether somebody does what waits until the container is made */
	struct graft_oci_waiting waiting;
	const struct graft_log *log;
	struct graft_texts *texts; /* what was read of the container's root */
	struct graft_arena *arena; /* for all that lives until execve */
};

/* Each: 0, or -1 and then nothing is written and the low-level runtime is not started. */
int runtime_legacy(struct runtime_create *create, struct graft_error *err);  /* SPEC 10 */
int runtime_jit_cdi(struct runtime_create *create, struct graft_error *err); /* SPEC 7 */
int runtime_cdi(struct runtime_create *create, struct graft_error *err);     /* SPEC 8 */
int runtime_csv(struct runtime_create *create, struct graft_error *err);     /* SPEC 9 */

/*
 * The program. `mode` overrides the configured one (nvidia-container-runtime.cdi, .legacy); NULL = as configured. Returns the exit status when
 * it does not become the low-level runtime.
 */
int runtime_main(const char *mode, int argc, char **argv);

#endif
