/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv: what a Tegra board provides for containers, according to the lists in its packages (SPEC
 * runtime-and-hook 9). The lists name devices, directories, libraries and links, often by pattern;
 * this module resolves them to what exists below the driver root.
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
	const char *dev_root;  /* has the device nodes; NULL = the driver root if it has any, else the host */
	const char *directory; /* mount-spec-path, on the host; NULL = GRAFT_CSV_DIRECTORY */
	bool all_files;        /* use every list in the directory, not only those of the base system */
	/*
	 * Use these lists, on the host, and no others; n 0 = those of the directory. Borrowed, as
	 * are the next two.
	 */
	const char *const *files;
	size_t n_files;
	/*
	 * Links to leave out: patterns for whole paths ('*' does not match '/'), or for names if
	 * they start with two asterisks and a slash.
	 */
	const char *const *ignored;
	size_t n_ignored;
	/* Searched first for libraries of the lists; below the driver root. */
	const char *const *library_directories;
	size_t n_library_directories;
	const struct graft_log *log;
};

/* A file or directory to bind. */
struct graft_csv_file {
	const char *source; /* below the driver root, links resolved */
	const char *target; /* in the container */
	bool directory;
	const char *soname; /* NULL = not a library */
	uint32_t abi_flags;
};

struct graft_csv_link {
	const char *path; /* in the container */
	const char *says; /* target of the link */
	bool listed;      /* named by a list; false = derived from a library's name */
};

struct graft_csv_inventory {
	const char *root, *dev_root; /* on the host */
	struct graft_node *nodes;    /* each once, in the order of the lists */
	size_t n_nodes;
	struct graft_node *driver_nodes; /* control nodes and /dev/nvidia2, listed or not: for boards with two GPUs */
	size_t n_driver_nodes;
	struct graft_csv_file *files; /* each target once */
	size_t n_files;
	struct graft_csv_link *links; /* each path once: first those derived from libraries, then those listed */
	size_t n_links;
	bool release_file; /* the host has /etc/nv_tegra_release */
	struct graft_omission *omissions;
	size_t n_omissions;
};

/*
 * Reads the lists and looks up what they name. A missing item is a warning in the log and an
 * omission. Returns -1 with GRAFT_NO_MEMORY, or with GRAFT_IO if a root cannot be opened.
 */
int graft_csv_discover(const struct graft_csv_options *options, struct graft_arena *arena,
		       struct graft_csv_inventory *ret_inventory, struct graft_error *err);

/*
 * Lists the files to read, as paths on the host, in order (SPEC runtime-and-hook 9.1). For tests
 * and messages. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_csv_lists(const char *directory, bool all_files, const struct graft_log *log, struct graft_arena *arena,
		    const char ***ret_paths, size_t *ret_n, struct graft_error *err);

struct graft_csv_facts {
	bool from_nvml;
	/*
	 * "11.4"; NULL = not known. Two-digit minor versions are kept (SPEC runtime-and-hook Q21).
	 */
	const char *cuda;
	const char *arch; /* of the first GPU, "8.7"; NULL = not known or not requested */
	const char *why;  /* why nothing could be asked; NULL = it was */
	bool orin;        /* NVML names a GPU "Orin (nvgpu)" */
};

/*
 * Asks for the facts. `inventory` (may be NULL) locates NVML, `csv` locates libcuda. `want_arch`
 * also requests the architecture. If a fact cannot be determined, the log has a warning. Returns -1
 * with GRAFT_NO_MEMORY.
 */
int graft_csv_ask(const struct graft_inventory *inventory, const struct graft_csv_inventory *csv, bool want_arch,
		  const struct graft_log *log, struct graft_arena *arena, struct graft_csv_facts *ret_facts,
		  struct graft_error *err);

#endif
