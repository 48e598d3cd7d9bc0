/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graft-sim: the command line of the simulated driver: tables of options, and the output of each
 * command.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/options.h"
#include "base/root.h"
#include "create.h"
#include "graft_sim.h"
#include "run.h"
#include "topology.h"

#define PROGRAM      "graft-sim"
#define MAX_FAULTS   32u
#define NAMES_MAX    64u
#define TOPOLOGY_MAX ((size_t)256 * 1024)

extern const struct sim_embedded sim_embedded_topologies[];
extern const unsigned int sim_n_embedded_topologies;

struct arguments {
	const char *topology;
	const char *faults[MAX_FAULTS];
	size_t n_faults;
	bool force, links, models;
};

/* --- topologies by name or file --- */

/* "dgx-h100" names an embedded topology; a name with a slash or the suffix is a file. */
static const struct sim_embedded *find_embedded(const char *name)
{
	size_t length = strlen(name);

	for (unsigned int i = 0; i < sim_n_embedded_topologies; i++) {
		const struct sim_embedded *topology = &sim_embedded_topologies[i];

		if (strncmp(topology->name, name, length) == 0 && strcmp(topology->name + length, ".yaml") == 0)
			return topology;
	}
	return NULL;
}

static int fail_topology_name(const char *name, struct graft_error *err)
{
	struct graft_nearest_search search = { .word = name };
	char names[NAMES_MAX][64];

	for (unsigned int i = 0; i < sim_n_embedded_topologies && i < NAMES_MAX; i++) {
		const char *file = sim_embedded_topologies[i].name;

		(void)snprintf(names[i], sizeof(names[i]), "%.*s", (int)strcspn(file, "."), file);
		graft_nearest_consider(&search, names[i]);
	}
	return graft_fail(err, GRAFT_NOT_FOUND, 0, "no topology of that name: %s%s%s%s ('graft-sim list' names them)",
			  name, search.best ? " (did you mean '" : "", search.best ? search.best : "",
			  search.best ? "'?)" : "");
}

static int read_file(const char *path, struct sim_topology **ret_topology, struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new(2 * TOPOLOGY_MAX);
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const char *bytes = NULL;
	size_t length = 0;
	int rc;

	if (!arena || fd < 0) {
		int saved = errno;

		(void)graft_arena_free(arena);
		if (fd < 0 && saved == ENOENT && !strchr(path, '/') && !strstr(path, ".yaml"))
			return fail_topology_name(path, err);
		return graft_fail_errno(err, saved, "open failed: %s", path);
	}
	rc = graft_read_fd(fd, TOPOLOGY_MAX, arena, &bytes, &length);
	rc = rc < 0 ? graft_fail_errno(err, -rc, "file read error: %s", path)
		    : sim_topology_read(bytes, length, path, ret_topology, err);
	(void)graft_arena_free(arena);
	return rc;
}

static int read_topology(const char *name, struct sim_topology **ret_topology, struct graft_error *err)
{
	const struct sim_embedded *embedded = find_embedded(name);

	if (embedded)
		return sim_topology_read(embedded->bytes, (size_t)(embedded->end - embedded->bytes), embedded->name,
					 ret_topology, err);
	return read_file(name, ret_topology, err);
}

static int read_with_faults(const struct arguments *arguments, struct sim_topology **ret_topology,
			    struct graft_error *err)
{
	struct sim_topology *topology = NULL;

	if (read_topology(arguments->topology, &topology, err) < 0)
		return -1;
	for (size_t i = 0; i < arguments->n_faults; i++) {
		if (sim_topology_add_fault(topology, arguments->faults[i], err) < 0) {
			(void)sim_topology_free(topology);
			return -1;
		}
	}
	*ret_topology = topology;
	return 0;
}

/* --- output --- */

static int complain(const struct graft_error *err)
{
	char text[1024];
	const char *hint = graft_status_hint(err->status);

	(void)fprintf(stderr, PROGRAM ": %s\n", graft_error_text(err, text, sizeof(text)));
	/* If the message names a place in a file, a hint adds nothing. */
	if (hint[0] != '\0' && err->status != GRAFT_FORMAT && err->status != GRAFT_INVALID &&
	    err->status != GRAFT_NOT_FOUND)
		(void)fprintf(stderr, "%s\n", hint);
	return graft_status_exit(err->status);
}

static int finish_output(void)
{
	struct graft_error err;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	(void)graft_fail_errno(&err, errno, "write failed: standard output");
	return complain(&err);
}

/* --- options --- */

static int add_fault_option(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct arguments *arguments = target;

	(void)option;
	if (arguments->n_faults == MAX_FAULTS)
		return graft_fail(err, GRAFT_INVALID, 0, "more than %u faults", MAX_FAULTS);
	arguments->faults[arguments->n_faults++] = value;
	return 0;
}

/* For completion; the build names them. */
static const char *const topology_names[] = { SIM_TOPOLOGY_NAMES, NULL };

static const char *const fault_words[] = {
#define X(word, equals, value, add, text) word equals,
	SIM_FAULT_LIST(X)
#undef X
	    NULL,
};

#define TOPOLOGY_OPTION                                                                                           \
	{                                                                                                         \
		.name = "topology", .letter = 't', .argument = GRAFT_OPTION_REQUIRED, .value_name = "FILE|NAME",  \
		.help = "The host to simulate: a YAML file or one that 'graft-sim list' names (default: single)", \
		.parse = graft_option_set_string, .offset = offsetof(struct arguments, topology),                 \
		.values = topology_names                                                                          \
	}
#define FAULT_OPTION                                                                                             \
	{                                                                                                        \
		.name = "fault", .letter = 'f', .argument = GRAFT_OPTION_REQUIRED, .value_name = "FAULT",        \
		.help = "A fault of the host, see below; may be given several times", .parse = add_fault_option, \
		.values = fault_words                                                                            \
	}

static const struct graft_option create_options[] = { TOPOLOGY_OPTION, FAULT_OPTION };
static const struct graft_option run_options[] = {
	TOPOLOGY_OPTION,
	FAULT_OPTION,
	{ .name = "force",
	  .help = "Run even if a real driver is loaded, and hide that driver from COMMAND",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct arguments, force) },
	{ .name = "bind-libs",
	  .help = "Use directories of links instead of overlays, which some kernels refuse",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct arguments, links) },
};
static const struct graft_option list_options[] = {
	{ .name = "models",
	  .help = "List the GPU models that a topology may name",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct arguments, models) },
};

/* --- commands --- */

static int run_create(void *context, int argc, char **argv)
{
	const struct arguments *arguments = context;
	struct sim_topology *topology = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	bool nodes_refused = false;
	int rc;

	(void)argc;
	if (read_with_faults(arguments, &topology, &err) < 0)
		return complain(&err);
	if (topology->faults.needs_log) {
		(void)sim_topology_free(topology);
		(void)graft_fail(&err, GRAFT_INVALID, 0, "fault 'xid': only 'graft-sim run' has a kernel log");
		return complain(&err);
	}
	rc = sim_create(topology, argv[0], &nodes_refused, &err);
	(void)sim_topology_free(topology);
	if (rc < 0)
		return complain(&err);
	if (nodes_refused)
		(void)fputs(
		    PROGRAM
		    ": not permitted to make device nodes: the driver root has none (run as root to get them)\n",
		    stderr);
	return 0;
}

/*
 * NixOS and WSL2 have the driver's programs in a directory of their own, which is in every user's
 * PATH.
 */
static int add_to_path(const struct sim_topology *topology, struct graft_error *err)
{
	static const char usual[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	const char *path = secure_getenv("PATH");
	struct sim_places places;
	const char *longer;

	sim_places(topology, &places);
	if (strcmp(places.binaries, "/usr/bin") == 0)
		return 0;
	longer = graft_arena_printf(topology->arena, "%s:%s", path ? path : usual, places.binaries);
	return longer && setenv("PATH", longer, 1) == 0 ? 0 : graft_fail_memory(err);
}

static int run_run(void *context, int argc, char **argv)
{
	const struct arguments *arguments = context;
	struct sim_topology *topology = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	(void)argc;
	if (read_with_faults(arguments, &topology, &err) < 0)
		return complain(&err);
	rc = sim_enter(topology, arguments->force, !arguments->links, &err);
	if (rc == 0)
		rc = add_to_path(topology, &err);
	if (rc == 0)
		(void)fprintf(stderr, PROGRAM ": simulated host '%s' (%zu GPU%s, driver %s)\n", topology->name,
			      topology->n_gpus, topology->n_gpus == 1 ? "" : "s",
			      topology->driver ? topology->driver : "none");
	if (rc == 0 && topology->machine != sim_machine_native())
		(void)fprintf(stderr,
			      PROGRAM
			      ": its driver is for %s: programs built for that machine find it (nvidia-container-cli "
			      "plan), but nothing of it runs on %s\n",
			      sim_machine_name(topology->machine), sim_machine_name(sim_machine_native()));
	(void)sim_topology_free(topology);
	if (rc < 0)
		return complain(&err);
	(void)execvp(argv[0], argv);
	rc = errno == ENOENT ? 127 : 126;
	(void)graft_fail_errno(&err, errno, "exec failed: %s", argv[0]);
	(void)complain(&err);
	return rc;
}

static void print_models(void)
{
	for (size_t i = 0; i < sim_n_models; i++)
		(void)printf("%-16s %-36s %04x  cc %u.%u %7u MiB  %s\n", sim_models[i].key, sim_models[i].name,
			     sim_models[i].pci_device, sim_models[i].cc_major, sim_models[i].cc_minor,
			     sim_models[i].memory_mib, sim_models[i].mig_profiles);
}

static int run_list(void *context, int argc, char **argv)
{
	const struct arguments *arguments = context;

	(void)argc;
	(void)argv;
	if (arguments->models) {
		print_models();
		return finish_output();
	}
	for (unsigned int i = 0; i < sim_n_embedded_topologies; i++) {
		const struct sim_embedded *embedded = &sim_embedded_topologies[i];
		struct sim_topology *topology = NULL;
		struct graft_error err;

		if (sim_topology_read(embedded->bytes, (size_t)(embedded->end - embedded->bytes), embedded->name,
				      &topology, &err) < 0)
			return complain(&err);
		(void)printf("%-18s %-11s %-17s %s\n", topology->name,
			     topology->driver ? topology->driver : "no driver", sim_layout_names[topology->layout],
			     topology->description ? topology->description : "");
		(void)sim_topology_free(topology);
	}
	return finish_output();
}

static int run_show(void *context, int argc, char **argv)
{
	const struct sim_embedded *embedded = find_embedded(argv[0]);
	struct graft_error err;

	(void)context;
	(void)argc;
	if (!embedded) {
		(void)fail_topology_name(argv[0], &err);
		return complain(&err);
	}
	(void)fwrite(embedded->bytes, 1, (size_t)(embedded->end - embedded->bytes), stdout);
	return finish_output();
}

static int run_check(void *context, int argc, char **argv)
{
	struct graft_error err;
	int status = 0;

	(void)context;
	for (int i = 0; i < argc; i++) {
		struct sim_topology *topology = NULL;

		if (read_topology(argv[i], &topology, &err) < 0 || !topology) {
			status = complain(&err);
			continue;
		}
		(void)printf("%s: %zu GPU%s, driver %s\n", argv[i], topology->n_gpus, topology->n_gpus == 1 ? "" : "s",
			     topology->driver ? topology->driver : "none");
		(void)sim_topology_free(topology);
	}
	return status != 0 ? status : finish_output();
}

static const struct graft_command create_command = {
	.name = "create",
	.arguments = "DIR",
	.summary = "Create a driver root in DIR, replacing one that an earlier create made there",
	.options = create_options,
	.n_options = GRAFT_COUNT(create_options),
	.min_arguments = 1,
	.max_arguments = 1,
	.abbreviations = true,
	.run = run_create,
};
static const struct graft_command run_command = {
	.name = "run",
	.arguments = "[--] COMMAND [ARG...]",
	.summary = "Run COMMAND (a shell, a container engine) on the simulated host, in its own mount namespace",
	.options = run_options,
	.n_options = GRAFT_COUNT(run_options),
	.min_arguments = 1,
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.abbreviations = true,
	.run = run_run,
};
static const struct graft_command list_command = {
	.name = "list",
	.arguments = "",
	.summary = "List the topologies that ship with graft-sim",
	.options = list_options,
	.n_options = GRAFT_COUNT(list_options),
	.abbreviations = true,
	.run = run_list,
};
static const struct graft_command show_command = {
	.name = "show",
	.arguments = "NAME",
	.values = topology_names,
	.summary = "Print a topology, as a start for your own",
	.min_arguments = 1,
	.max_arguments = 1,
	.run = run_show,
};
static const struct graft_command check_command = {
	.name = "check",
	.arguments = "FILE...",
	.summary = "Check topology files; errors name line and column",
	.min_arguments = 1,
	.max_arguments = -1,
	.run = run_check,
};
static const struct graft_command *const commands[] = { &create_command, &run_command,   &list_command,
							&show_command,   &check_command, NULL };
static const struct graft_manual_section sections[] = {
#define X(word, equals, value, add, text) "*" word "*" equals value "\n\t" text ".\n\n"
	{ "FAULTS", SIM_FAULT_LIST(X) },
#undef X
	{ "ENVIRONMENT",
	  "*SIMULATED\\_KMSG*\n\tThe kernel log of the simulated host: a file or FIFO to which lines of the "
	  "driver, such as Xids, may be written. Unless it is set, *graft-sim run* creates a file and sets it "
	  "for COMMAND.\n" },
	{ "FILES", "_/usr/share/graft/topologies_\n\tThe topologies that *graft-sim list* names, to copy from.\n" },
	{ "EXAMPLES",
	  "Show what a program sees on a host with eight GPUs:\n\n*graft-sim run --topology dgx-h100 nvidia-smi -L*\n\n"
	  "Show the same host after its third GPU has fallen off the bus:\n\n"
	  "*graft-sim run --topology dgx-h100 --fault gpu-lost=2 nvidia-smi*\n\n"
	  "Create a driver root for tests that cannot create namespaces:\n\n"
	  "*graft-sim create --topology single /tmp/driver*\n" },
	{ "SEE ALSO", "*graft-topology*(5), *nvidia-container-cli*(1), *nvidia-ctk*(1)\n" },
};
const struct graft_command sim_program = {
	.name = PROGRAM,
	.arguments = "COMMAND [ARG...]",
	.summary = "A simulated NVIDIA driver for machines without a GPU",
	.description =
	    "graft-sim creates a driver root that looks real to everything above the kernel, and runs programs on it. "
	    "It touches no GPU and loads no kernel module. The driver identifies itself as simulated.\n\n"
	    "Only COMMAND of 'graft-sim run' and the processes that it starts see the simulated host. Their changes "
	    "to system directories, such as installed packages, are lost when the last of them ends.",
	.min_arguments = 1,
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.subcommands = commands,
	.sections = sections,
	.n_sections = GRAFT_COUNT(sections),
};

/* --- the program --- */

static void add_fault_help(struct graft_buffer *out)
{
	graft_buffer_string(out, "\n Faults:\n");
#define X(word, equals, value, add, text) graft_buffer_printf(out, "  %-26s %s\n", word equals value, text);
	SIM_FAULT_LIST(X)
#undef X
}

/* Prints help, usage or version. Returns the exit status. */
static int answer_sim_options(const struct graft_command *command, const char *name, enum graft_parse_result result)
{
	struct graft_buffer out = { .max = 0 };

	if (result == GRAFT_PARSE_VERSION)
		graft_buffer_printf(&out, PROGRAM " " GRAFT_VERSION "\n");
	else if (result == GRAFT_PARSE_USAGE)
		graft_options_usage(command, name, &out);
	else
		graft_options_help(command, name, &out);
	if (result == GRAFT_PARSE_HELP && (command == &create_command || command == &run_command))
		add_fault_help(&out);
	(void)fputs(graft_buffer_text(&out), stdout);
	graft_buffer_done(&out);
	return finish_output();
}

/* Returns the exit status, or -1 to continue with `*ret_first`. */
static int parse_sim_options(const struct graft_command *command, const char *name, int argc, char **argv, void *target,
			     int *ret_first)
{
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };

	if (graft_options_parse(command, argc, argv, target, ret_first, &result, &err) == 0)
		return result == GRAFT_PARSE_OK ? -1 : answer_sim_options(command, name, result);
	if (result == GRAFT_PARSE_OK)
		return complain(&err);
	graft_options_complain(command, name, result, &err, &out);
	(void)fputs(graft_buffer_text(&out), stderr);
	graft_buffer_done(&out);
	return graft_status_exit(GRAFT_INVALID);
}

int sim_main(int argc, char **argv)
{
	struct arguments arguments = { .topology = "single" };
	const struct graft_command *command = NULL;
	char name[64];
	int first = 0, status;

	status = parse_sim_options(&sim_program, PROGRAM, argc, argv, &arguments, &first);
	if (status >= 0)
		return status;
	for (size_t i = 0; commands[i]; i++) {
		if (strcmp(commands[i]->name, argv[first]) == 0)
			command = commands[i];
	}
	if (!command) {
		const char *meant = graft_options_meant_command(&sim_program, argv[first]);

		(void)fprintf(stderr, PROGRAM ": unknown command '%s'%s%s%s; 'graft-sim --help' lists them\n",
			      argv[first], meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "");
		return graft_status_exit(GRAFT_INVALID);
	}
	(void)snprintf(name, sizeof(name), PROGRAM " %s", command->name);
	argc -= first;
	argv += first;
	status = parse_sim_options(command, name, argc, argv, &arguments, &first);
	if (status >= 0)
		return status;
	return command->run(&arguments, argc - first, argv + first);
}
