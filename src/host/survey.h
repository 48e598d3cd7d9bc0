/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey: the state of one look at a host, shared by the files of this folder: one function per concern, each adding
 * its facts to the inventory. Private to src/host.
 *
 * Memory failures are sticky in the arenas and looked at once, at the end; functions that return void cannot fail in
 * another way. What is missing becomes an omission.
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
#include "formats/ldcache.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "host/lookup.h"

#define GRAFT_PROC_DRIVER     "/proc/driver/nvidia"
#define GRAFT_PROC_VERSION    GRAFT_PROC_DRIVER "/version"
#define GRAFT_PROC_CAPS       GRAFT_PROC_DRIVER "/capabilities"
#define GRAFT_PROC_MIG_MINORS "/proc/driver/nvidia-caps/mig-minors"
#define GRAFT_NVIDIA_MAJOR    195u
#define GRAFT_SIMULATED_MARK  "(Graft simulated driver)"

#define GRAFT_SOURCE_CACHE_MAX ((size_t)32 << 20) /* of an ld.so.cache; the largest seen has 1 MiB */
#define GRAFT_SOURCE_FILE_MAX  ((size_t)1 << 20)  /* of a procfs file or JSON list */

struct graft_survey {
	const struct graft_host_options *options; /* borrowed */
	const struct graft_log *log;              /* borrowed */
	unsigned int needs;
	struct graft_inventory *inventory; /* owned until the end */
	struct graft_arena *arena;         /* the inventory's */
	struct graft_arena *scratch;       /* owned; dies with the survey */
	struct graft_root root;            /* the driver root */
	struct graft_root host;            /* the host's own root; closed (fd -1) when it is the same directory */
	struct graft_root given_dev;       /* options->dev_root; closed when that was left to us */
	const struct graft_root *proc;     /* where /proc/driver/nvidia is looked up: one of the two */
	const struct graft_root *dev;      /* where /dev is looked up: one of the three */
	int dev_fd;                        /* O_PATH of /dev, or -1; owned */
	struct graft_lookup lookup;        /* below `root` */
	const char *devices;               /* text of /proc/devices, "" if there is none */
	size_t devices_length;
	bool module_loaded;
	bool mig_undecided; /* procfs does not tell of some GPU whether it can be split */
	/* GPUs of which nothing is asked but whether they are there; borrowed. */
	const struct graft_pci_address *assumed;
	size_t n_assumed;
	int shortage;          /* something was not read for want of it: graft_survey_check() */
	const char *wsl_store; /* WSL2: first driver store directory with components */
};

/* Opens the roots and prepares an empty inventory. */
int graft_survey_open(struct graft_survey *survey, const struct graft_host_options *options, unsigned int needs,
		      struct graft_error *err);
/* The same for another look at the host of an inventory that is there; it must be detached before the survey is closed. */
int graft_survey_attach(struct graft_survey *survey, const struct graft_host_options *options,
			struct graft_inventory *inventory, struct graft_error *err);
/* The inventory, no longer owned by the survey. */
struct graft_inventory *graft_survey_detach(struct graft_survey *survey);
void graft_survey_close(struct graft_survey *survey);
#define GRAFT_SURVEY_INIT                                                                                    \
	{                                                                                                    \
		.root = GRAFT_ROOT_INIT, .host = GRAFT_ROOT_INIT, .given_dev = GRAFT_ROOT_INIT, .dev_fd = -1 \
	}
#define auto_survey __attribute__((cleanup(graft_survey_close)))

/* Whether nothing was short (graft_note_shortage()): what was found is not to be trusted otherwise. -1: graft_fail_shortage() of `what`. */
int graft_survey_check(const struct graft_survey *survey, const char *what, struct graft_error *err);

/* Records what is missing or left out, and why. Logged as "<verb> <what>: <why>" ("missing library", "skipping": SPEC 3.8). */
__attribute__((format(printf, 4, 5))) void graft_survey_omit(struct graft_survey *survey, const char *verb,
							     const char *what, const char *why, ...);

/* The driver root's file, or else the host's. Bytes are in the scratch arena. Returns 0 or -errno. */
int graft_survey_read(struct graft_survey *survey, const char *path, const char **ret_bytes, size_t *ret_length);
/* A file below /proc/driver, where that was found. */
int graft_survey_read_proc(struct graft_survey *survey, const char *path, const char **ret_bytes, size_t *ret_length);

/* Whether a catalog row is switched off by an option (its `disabled_by`). */
bool graft_survey_disabled(const struct graft_survey *survey, size_t disabled_by);
/* Whether the capabilities that are asked for bring this class along. */
bool graft_survey_wants(const struct graft_survey *survey, enum graft_class class_);

/*
 * Looks at a device node (`path` begins with /dev/) without opening it. Fills mode and owner and `present`; the numbers are left as
 * they are, and must be those of the node for it to count as present. Returns 0 when present, else -errno (-ENODEV: other numbers or not a
 * character device).
 */
int graft_survey_node(struct graft_survey *survey, struct graft_node *node);
/* Takes over the numbers of the node that is there. */
int graft_survey_node_as_is(struct graft_survey *survey, struct graft_node *node);
/* Major of a character device in /proc/devices. */
bool graft_survey_major(const struct graft_survey *survey, const char *name, uint32_t *ret_major);

/* Names in a directory, sorted (bytewise), in the scratch arena; "." and ".." left out; at most 65536. Returns 0 or -errno. */
int graft_survey_list(struct graft_survey *survey, const struct graft_root *root, const char *path,
		      const char ***ret_names, size_t *ret_n);
/* The same below the driver root, or else the host's, as graft_survey_read() has it. */
int graft_survey_list_sys(struct graft_survey *survey, const char *path, const char ***ret_names, size_t *ret_n);

/* The parts of graft_host_discover() (discover.c): what kind of host it is, and every concern that `needs` names. */
void graft_survey_platform(struct graft_survey *survey);
void graft_survey_look(struct graft_survey *survey);

/* The parts of graft_host_complete() (complete.c): who is asked for what, and taking over the answer. */
struct graft_nvml_question;
struct graft_nvml_snapshot;
void graft_nvml_prepare(const struct graft_host_options *options, const struct graft_inventory *inventory,
			unsigned int facts, struct graft_nvml_question *ret_question);
void graft_nvml_take_over(const struct graft_nvml_snapshot *snapshot, unsigned int facts, const struct graft_log *log,
			  struct graft_inventory *inventory);

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
void graft_survey_drm(struct graft_survey *survey, struct graft_gpu *gpu); /* of one GPU */

#endif
