/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey: the state of one examination of a host, shared by the files of this folder. Each concern
 * has a function that adds its facts to the inventory. Private to src/host.
 *
 * Memory failures are sticky in the arenas and checked once, at the end; functions that return void
 * cannot fail otherwise. What is missing becomes an omission.
 */
#ifndef GRAFT_HOST_SURVEY_H
#define GRAFT_HOST_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/root.h"
#include "formats/loader/ldcache.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "host/lookup.h"

#define GRAFT_PROC_DRIVER     "/proc/driver/nvidia"
#define GRAFT_PROC_VERSION    GRAFT_PROC_DRIVER "/version"
#define GRAFT_PROC_CAPS       GRAFT_PROC_DRIVER "/capabilities"
#define GRAFT_PROC_MIG_MINORS "/proc/driver/nvidia-caps/mig-minors"
#define GRAFT_NVIDIA_MAJOR    195u

#define GRAFT_SOURCE_CACHE_MAX ((size_t)32 << 20) /* of an ld.so.cache; the largest seen was 1 MiB */
#define GRAFT_SOURCE_FILE_MAX  ((size_t)1 << 20)  /* of a procfs file or JSON list */

struct graft_survey {
	const struct graft_host_options *options; /* borrowed */
	const struct graft_log *log;              /* borrowed */
	unsigned int needs;
	struct graft_inventory *inventory; /* owned until detached */
	struct graft_arena *arena;         /* the inventory's */
	struct graft_arena *scratch;       /* owned; freed with the survey */
	struct graft_root root;            /* the driver root */
	struct graft_root host;            /* the host's own root; closed (fd -1) if it is the same directory */
	struct graft_root given_dev;       /* options->dev_root; closed if that is not given */
	const struct graft_root *proc;     /* where /proc/driver/nvidia is looked up: `root` or `host` */
	const struct graft_root *dev;      /* where /dev is looked up: one of the three roots */
	int dev_fd;                        /* O_PATH of /dev, or -1; owned */
	struct graft_lookup lookup;        /* below `root` */
	const char *devices;               /* text of /proc/devices; "" if there is none */
	size_t devices_length;
	bool module_loaded;
	bool gpus_listed;   /* the driver's procfs lists GPUs, even if none of them can be used */
	bool mig_undecided; /* procfs does not show whether some GPU has MIG */
	/* GPUs of which only the presence matters; borrowed. */
	const struct graft_pci_address *assumed;
	size_t n_assumed;
	int shortage;          /* a read failed because this resource was exhausted; see graft_survey_check() */
	const char *wsl_store; /* WSL2: first driver store directory with components */
};

/*
 * Opens the roots and prepares an empty inventory. Returns -1 with GRAFT_NO_MEMORY, or if a root
 * cannot be opened.
 */
int graft_survey_open(struct graft_survey *survey, const struct graft_host_options *options, unsigned int needs,
		      struct graft_error *err);
/*
 * Likewise, to examine the host of an existing inventory again; detach the inventory before closing
 * the survey.
 */
int graft_survey_attach(struct graft_survey *survey, const struct graft_host_options *options,
			struct graft_inventory *inventory, struct graft_error *err);
/* Returns the inventory, which the survey no longer owns. */
struct graft_inventory *graft_survey_detach(struct graft_survey *survey);
/* Closes the roots, and frees the scratch arena and, unless it was detached, the inventory. */
void graft_survey_close(struct graft_survey *survey);
#define GRAFT_SURVEY_INIT                                                                                    \
	{                                                                                                    \
		.root = GRAFT_ROOT_INIT, .host = GRAFT_ROOT_INIT, .given_dev = GRAFT_ROOT_INIT, .dev_fd = -1 \
	}
#define auto_survey __attribute__((cleanup(graft_survey_close)))

/*
 * Returns 0 if no resource was exhausted (graft_note_shortage()); otherwise the findings cannot be
 * trusted, and it returns -1 with graft_fail_shortage() of `what`.
 */
int graft_survey_check(const struct graft_survey *survey, const char *what, struct graft_error *err);

/*
 * Records what is missing or left out, and why. Logged as "<verb> <what>: <why>" ("missing
 * library", "skipping": SPEC libnvidia-container 3.8).
 */
__attribute__((format(printf, 4, 5))) void graft_survey_omit(struct graft_survey *survey, const char *verb,
							     const char *what, const char *why, ...);

/*
 * Reads a file of the driver root or, failing that, of the host. The bytes are in the scratch
 * arena. Returns 0 or -errno.
 */
int graft_survey_read(struct graft_survey *survey, const char *path, const char **ret_bytes, size_t *ret_length);
/* Likewise for a file below /proc/driver, in the root that has that directory. */
int graft_survey_read_proc(struct graft_survey *survey, const char *path, const char **ret_bytes, size_t *ret_length);

/* Returns whether an option disables a catalog row (its `disabled_by`). */
bool graft_survey_disabled(const struct graft_survey *survey, size_t disabled_by);
/* Returns whether the requested capabilities select this class. */
bool graft_survey_wants(const struct graft_survey *survey, enum graft_class class_);

/*
 * Examines a device node (`path` begins with /dev/) without opening it. Sets mode, owner and
 * `present`. The numbers are not changed, and the node must have them to be present. Returns 0 if
 * present, else -errno (-ENODEV: other numbers, or not a character device).
 */
int graft_survey_node(struct graft_survey *survey, struct graft_node *node);
/* Likewise, but takes the numbers from the existing node. */
int graft_survey_node_as_is(struct graft_survey *survey, struct graft_node *node);
/* Adds the node at `path`, which may be NULL, to a list of the inventory if it exists. */
void graft_survey_add_node(struct graft_survey *survey, const char *path, struct graft_node **nodes, size_t *n);
/* Records that a node is missing; `rc` is the result of graft_survey_node(). */
void graft_survey_omit_node(struct graft_survey *survey, const char *path, int rc);
/* Adds an extra file. `target` may be the same path. */
void graft_survey_add_extra_file(struct graft_survey *survey, const char *path, const char *target,
				 enum graft_class class_, const char *source);
/* Finds the major of a character device in /proc/devices. Returns false if it is not listed. */
bool graft_survey_major(const struct graft_survey *survey, const char *name, uint32_t *ret_major);

/*
 * Lists the names in a directory, sorted bytewise, in the scratch arena, without "." and "..", at
 * most 65536. Returns 0 or -errno.
 */
int graft_survey_list(struct graft_survey *survey, const struct graft_root *root, const char *path,
		      const char ***ret_names, size_t *ret_n);
/* Likewise below the driver root or, failing that, the host's root, like graft_survey_read(). */
int graft_survey_list_sys(struct graft_survey *survey, const char *path, const char ***ret_names, size_t *ret_n);
/*
 * Lists the numbers N, in ascending order, of the entries that are named "<prefix>N", in the
 * scratch arena. Returns 0 or -errno.
 */
int graft_survey_list_numbers(struct graft_survey *survey, const struct graft_root *root, const char *path,
			      const char *prefix, uint32_t **ret_numbers, size_t *ret_n);
/* Returns whether such a list has the number. */
bool graft_survey_has_number(const uint32_t *numbers, size_t n, uint32_t number);

/*
 * Takes the GPUs from NVML, for a host whose procfs does not show the driver's. Fails like
 * graft_host_complete().
 */
int graft_survey_gpus_by_nvml(struct graft_survey *survey, struct graft_error *err);
/* Its second half: examines the nodes of the GPUs that NVML has listed. */
void graft_survey_nodes_by_nvml(struct graft_survey *survey);

/*
 * The parts of graft_host_discover() (discover.c): determine the kind of host, and run every
 * concern that `needs` names.
 */
void graft_survey_platform(struct graft_survey *survey);
void graft_survey_look(struct graft_survey *survey);

/*
 * The parts of graft_host_complete() (complete.c): prepare the question to NVML, and merge the
 * answer into the inventory. `lists_gpus`: an inventory without GPUs gets those of the answer.
 */
struct graft_nvml_question;
struct graft_nvml_snapshot;
void graft_nvml_prepare(const struct graft_host_options *options, const struct graft_inventory *inventory,
			unsigned int facts, struct graft_nvml_question *ret_question);
void graft_nvml_take_over(const struct graft_nvml_snapshot *snapshot, unsigned int facts, bool lists_gpus,
			  const struct graft_log *log, struct graft_inventory *inventory);

/* Fails as dlopen(3) would without the library, which is GRAFT_NVML_SONAME or another. */
int graft_nvml_fail_missing(const char *library, struct graft_error *err);

/* Bounds the inventory's CUDA version by its driver version, as far as both are known. */
void graft_survey_bound_cuda(struct graft_inventory *inventory);

/* One function per concern; each in the file of its name. */
void graft_survey_platform_wsl(struct graft_survey *survey);
bool graft_survey_is_tegra(struct graft_survey *survey);
void graft_survey_tegra_nodes(struct graft_survey *survey);
void graft_survey_versions(struct graft_survey *survey);
void graft_survey_libraries(struct graft_survey *survey);
int graft_survey_states(struct graft_survey *survey, struct graft_error *err);
void graft_survey_nodes(struct graft_survey *survey);
void graft_survey_gpus(struct graft_survey *survey);
void graft_survey_mig(struct graft_survey *survey);
void graft_survey_imex(struct graft_survey *survey);
void graft_survey_binaries(struct graft_survey *survey);
void graft_survey_firmware(struct graft_survey *survey);
void graft_survey_ipcs(struct graft_survey *survey);
void graft_survey_extra_files(struct graft_survey *survey);
void graft_survey_proc_files(struct graft_survey *survey);
void graft_survey_gates(struct graft_survey *survey);
void graft_survey_xorg(struct graft_survey *survey);
void graft_survey_management(struct graft_survey *survey);
void graft_survey_drm(struct graft_survey *survey, struct graft_gpu *gpu); /* for one GPU */

#define GRAFT_FILELIST_NAME "nvidia/files.d/sandboxutils-filelist.json" /* below a data directory */

/*
 * Reads the list, as the last components of its names. Entries without a usable name (absent,
 * empty, ".", "..") are skipped; other members are ignored. The strings are in the arena. Returns
 * -1 with GRAFT_FORMAT if the bytes are not a JSON array, or with GRAFT_NO_MEMORY.
 */
int graft_filelist_read(const char *bytes, size_t length, struct graft_arena *arena, const char ***ret_names,
			size_t *ret_n, struct graft_error *err);

#endif
