/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: what the files of the planner share. Each rule reads the four inputs and appends edits and refusals; none looks at what another
 * has appended. planner.c calls them in the order of the plan.
 *
 * Sticky: a failed allocation is remembered by the plan's arena and reported once, at the end; until then edits go to
 * `scratch`, so that a rule reads as a list of statements.
 */
#ifndef GRAFT_PLAN_RULES_H
#define GRAFT_PLAN_RULES_H

#include "base/path.h"
#include "plan/planner.h"

struct graft_planner {
	const struct graft_inventory *inventory;
	const struct graft_request *request;
	const struct graft_policy *policy;
	const struct graft_selection *selection;
	struct graft_plan *plan;
	const char *bins_dir, *libs_dir, *libs32_dir; /* where things go in this image */
	const bool *takes, *takes32;                  /* of each library of the inventory: graft_plan_takes() */
	bool oci;                                     /* style OCI: the host's paths, nodes made by a runtime */
	bool wants_gpu;                               /* at least one GPU is granted, or the platform's only one */
	bool procfs_view; /* the container gets a procfs view, so things may be put into it */
	struct graft_edit scratch;
};

/* What all files of the driver get: read-only, no device nodes, no set-user-id programs. */
#define GRAFT_FLAGS_FILE   (GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID)
#define GRAFT_FLAGS_PROC   (GRAFT_FLAGS_FILE | GRAFT_MOUNT_NOEXEC)
#define GRAFT_FLAGS_TMPFS  (GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC)
#define GRAFT_FLAGS_SOCKET (GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC)
/* SPEC 9.4: no nodev, since it is a node; read-only protects its metadata, not what is behind it. */
#define GRAFT_FLAGS_DEVICE (GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC)

/* Appends an edit with its rule and reason; the caller fills in the rest before the next one is appended. Never NULL. */
__attribute__((format(printf, 4, 5))) struct graft_edit *
graft_plan_edit(struct graft_planner *planner, enum graft_edit_kind kind, const char *rule, const char *why, ...);
/* Appends a refusal. `why` is not a format; `what` is. */
__attribute__((format(printf, 3, 4))) void graft_plan_refuse(struct graft_planner *planner, const char *why,
							     const char *what, ...);
/* A copy in the plan's arena; NULL gives NULL. */
const char *graft_plan_copy(struct graft_planner *planner, const char *s);
/* A host path: `path` behind the prefix `root` ("/" and NULL are none). */
const char *graft_plan_on_host(struct graft_planner *planner, const char *root, const char *path);
/* "directory/name" with one slash between. */
const char *graft_plan_join(struct graft_planner *planner, const char *directory, const char *name);
/* The words of capability bits: "compute or video". In the plan's arena. */
const char *graft_plan_capability_words(struct graft_planner *planner, unsigned int capabilities);
/* Whether the container asked for any of the capabilities. */
bool graft_plan_has(const struct graft_planner *planner, unsigned int capabilities);
/* Whether the part of a plan that a hook would be is switched off (style OCI). */
bool graft_plan_is_disabled(const struct graft_planner *planner, enum graft_hook hook);

/* targets.c: sets the three directories (SPEC 9.2). */
void graft_plan_targets(struct graft_planner *planner);

/* The rules, in the order of the plan. Those that can fail return -1 with the error set. */
void graft_rule_procfs_view(struct graft_planner *planner);                        /* procfs_view.c */
void graft_rule_application_profile(struct graft_planner *planner);                /* application_profile.c */
void graft_rule_binaries(struct graft_planner *planner);                           /* files.c */
void graft_rule_libraries(struct graft_planner *planner);                          /* libraries.c */
void graft_rule_links(struct graft_planner *planner);                              /* links.c */
void graft_rule_extra_files(struct graft_planner *planner);                        /* files.c */
void graft_rule_firmware(struct graft_planner *planner);                           /* files.c */
void graft_rule_ipcs(struct graft_planner *planner);                               /* files.c */
int graft_rule_nodes(struct graft_planner *planner, struct graft_error *err);      /* devices.c */
int graft_rule_gpus(struct graft_planner *planner, struct graft_error *err);       /* devices.c */
int graft_rule_mig(struct graft_planner *planner, struct graft_error *err);        /* mig.c */
int graft_rule_imex(struct graft_planner *planner, struct graft_error *err);       /* imex.c */
int graft_rule_gates(struct graft_planner *planner, struct graft_error *err);      /* gates.c */
int graft_rule_management(struct graft_planner *planner, struct graft_error *err); /* management.c */
void graft_rule_params(struct graft_planner *planner);                             /* procfs_view.c */
void graft_rule_environment(struct graft_planner *planner);                        /* environment.c */
void graft_rule_loader_cache(struct graft_planner *planner);                       /* loader_cache.c */

/* procfs_view.c: the directory of one GPU in the view. */
void graft_plan_gpu_procfs(struct graft_planner *planner, const struct graft_gpu *gpu);

/*
 * devices.c: a node and its device rule, each unless somebody else does it. A node that is not there is an error, for the container would
 * start without what it was promised.
 */
int graft_plan_node(struct graft_planner *planner, const struct graft_node *node, const char *rule, const char *why,
		    struct graft_error *err);
void graft_plan_device_rule(struct graft_planner *planner, uint32_t major, uint32_t minor, const char *rule,
			    const char *why);

/* drm.c: the display and render nodes of a selected GPU, and the links to them. */
int graft_plan_drm(struct graft_planner *planner, const struct graft_gpu *gpu, struct graft_error *err);

/* libraries.c: where a library goes, and the directory of that place. `directory` is that of style NAMESPACE. */
const char *graft_plan_library_target(struct graft_planner *planner, const struct graft_library *library,
				      const char *directory);
const char *graft_plan_library_directory(struct graft_planner *planner, const struct graft_library *library,
					 const char *directory);

/*
 * libraries.c: decides, once for all rules, which libraries the container gets.
 * graft_plan_takes: whether it gets library `i` of one of the inventory's two lists: its class is asked for and no earlier one takes its place.
 * graft_plan_is_first: whether it also is the first of those with its soname.
 */
void graft_plan_choose_libraries(struct graft_planner *planner);
bool graft_plan_takes(const struct graft_planner *planner, const struct graft_library *libraries, size_t i);
bool graft_plan_is_first(const struct graft_planner *planner, const struct graft_library *libraries, size_t i);

/* compat.c: appends the entries and folders of the image's CUDA compatibility libraries to an LDCACHE edit; refuses the rest. */
void graft_plan_compat(struct graft_planner *planner, struct graft_edit *edit);

#endif
