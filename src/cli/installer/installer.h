/* SPDX-License-Identifier: Apache-2.0 */
/*
 * installer: nvidia-ctk-installer, which installs the toolkit on a cluster node from a privileged
 * pod, and keeps it repaired (SPEC installer-and-nri 1 to 6). See docs/gpu-operator.md and
 * docs/decisions/0035-installer.md.
 *
 *	installer_options    flags and variables
 *	toolkit_files        what is in the toolkit's directory
 *	toolkit_stage        how it gets there: staged, exchanged
 *	toolkit_config       its config.toml
 *	toolkit_cdi          control nodes and the management specification
 *	engine_edits         the files of the container engine
 *	generated_config     those that K3s and RKE2 write themselves
 *	engine_reload        what makes the engine read them
 *	upkeep               waits for a signal, and repairs what others change
 *	installer_program    the sequence
 */
#ifndef GRAFT_CLI_INSTALLER_INSTALLER_H
#define GRAFT_CLI_INSTALLER_INSTALLER_H

#include <sys/stat.h>
#include <sys/types.h>

#include "cli/ctk/ctk.h"
#include "engine/engine.h"

#define INSTALLER_PROGRAM "nvidia-ctk-installer"

enum installer_restart { INSTALLER_RESTART_NONE, INSTALLER_RESTART_SIGNAL, INSTALLER_RESTART_SYSTEMD };

/* SPEC installer-and-nri 2: every flag. */
struct installer_options {
	struct ctk_base base;
	/* 2.1 the program */
	bool no_daemon, no_runtime_config, nri, debug;
	const char *nri_index, *nri_socket, *nri_namespace;
	struct ctk_list nri_namespaces;
	const char *runtime, *install_dir, *source_root, *package_type, *pid_file;
	/* 2.2 the toolkit */
	const char *driver_root, *driver_root_ctr, *dev_root, *dev_root_ctr;
	const char *runtime_debug, *runtime_log_level, *runtime_mode, *cdi_default_kind, *cli_debug;
	struct ctk_list annotation_prefixes, runtimes;
	bool skip_mode_detection, accept_envvar, accept_mounts, cdi, ignore_errors;
	const char *cdi_output_dir, *cdi_kind;
	struct ctk_list device_nodes, opt_in_features;
	/* 2.3 the engine */
	const char *config, *drop_in, *drop_in_host, *executable, *socket, *restart_mode, *host_root, *runtime_name;
	const char *cdi_in_runtime; /* a boolean as given; NULL: the value of cdi */
	bool set_as_default, legacy_config;
	struct ctk_list config_sources, containerd_annotation_prefixes;
	const char *runtime_type, *config_override, *hooks_dir, *hook_filename, *crio_mode;
	/* what follows from them */
	const struct graft_engine *engine;
	enum installer_restart restart;
	bool enable_cdi;  /* in the engine */
	bool by_hook;     /* CRI-O gets a hook */
	bool makes_nodes; /* control nodes */
	const char *vendor, *class_;
	const char *toolkit;      /* DIR/toolkit */
	const char *drop_in_path; /* NULL: none */
	bool is_generated;        /* the engine's file is written by K3s or RKE2: only the drop-in is changed */
};

extern const struct graft_command installer_command;

/* Sets the defaults of SPEC installer-and-nri 2. */
void installer_options_init(struct installer_options *options);
/*
 * SPEC installer-and-nri 3 step 1: checks the options in their order and sets what follows from
 * them. Odd but valid values are logged. Returns 0, or -1 with GRAFT_INVALID.
 */
int installer_options_check(struct installer_options *options, struct graft_error *err);

/* One of the three runtimes that are registered. */
struct installer_runtime {
	const char *name, *path;
	bool is_default;
};
#define INSTALLER_RUNTIMES 3
/*
 * The three runtimes; the default one comes last, since an engine's editor unsets the default when
 * it adds another. Returns -1 if out of memory.
 */
int installer_list_runtimes(const struct installer_options *options,
			    struct installer_runtime ret_runtimes[INSTALLER_RUNTIMES], struct graft_error *err);

/* The host's root, as this process sees it; NULL if it is this process's own. */
const char *installer_other_root(const struct installer_options *options);
/* Path below the host's root, as this process sees it. NULL: out of memory. */
const char *installer_host_path(const struct installer_options *options, const char *path);

/*
 * stat(2) of a path below a root, as this process sees it ("" is "/"); links are followed below it.
 */
bool installer_stat_below(const char *root, const char *path, struct stat *ret_stat);

/* ---- the toolkit ---- */

/*
 * Installs the toolkit and exchanges it with the existing one (SPEC installer-and-nri 4).
 * `runtimes` are the low-level runtimes for its configuration. With `ignore_errors`, files that
 * cannot be installed are logged. Returns 1 if it was exchanged, 0 if the existing one is
 * identical, or -1, with the old one intact.
 */
int installer_toolkit_install(const struct installer_options *options, const struct ctk_list *runtimes,
			      struct graft_error *err);
/*
 * Removes replaced and unfinished toolkits that no process runs or maps. Returns whether none is
 * left.
 */
bool installer_toolkit_sweep(const struct installer_options *options);

/* Makes the text of config.toml in the arena. */
int installer_config_make(const struct installer_options *options, const struct ctk_list *runtimes,
			  struct graft_engine_text *ret_text, struct graft_error *err);
/* The runtimes of the installed configuration; none if there is none. */
int installer_config_read_runtimes(const struct installer_options *options, struct ctk_list *ret_runtimes,
				   struct graft_error *err);

/* Creates the control nodes, if the options request that. */
int installer_nodes_make(const struct installer_options *options, struct graft_error *err);
/* Writes the management specification, if CDI is on. */
int installer_cdi_write(const struct installer_options *options, struct graft_error *err);

/* ---- the engine ---- */

/*
 * Where K3s or RKE2 writes containerd's configuration from a template, finds the drop-in file that
 * they import, and sets the paths of the options to it. Returns 0, or -1 with GRAFT_UNSUPPORTED if
 * there is none: the template is not TOML, and the configuration is overwritten. The low-level
 * runtimes can be read from the options' configuration in either case.
 */
int installer_engine_find_files(struct installer_options *options, struct graft_error *err);
/*
 * The low-level runtimes of the engine's configuration, then runc and crun (SPEC installer-and-nri
 * 3 step 3).
 */
int installer_engine_list_runtimes(const struct installer_options *options, struct ctk_list *ret_runtimes,
				   struct graft_error *err);
/* Registers the runtimes. Returns 1 if a file was changed, 0 if none, or -1. */
int installer_engine_configure(const struct installer_options *options, struct graft_error *err);
/*
 * Removes the registration. Returns 1 if a file was changed, 0 if none, or -1. Files that have not
 * changed since are restored byte for byte.
 */
int installer_engine_restore(const struct installer_options *options, struct graft_error *err);

/*
 * Makes the engine read its files if it has not: they have `changed`, an earlier run was killed
 * before this, or the engine is older than the files. `tries` is how often to look for the engine,
 * five seconds apart. Returns 0 or -1.
 */
int installer_engine_reload(const struct installer_options *options, bool changed, int tries, struct graft_error *err);
/*
 * Records on disk that the engine has to read its files. Errors are ignored: the record only
 * matters if this process is killed.
 */
void installer_engine_note_pending(const struct installer_options *options);

/* ---- the program ---- */

/*
 * Takes the lock that one installer of a node holds (SPEC installer-and-nri 3 step 2), and writes
 * the process ID. Returns a descriptor to keep open, or -1 with "unable to get flock on pidfile".
 */
int installer_pid_file_take(const struct installer_options *options, struct graft_error *err);

/* The signals of SPEC installer-and-nri 6, terminated by 0. */
extern const int installer_signals[];
/*
 * In a new process: it gets `death_signal` when `parent` ends, and does not share what that does on
 * signals. Exits if it has ended already.
 */
void installer_become_child(pid_t parent, int death_signal);

/* Starts the program that serves NRI, which is next to this one. Returns its process ID, or -1. */
int installer_nri_start(const struct installer_options *options, struct graft_error *err);

/*
 * Waits for a signal of SPEC installer-and-nri 6. Meanwhile repairs the engine's files and the
 * toolkit when other programs change them, up to three times in ten minutes. *nri is the process
 * that serves NRI, or -1. If it ends, so does the wait, and *nri becomes -1. Returns 0, or -1 with
 * the error set.
 */
int installer_wait(const struct installer_options *options, const struct ctk_list *runtimes, pid_t *nri,
		   struct graft_error *err);

/* Runs the program. Returns its exit status. */
int installer_main(int argc, char **argv);

#endif
