/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv: what a Tegra board has for containers, as the lists of its packages say it (SPEC runtime-and-hook 9). The lists name devices, directories,
 * libraries and links, often by patterns; here they become what is really there, below the driver root.
 */
#ifndef GRAFT_HOST_CSV_H
#define GRAFT_HOST_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/csv_mounts.h"
#include "host/inventory.h"

#define GRAFT_CSV_DIRECTORY "/etc/nvidia-container-runtime/host-files-for-container.d"

struct graft_csv_options {
	const char *root;      /* driver root; NULL or "" = "/" */
	const char *host_root; /* has the /dev that the driver root lacks, and /etc/nv_tegra_release; NULL = "/" */
	const char *dev_root;  /* has the device nodes; NULL = the driver root if it has some, else the host */
	const char *directory; /* mount-spec-path, on the host; NULL = GRAFT_CSV_DIRECTORY */
	bool all_files;        /* every list of the directory, not those of the base system alone */
	/* These lists, on the host, and no others; n 0 = those of the directory. Borrowed, as the next ones. */
	const char *const *files;
	size_t n_files;
	/* Links that are left out: patterns for whole paths ('*' is no '/'), or behind a double star and a slash for names. */
	const char *const *ignored;
	size_t n_ignored;
	/* Below the driver root: where libraries of the lists are looked for first. */
	const char *const *library_directories;
	size_t n_library_directories;
	const struct graft_log *log;
};

/* A file or directory that is bound. */
struct graft_csv_file {
	const char *source; /* below the driver root, links resolved */
	const char *target; /* in the container */
	bool directory;
	const char *soname; /* of a library; NULL = none, or no library */
	uint32_t abi_flags;
};

struct graft_csv_link {
	const char *path; /* in the container */
	const char *says;
	bool listed; /* by a list; false = made from a library's name */
};

struct graft_csv_inventory {
	const char *root, *dev_root; /* on the host */
	struct graft_node *nodes;    /* each once, in the order of the lists */
	size_t n_nodes;
	struct graft_node *driver_nodes; /* control nodes and /dev/nvidia2, listed or not: for boards with two GPUs */
	size_t n_driver_nodes;
	struct graft_csv_file *files; /* each target once */
	size_t n_files;
	struct graft_csv_link *links; /* each path once: those made from libraries, then those listed */
	size_t n_links;
	bool release_file; /* the host has /etc/nv_tegra_release */
	struct graft_omission *omissions;
	size_t n_omissions;
};

/* Reads the lists and looks for what they name. What is missing is a warning in the log and an omission. -1: GRAFT_NO_MEMORY, GRAFT_IO (a root). */
int graft_csv_discover(const struct graft_csv_options *options, struct graft_arena *arena,
		       struct graft_csv_inventory *ret_inventory, struct graft_error *err);

/* Which files are read, in order (SPEC 9.1). Each path is on the host. For tests and messages. */
int graft_csv_lists(const char *directory, bool all_files, const struct graft_log *log, struct graft_arena *arena,
		    const char ***ret_paths, size_t *ret_n, struct graft_error *err);

#endif
