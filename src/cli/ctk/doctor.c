/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor: nvidia-ctk doctor: looks at the host (host/health.h), has it judged (plan/doctor.h), prints what is wrong, why, and what repairs it. Changes
 * nothing. docs/doctor.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cdi_staleness.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/ctk/cdi_file.h"
#include "cli/ctk/ctk.h"
#include "host/health.h"
#include "plan/doctor.h"

#define STATUS_FAILED   1
#define STATUS_WARNINGS 4
#define STATUS_BROKEN   5

#define DEFAULT_TIMEOUT_S 30
#define FACTS_MAX         ((size_t)16 << 20)
#define WIDTH_MIN         60
#define WIDTH_MAX         160
#define WIDTH_USUAL       100

struct doctor_options {
	struct ctk_base base;
	bool json, facts, quick, all;
	const char *from, *timeout, *image, *driver_root;
	struct graft_strings devices, requirements; /* as given: commas belong to a value */
	struct ctk_list cdi_directories;
};

static int add_string(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct doctor_options *options = target;
	struct graft_strings *list = (struct graft_strings *)((char *)target + option->offset);

	return graft_arena_push_string(options->base.ctk->arena, &list->items, &list->n, value)
		   ? 0
		   : graft_fail_memory(err);
}

static const struct graft_option options[] = {
	{ .name = "json",
	  .help = "Print the diagnosis as JSON",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct doctor_options, json) },
	{ .name = "all",
	  .letter = 'a',
	  .help = "Print also what is well",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct doctor_options, all) },
	{ .name = "device",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "LIST",
	  .help = "Tell also whether a container gets these devices: as in NVIDIA_VISIBLE_DEVICES, or a CDI name",
	  .parse = add_string,
	  .offset = offsetof(struct doctor_options, devices) },
	{ .name = "require",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "EXPRESSION",
	  .help = "Tell also whether this requirement holds: as in NVIDIA_REQUIRE_CUDA",
	  .parse = add_string,
	  .offset = offsetof(struct doctor_options, requirements) },
	{ .name = "image",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "DIR",
	  .help = "Look also at an image, unpacked in this directory",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct doctor_options, image) },
	{ .name = "driver-root",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "DIR",
	  .help = "Directory in which the driver is installed (default: that of config.toml, or /)",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct doctor_options, driver_root) },
	CTK_CDI_DIRECTORIES_OPTION(struct doctor_options, cdi_directories),
	{ .name = "quick",
	  .help = "Do not ask the driver's management library, which initialises GPUs that nobody uses",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct doctor_options, quick) },
	{ .name = "timeout",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "SECONDS",
	  .help = "How long that library may take (default 30)",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct doctor_options, timeout) },
	{ .name = "facts",
	  .help = "Print what was seen as JSON, and judge nothing: for a report of a bug",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct doctor_options, facts) },
	{ .name = "from",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Judge what --facts printed, perhaps on another host, and look at nothing",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct doctor_options, from) },
};

/* ---- what to look at ---- */

static const char *variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && value[0] != '\0' ? value : NULL;
}

/* config.toml as a fact: one that cannot be used is what the user came for. */
static void read_config(struct ctk *ctk, struct graft_health_config *ret_config, struct graft_config *config)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[sizeof(err.msg) + sizeof(err.ctx)];
	bool required;

	*ret_config = (struct graft_health_config){ .file = ctk->config };
	if (!ret_config->file)
		ret_config->file = cli_config_path(CLI_CONFIG_RUNTIME, NULL, ctk->arena, &required);
	if (cli_config_load(CLI_CONFIG_HOOK, ctk->config, ctk->arena, config, &err) < 0) {
		ret_config->problem = graft_arena_strdup(ctk->arena, graft_error_text(&err, text, sizeof(text)));
		return;
	}
	ret_config->present = config->file != NULL;
	ret_config->mode = config->runtime.mode;
	ret_config->root = config->cli.root[0] != '\0' ? config->cli.root : NULL;
	ret_config->no_cgroups = config->cli.no_cgroups;
	ret_config->accepts_envvar = config->accept_envvar_unprivileged;
	ret_config->runtimes = config->runtime.runtimes.items;
	ret_config->n_runtimes = config->runtime.runtimes.n;
}

/* The user that NVML runs as in containers' starts, so that it is refused here what it is refused there. */
static void choose_user(const struct graft_config *config, struct graft_host_options *host)
{
	struct graft_error err = { .status = GRAFT_OK };

	host->nvml_uid = (uid_t)-1;
	host->nvml_gid = (gid_t)-1;
	if (config->cli.user && config->cli.user[0] != '\0' && geteuid() == 0 &&
	    cli_parse_user(config->cli.user, &host->nvml_uid, &host->nvml_gid, &err) < 0) {
		host->nvml_uid = (uid_t)-1;
		host->nvml_gid = (gid_t)-1;
	}
}

/* A driver root that cannot be used is a finding, and the rest of the host is looked at all the same. */
static const char *choose_root(const struct doctor_options *given, struct graft_health_config *config)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_error err = { .status = GRAFT_OK };

	if (given->driver_root && given->driver_root[0] != '\0')
		return given->driver_root;
	if (!config->root || graft_root_open(&root, config->root, &err) == 0)
		return config->root;
	config->root_problem = graft_arena_strdup(given->base.ctk->arena, strerror(err.sys));
	return NULL;
}

static int parse_timeout(const char *text, int *ret_ms, struct graft_error *err)
{
	char *end;
	long seconds;

	*ret_ms = DEFAULT_TIMEOUT_S * 1000;
	if (!text)
		return 0;
	errno = 0;
	seconds = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || seconds < 1 || seconds > 3600)
		return graft_fail(err, GRAFT_INVALID, 0, "--timeout is '%s'; allowed: 1 to 3600 seconds", text);
	*ret_ms = (int)seconds * 1000;
	return 0;
}

/*
 * Specs whose files are all there, and which were made for another driver, other GPUs or another layout of MIG. They say so in a form that is the planner's
 * matter, which discovery does not know. One that cannot be asked is as it is.
 */
static void look_at_origins(struct ctk *ctk, const struct graft_host_options *where, struct graft_health *health)
{
	const struct cli_cdi_host host = { .options = where, .arena = ctk->arena };
	struct graft_cdi_fingerprint made;
	struct graft_cdi_spec spec;
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < health->cdi.n_specs; i++) {
		struct graft_health_spec *row = &health->cdi.specs[i];

		if (!row->stale && ctk_cdi_read(ctk, row->file, &spec, &err) == 0)
			(void)cli_cdi_why_stale(&host, &spec, NULL, 0, &made, &row->stale, &err);
	}
}

static int collect(struct ctk *ctk, const struct doctor_options *given, struct graft_health **ret_health,
		   struct graft_error *err)
{
	struct graft_config config = { .file = NULL };
	struct graft_health_config facts;
	struct graft_health_options look = {
		.host = { .path = variable("PATH"),
			  .mps_pipe_directory = variable("CUDA_MPS_PIPE_DIRECTORY"),
			  .capabilities = GRAFT_CAP_ALL,
			  .log = ctk->log.max == GRAFT_LOG_DEBUG ? &ctk->steps : NULL },
		.ask_nvml = !given->quick,
		.cdi_directories = given->cdi_directories.items,
		.n_cdi_directories = given->cdi_directories.n,
		.home = variable("HOME"),
		.config_home = variable("XDG_CONFIG_HOME"),
		.image = given->image,
		.config = &facts,
	};

	if (parse_timeout(given->timeout, &look.host.nvml_timeout_ms, err) < 0)
		return -1;
	read_config(ctk, &facts, &config);
	choose_user(&config, &look.host);
	look.host.root = choose_root(given, &facts);
	if (graft_arena_failed(ctk->arena))
		return graft_fail_memory(err);
	if (graft_health_collect(&look, ret_health, err) < 0)
		return -1;
	look_at_origins(ctk, &look.host, *ret_health);
	return graft_arena_failed(ctk->arena) ? graft_fail_memory(err) : 0;
}

static int read_facts(struct ctk *ctk, const char *path, struct graft_health **ret_health, struct graft_error *err)
{
	auto_close int fd = -1;
	const char *text = NULL;
	size_t length = 0;
	int rc;

	fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				    : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	rc = fd < 0 ? -errno : graft_read_fd(fd, FACTS_MAX, ctk->arena, &text, &length);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "read failed: %s", path);
	return graft_health_read(text, length, ret_health, err);
}

/* ---- what was found ---- */

static bool is_shown(const struct doctor_options *given, const struct graft_finding *finding)
{
	return given->all || finding->level != GRAFT_LEVEL_OK;
}

static size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH_USUAL;
	return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col > WIDTH_MAX ? WIDTH_MAX : size.ws_col;
}

/* Words up to the width; lines after the first are indented. `column`: where the text begins. */
static void add_wrapped(struct graft_buffer *out, const char *text, size_t column, size_t indent, size_t width)
{
	while (*text != '\0') {
		size_t length = strcspn(text, " ");

		if (column > indent && column + length + 1 > width) {
			graft_buffer_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			graft_buffer_char(out, ' ');
			column++;
		}
		graft_buffer_add(out, text, length);
		column += length;
		text += length + (text[length] == ' ');
	}
	graft_buffer_char(out, '\n');
}

/* "broken   kernel-module       nvidia: driver not loaded ..." and, below the text, "-> what to do". */
static void add_finding(struct graft_buffer *out, const struct graft_finding *finding, bool colours, size_t width)
{
	static const char *const codes[GRAFT_LEVEL_MAX] = { "\033[32m", "\033[2m", "\033[33m", "\033[31m" };
	const size_t indent = 9 + 20;
	size_t subject = strlen(finding->subject);

	graft_buffer_printf(out, "%s%-8s%s %-19s %s:", colours ? codes[finding->level] : "",
			    graft_level_names[finding->level], colours ? "\033[0m" : "",
			    graft_check_ids[finding->check], finding->subject);
	add_wrapped(out, finding->cause, indent + subject + 1, indent, width);
	if (!finding->remedy || finding->level == GRAFT_LEVEL_OK)
		return;
	graft_buffer_printf(out, "%*s->", (int)indent, "");
	add_wrapped(out, finding->remedy, indent + 2, indent, width);
}

static void add_counts(struct graft_buffer *out, const struct graft_diagnosis *diagnosis)
{
	size_t n[GRAFT_LEVEL_MAX] = { 0 };

	for (size_t i = 0; i < diagnosis->n_findings; i++)
		n[diagnosis->findings[i].level]++;
	graft_buffer_printf(out, "%zu ok, %zu warning%s, %zu broken", n[GRAFT_LEVEL_OK], n[GRAFT_LEVEL_WARNING],
			    n[GRAFT_LEVEL_WARNING] == 1 ? "" : "s", n[GRAFT_LEVEL_BROKEN]);
	if (n[GRAFT_LEVEL_UNKNOWN] > 0)
		graft_buffer_printf(out, ", %zu not seen", n[GRAFT_LEVEL_UNKNOWN]);
	graft_buffer_char(out, '\n');
}

/* First what may be behind the message that was asked about, then the rest. */
static void add_table(struct graft_buffer *out, const struct doctor_options *given, const char *message,
		      const struct graft_diagnosis *diagnosis)
{
	bool colours = isatty(STDOUT_FILENO), explained = false;
	size_t width = terminal_width();

	if (message) {
		graft_buffer_string(out, "This message: ");
		add_wrapped(out, diagnosis->message ? diagnosis->message : "it is not one that is known here.", 14, 14,
			    width);
		for (size_t i = 0; i < diagnosis->n_findings; i++) {
			if (!diagnosis->findings[i].explains)
				continue;
			explained = true;
			add_finding(out, &diagnosis->findings[i], colours, width);
		}
		if (diagnosis->message && !explained)
			graft_buffer_string(out, "Nothing of that kind is wrong on this host now.\n");
		graft_buffer_char(out, '\n');
	}
	for (size_t i = 0; i < diagnosis->n_findings; i++) {
		if (!diagnosis->findings[i].explains && is_shown(given, &diagnosis->findings[i]))
			add_finding(out, &diagnosis->findings[i], colours, width);
	}
	add_counts(out, diagnosis);
}

static int exit_status(const struct graft_diagnosis *diagnosis)
{
	switch (diagnosis->verdict) {
	case GRAFT_LEVEL_BROKEN:
		return STATUS_BROKEN;
	case GRAFT_LEVEL_WARNING:
		return STATUS_WARNINGS;
	case GRAFT_LEVEL_OK:
	case GRAFT_LEVEL_UNKNOWN:
	case GRAFT_LEVEL_MAX:
		break;
	}
	return 0;
}

static int judge(struct ctk *ctk, struct doctor_options *given, const struct graft_health *health, const char *message)
{
	struct graft_doctor_question question = { .message = message };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };
	struct graft_diagnosis diagnosis;
	const char *device = NULL, *requirement = NULL;

	if (message)
		graft_doctor_read_message(message, ctk->arena, &device, &requirement);
	if (device)
		(void)graft_arena_push_string(ctk->arena, &given->devices.items, &given->devices.n, device);
	if (requirement)
		(void)graft_arena_push_string(ctk->arena, &given->requirements.items, &given->requirements.n,
					      requirement);
	question.devices = given->devices.items;
	question.n_devices = given->devices.n;
	question.requirements = given->requirements.items;
	question.n_requirements = given->requirements.n;
	if (graft_doctor_judge(health, &question, ctk->arena, &diagnosis, &err) < 0)
		return ctk_fail(ctk, &err, "%s", "");
	if (given->json)
		graft_record_write(&graft_diagnosis_record, &diagnosis, &out);
	else
		add_table(&out, given, message, &diagnosis);
	return ctk_print(ctk, &out) == 0 ? exit_status(&diagnosis) : STATUS_FAILED;
}

static int run(void *context, int argc, char **argv)
{
	struct ctk *ctk = context;
	struct doctor_options given = { .cdi_directories = CTK_CDI_DIRECTORIES };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };
	struct graft_health *health = NULL;
	int first, status = 0, rc;

	if (ctk_parse(ctk, &ctk_doctor, &given, argc, argv, &first, &status) < 0)
		return status;
	rc = given.from ? read_facts(ctk, given.from, &health, &err) : collect(ctk, &given, &health, &err);
	if (rc < 0) {
		health = graft_health_free(health);
		return ctk_fail(ctk, &err, "%s", "");
	}
	if (given.facts) {
		graft_health_write(health, &out);
		status = ctk_print(ctk, &out);
	} else {
		status = judge(ctk, &given, health, first < argc ? argv[first] : NULL);
	}
	health = graft_health_free(health);
	return status;
}

const struct graft_command ctk_doctor = {
	.name = "doctor",
	.arguments = "[MESSAGE]",
	.max_arguments = -1,
	.go_style = true,
	.interspersed = true,
	.summary = "Find out why containers of this host get no GPU, and what repairs it",
	.description =
	    "Looks at everything between the kernel and a container: driver, device nodes, libraries, daemons, "
	    "control groups, CDI specs, container engines; prints what is wrong, why, and the command that "
	    "repairs it. Nothing is changed. MESSAGE is what an engine or a program said: its causes come "
	    "first.\n\n"
	    "Exit status: 0 = all is well; 4 = there are warnings; 5 = something is broken; 1 = the doctor "
	    "itself could not work.",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.run = run,
};
