/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: what the files of the planner share. Each rule reads the four inputs and appends edits and
 * refusals; none examines what another has appended. planner.c calls them in the order of the plan.
 *
 * Errors are sticky: the plan's arena records a failed allocation, which is reported once, at the
 * end. An edit for which there is no memory goes to `scratch`, so that a rule is a simple list of
 * statements.
 */
#ifndef GRAFT_PLAN_RULES_H
#define GRAFT_PLAN_RULES_H

#include <stdio.h>

#include "base/path.h"
#include "plan/planner.h"

struct graft_planner {
	const struct graft_inventory *inventory;
	const struct graft_request *request;
	const struct graft_policy *policy;
	const struct graft_selection *selection;
	struct graft_plan *plan;
	const char *bins_dir, *libs_dir, *libs32_dir; /* targets in this image */
	const bool *takes, *takes32;                  /* per library of the inventory: graft_plan_takes() */
	bool oci;                                     /* style OCI: the host's paths, nodes made by a runtime */
	bool wants_gpu;                               /* at least one GPU is granted, or the platform's only one */
	bool procfs_view; /* the container gets a procfs view, so files can be added to it */
	struct graft_edit scratch;
};

/* Flags for all files of the driver: read-only, no device nodes, no set-user-id programs. */
#define GRAFT_FLAGS_FILE   (GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID)
#define GRAFT_FLAGS_PROC   (GRAFT_FLAGS_FILE | GRAFT_MOUNT_NOEXEC)
#define GRAFT_FLAGS_TMPFS  (GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC)
#define GRAFT_FLAGS_SOCKET (GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC)
/*
 * SPEC libnvidia-container 9.4: without nodev, since it is a node; read-only protects its metadata,
 * not the device.
 */
#define GRAFT_FLAGS_DEVICE (GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC)

/*
 * Appends an edit with its rule and reason; the caller fills in the rest before appending another.
 * Never returns NULL.
 */
__attribute__((format(printf, 4, 5))) struct graft_edit *
graft_plan_edit(struct graft_planner *planner, enum graft_edit_kind kind, const char *rule, const char *why, ...);
/* Appends a refusal. `what` is a format, `why` is not. */
__attribute__((format(printf, 3, 4))) void graft_plan_refuse(struct graft_planner *planner, const char *why,
							     const char *what, ...);
#ifdef GRAFT_WITHOUT_DOCS
/*
 * The plans of programs built for size are never read by people: their edits have no reasons, and
 * refusals are not recorded. The arguments count as used, and the texts are not formatted.
 */
#define GRAFT_UNSAID(...) ((void)(false && snprintf(NULL, 0, __VA_ARGS__)))
#define graft_plan_edit(planner, kind, rule, ...) \
	(GRAFT_UNSAID(__VA_ARGS__), (graft_plan_edit)(planner, kind, rule, NULL))
#define graft_plan_refuse(planner, why, ...) ((void)(planner), (void)(why), GRAFT_UNSAID(__VA_ARGS__))
#endif
/* Returns a copy in the plan's arena; NULL for NULL. */
const char *graft_plan_copy(struct graft_planner *planner, const char *s);
/* Returns a host path: `path` with the prefix `root` ("/" and NULL add nothing). */
const char *graft_plan_on_host(struct graft_planner *planner, const char *root, const char *path);
/* Returns "directory/name" with one slash between. */
const char *graft_plan_join(struct graft_planner *planner, const char *directory, const char *name);
/* Returns the names of capability bits: "compute or video". In the plan's arena. */
const char *graft_plan_capability_words(struct graft_planner *planner, unsigned int capabilities);
#ifdef GRAFT_WITHOUT_DOCS
#define graft_plan_capability_words(planner, capabilities) ((void)(planner), (void)(capabilities), "")
#endif
/* Refuses `n` files of a class, if there are any, of which `noun` says what they are. */
void graft_plan_refuse_class(struct graft_planner *planner, const char *noun, enum graft_class class_, size_t n,
			     unsigned int capabilities);
/* Returns whether the container requested any of the capabilities. */
bool graft_plan_has(const struct graft_planner *planner, unsigned int capabilities);
/* Returns whether the part of a plan that corresponds to a hook is disabled (style OCI). */
bool graft_plan_is_disabled(const struct graft_planner *planner, enum graft_hook hook);

/* targets.c: sets the three directories (SPEC libnvidia-container 9.2). */
void graft_plan_targets(struct graft_planner *planner);

/* plan_missing.c: what the container asked for and the host lacks. Adds no edit. */
void graft_rule_missing(struct graft_planner *planner);
#ifdef GRAFT_WITHOUT_DOCS
#define graft_rule_missing(planner) ((void)(planner))
#endif

/* The rules, in the order of the plan. Those that can fail return -1 with the error set. */
void graft_rule_procfs_view(struct graft_planner *planner);                        /* procfs_view.c */
void graft_rule_application_profile(struct graft_planner *planner);                /* application_profile.c */
void graft_rule_binaries(struct graft_planner *planner);                           /* files.c */
void graft_rule_libraries(struct graft_planner *planner);                          /* plan_libraries.c */
void graft_rule_links(struct graft_planner *planner);                              /* links.c */
void graft_rule_extra_files(struct graft_planner *planner);                        /* files.c */
void graft_rule_firmware(struct graft_planner *planner);                           /* files.c */
void graft_rule_ipcs(struct graft_planner *planner);                               /* files.c */
int graft_rule_nodes(struct graft_planner *planner, struct graft_error *err);      /* devices.c */
int graft_rule_gpus(struct graft_planner *planner, struct graft_error *err);       /* devices.c */
int graft_rule_mig(struct graft_planner *planner, struct graft_error *err);        /* plan_mig.c */
int graft_rule_imex(struct graft_planner *planner, struct graft_error *err);       /* plan_imex.c */
int graft_rule_gates(struct graft_planner *planner, struct graft_error *err);      /* plan_gates.c */
int graft_rule_management(struct graft_planner *planner, struct graft_error *err); /* plan_management.c */
void graft_rule_params(struct graft_planner *planner);                             /* procfs_view.c */
void graft_rule_environment(struct graft_planner *planner);                        /* environment.c */
void graft_rule_loader_cache(struct graft_planner *planner);                       /* plan_loader_cache.c */

/* procfs_view.c: adds the directory of one GPU to the view. */
void graft_plan_gpu_procfs(struct graft_planner *planner, const struct graft_gpu *gpu);

/*
 * devices.c: add a node and its device rule, each only if this plan is responsible for it. A
 * missing node is an error, because the container would start without what it was promised.
 */
int graft_plan_node(struct graft_planner *planner, const struct graft_node *node, const char *rule, const char *why,
		    struct graft_error *err);
void graft_plan_device_rule(struct graft_planner *planner, uint32_t major, uint32_t minor, const char *rule,
			    const char *why);

/* plan_drm.c: adds the display and render nodes of a selected GPU, and the links to them. */
int graft_plan_drm(struct graft_planner *planner, const struct graft_gpu *gpu, struct graft_error *err);

/*
 * plan_libraries.c: return the target of a library, and the directory of that target. `directory`
 * is that of style NAMESPACE.
 */
const char *graft_plan_library_target(struct graft_planner *planner, const struct graft_library *library,
				      const char *directory);
const char *graft_plan_library_directory(struct graft_planner *planner, const struct graft_library *library,
					 const char *directory);

/*
 * plan_libraries.c: graft_plan_choose_libraries() decides, once for all rules, which libraries the
 * container gets. graft_plan_takes() returns whether it gets library `i` of one of the inventory's
 * two lists: its class is requested and no earlier library has the same target.
 * graft_plan_is_first() returns whether it is also the first of those with its soname.
 */
void graft_plan_choose_libraries(struct graft_planner *planner);
bool graft_plan_takes(const struct graft_planner *planner, const struct graft_library *libraries, size_t i);
bool graft_plan_is_first(const struct graft_planner *planner, const struct graft_library *libraries, size_t i);

/*
 * compat.c: appends the entries and directories of the image's CUDA compatibility libraries to an
 * LDCACHE edit; refuses the rest.
 */
void graft_plan_compat(struct graft_planner *planner, struct graft_edit *edit);

#endif
