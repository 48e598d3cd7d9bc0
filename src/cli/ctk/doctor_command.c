/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_command: nvidia-ctk doctor: collects facts about the host (doctor/facts.h), has them
 * judged (doctor/judge.h) and prints what is wrong, why, and how to repair it. Changes nothing. See
 * docs/doctor.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/option_rows.h"
#include "cli/cli.h"
#include "cli/ctk/cdi_file.h"
#include "cli/ctk/ctk.h"
#include "cli/ctk/doctor.h"
#include "cli/terminal.h"
#include "doctor/facts.h"
#include "doctor/judge.h"
#include "start/cdi_staleness.h"
#include "start/config_file.h"

#define STATUS_FAILED   1
#define STATUS_WARNINGS 4
#define STATUS_BROKEN   5

#define WORD_CLUSTER      "kubernetes"
#define WORD_NODE         "node"
#define DEFAULT_TIMEOUT_S 30
#define FACTS_MAX         ((size_t)16 << 20)
#define WIDTH_MIN         60
#define WIDTH_MAX         160
#define WIDTH_USUAL       100

struct doctor_options {
	struct ctk_base base;
	bool json, facts, quick, all;
	bool cluster; /* the first argument requests it, or the message comes from Kubernetes */
	bool node;    /* the first argument asks whether this node is ready for pods */
	const char *from, *timeout, *image, *driver_root, *container;
	struct graft_strings devices, requirements; /* as given: values may contain commas */
	struct ctk_list cdi_directories;
};

static int add_doctor_option(void *target, const struct graft_option *option, const char *value,
			     struct graft_error *err)
{
	struct doctor_options *options = target;
	struct graft_strings *list = (struct graft_strings *)((char *)target + option->offset);

	return graft_arena_push_string(options->base.ctk->arena, &list->items, &list->n, value)
		   ? 0
		   : graft_fail_memory(err);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct doctor_options, member)
static const struct graft_option options[] = {
	{ .name = "json", FLAG, AT(json), .help = "Print the diagnosis as JSON" },
	{ .name = "all", .letter = 'a', FLAG, AT(all), .help = "Print every check, not only what is wrong" },
	{ .name = "device", .argument = GRAFT_OPTION_REQUIRED, .parse = add_doctor_option, AT(devices),
	  .value_name = "LIST",
	  .help = "Check whether a container can get these devices: as in NVIDIA_VISIBLE_DEVICES, or a CDI name" },
	{ .name = "require", .argument = GRAFT_OPTION_REQUIRED, .parse = add_doctor_option, AT(requirements),
	  .value_name = "EXPRESSION",
	  .help = "Check whether this requirement is met: as in NVIDIA_REQUIRE_CUDA" },
	{ .name = "image", TEXT, AT(image), .value_name = "DIR",
	  .help = "Also check the image that is unpacked in this directory" },
	{ .name = "container", TEXT, AT(container), .value_name = "NAME",
	  .help = "Check one container instead: its ID, its name, a process in it, or its bundle" },
	{ .name = "driver-root", TEXT, AT(driver_root), .value_name = "DIR",
	  .help = "Directory in which the driver is installed (default: that of config.toml, or /)" },
	CTK_CDI_DIRECTORIES_OPTION(struct doctor_options, cdi_directories),
	{ .name = "quick", FLAG, AT(quick),
	  .help = "Ask neither NVML, which initialises GPUs that no program uses, nor Docker's daemon" },
	{ .name = "timeout", TEXT, AT(timeout), .value_name = "SECONDS",
	  .help = "How long NVML may take (default 30)" },
	{ .name = "facts", FLAG, AT(facts),
	  .help = "Print the facts as JSON without judging them, for a bug report" },
	{ .name = "from", TEXT, AT(from), .value_name = "FILE",
	  .help = "Judge the output of --facts, possibly from another host, instead of this host" },
};
/* clang-format on */

/* ---- collecting facts ---- */

static const char *read_ctk_doctor_variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && value[0] != '\0' ? value : NULL;
}

/* Collects config.toml as a fact: an unusable file may be the problem to diagnose. */
static void read_ctk_doctor_config(struct ctk *ctk, struct graft_health_config *ret_config, struct graft_config *config)
{
	struct graft_error err = { .status = GRAFT_OK };
	char text[sizeof(err.msg) + sizeof(err.ctx)];
	bool required;

	*ret_config = (struct graft_health_config){ .file = ctk->config };
	if (!ret_config->file)
		ret_config->file = graft_config_file_path(GRAFT_CONFIG_OF_RUNTIME, NULL, ctk->arena, &required);
	if (graft_config_file_load(GRAFT_CONFIG_OF_HOOK, ctk->config, ctk->arena, config, &err) < 0) {
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
	ret_config->unknown = config->unknown.items;
	ret_config->n_unknown = config->unknown.n;
}

/*
 * Checks whether the host has the user and the group; other mistakes can be found without the host.
 */
static void find_mistakes(struct ctk *ctk, const struct graft_config *config, struct graft_health_config *ret_facts)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_config_mistake *mistake;
	uid_t uid;
	gid_t gid;

	if (!ret_facts->present)
		return;
	(void)graft_config_find_mistakes(config, ctk->arena, &ret_facts->mistakes, &ret_facts->n_mistakes, &err);
	if (config->cli.user[0] == '\0' || cli_parse_user(config->cli.user, &uid, &gid, &err) == 0)
		return;
	mistake = graft_arena_push(ctk->arena, &ret_facts->mistakes, &ret_facts->n_mistakes, sizeof(*mistake));
	if (mistake)
		*mistake = (struct graft_config_mistake){ .key = "nvidia-container-cli.user",
							  .value = config->cli.user,
							  .allowed = "USER or USER:GROUP of this host",
							  .standard = "" };
}

/*
 * Selects the user that NVML runs as when containers start, so that it is denied the same things
 * here.
 */
static void choose_doctor_nvml_user(const struct graft_config *config, struct graft_host_options *host)
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

/* An unusable driver root is a finding; the rest of the host is examined anyway. */
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
 * Finds specs whose files all exist but which were made for another driver, other GPUs or another
 * MIG layout. Only the planner can read their record of it, discovery cannot. A spec that cannot be
 * checked is left as it is.
 */
static void look_at_origins(struct ctk *ctk, const struct graft_host_options *where, struct graft_health *health)
{
	struct graft_cdi_fingerprint made;
	struct graft_cdi_spec spec;
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < health->cdi.n_specs; i++) {
		struct graft_health_spec *row = &health->cdi.specs[i];

		if (!row->stale && ctk_cdi_read(ctk, row->file, &spec, &err) == 0)
			(void)graft_cdi_why_stale(where, &spec, NULL, 0, ctk->arena, &made, &row->stale, &err);
	}
}

/* `config` receives the settings of config.toml; its file is NULL if that cannot be read. */
static int collect_ctk_health(struct ctk *ctk, const struct doctor_options *given, struct graft_config *config,
			      struct graft_health **ret_health, struct graft_error *err)
{
	struct graft_health_config facts;
	struct graft_health_options look = {
		.host = { .path = read_ctk_doctor_variable("PATH"),
			  .mps_pipe_directory = read_ctk_doctor_variable("CUDA_MPS_PIPE_DIRECTORY"),
			  .capabilities = GRAFT_CAP_ALL,
			  .log = ctk->log.max == GRAFT_LOG_DEBUG ? &ctk->steps : &ctk->waiting },
		.look_at_cluster = given->cluster,
		.ask_nvml = !given->quick && !given->container,
		.ask_daemons = !given->quick && !given->container,
		.cdi_directories = given->cdi_directories.items,
		.n_cdi_directories = given->cdi_directories.n,
		.home = read_ctk_doctor_variable("HOME"),
		.config_home = read_ctk_doctor_variable("XDG_CONFIG_HOME"),
		.image = given->image,
		.config = &facts,
	};

	if (parse_timeout(given->timeout, &look.host.nvml_timeout_ms, err) < 0)
		return -1;
	read_ctk_doctor_config(ctk, &facts, config);
	find_mistakes(ctk, config, &facts);
	choose_doctor_nvml_user(config, &look.host);
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
	const char *text = NULL;
	size_t length = 0;
	int rc = graft_read_input(path, FACTS_MAX, ctk->arena, &text, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "read failed: %s", graft_input_name(path));
	return graft_health_read(text, length, ret_health, err);
}

/* ---- output ---- */

static bool is_shown(const struct doctor_options *given, const struct graft_finding *finding)
{
	return given->all || finding->level != GRAFT_LEVEL_OK ||
	       (given->node && finding->check == GRAFT_CHECK_TOOLKIT_OWNER);
}

size_t ctk_doctor_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH_USUAL;
	return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col > WIDTH_MAX ? WIDTH_MAX : size.ws_col;
}

/* SECURITY: other users may have chosen names and paths in the text. */
void ctk_doctor_add_wrapped(struct graft_buffer *out, const char *foreign, size_t column, size_t indent, size_t width)
{
	auto_buffer struct graft_buffer visible = { .max = 0 };
	const char *text;

	graft_buffer_visible(&visible, foreign);
	out->failed |= graft_buffer_failed(&visible);
	text = graft_buffer_text(&visible);
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

void ctk_doctor_add_level(struct graft_buffer *out, enum graft_level level, bool colours)
{
	static const char *const codes[GRAFT_LEVEL_MAX] = { "\033[32m", "\033[2m", "\033[33m", "\033[31m" };

	graft_buffer_printf(out, "%s%-8s%s ", colours ? codes[level] : "", graft_level_names[level],
			    colours ? "\033[0m" : "");
}

/*
 * Appends "broken   kernel-module       nvidia: driver not loaded ..." and, below the
 * text, "-> remedy".
 */
static void add_finding(struct graft_buffer *out, const struct graft_finding *finding, bool colours, size_t width)
{
	auto_buffer struct graft_buffer said = { .max = 0 };
	const size_t indent = 9 + 20;

	graft_buffer_printf(&said, "%s: %s", finding->subject, finding->cause);
	out->failed |= graft_buffer_failed(&said);
	ctk_doctor_add_level(out, finding->level, colours);
	graft_buffer_printf(out, "%-19s ", graft_check_ids[finding->check]);
	ctk_doctor_add_wrapped(out, graft_buffer_text(&said), indent, indent, width);
	if (!finding->remedy || finding->level == GRAFT_LEVEL_OK)
		return;
	graft_buffer_printf(out, "%*s->", (int)indent, "");
	ctk_doctor_add_wrapped(out, finding->remedy, indent + 2, indent, width);
}

static void add_ways(struct graft_buffer *out, const struct graft_diagnosis *diagnosis)
{
	static const char *const words[GRAFT_LEVEL_MAX] = { "works", "unknown", "works", "does not work" };

	for (size_t i = 0; i < diagnosis->n_ways; i++) {
		const struct graft_way *way = &diagnosis->ways[i];
		/* "docker run ..." of docker needs no name; that of a rootless one does. */
		bool named = strncmp(way->command, way->engine, strlen(way->engine)) == 0;

		graft_buffer_visible(out, way->command);
		graft_buffer_printf(out, "%s%s%s: %s", named ? "" : " (", named ? "" : way->engine, named ? "" : ")",
				    words[way->level]);
		graft_buffer_string(out, way->why ? ": " : "");
		graft_buffer_visible(out, way->why ? way->why : "");
		graft_buffer_char(out, '\n');
	}
	if (diagnosis->n_ways > 0)
		graft_buffer_char(out, '\n');
}

static void add_verdict(struct graft_buffer *out, const struct graft_diagnosis *diagnosis)
{
	static const char *const words[GRAFT_LEVEL_MAX] = { "Healthy", "Healthy", "Healthy, with warnings", "Broken" };
	size_t n[GRAFT_LEVEL_MAX] = { 0 };

	for (size_t i = 0; i < diagnosis->n_findings; i++)
		n[diagnosis->findings[i].level]++;
	graft_buffer_printf(out, "%s: %zu ok, %zu warning%s, %zu broken", words[diagnosis->verdict], n[GRAFT_LEVEL_OK],
			    n[GRAFT_LEVEL_WARNING], n[GRAFT_LEVEL_WARNING] == 1 ? "" : "s", n[GRAFT_LEVEL_BROKEN]);
	if (n[GRAFT_LEVEL_UNKNOWN] > 0)
		graft_buffer_printf(out, ", %zu unknown", n[GRAFT_LEVEL_UNKNOWN]);
	graft_buffer_char(out, '\n');
}

/*
 * Appends the findings that explain the message, or, below a heading, the other ones. Returns their
 * number.
 */
static size_t add_findings(struct graft_buffer *out, const struct doctor_options *given,
			   const struct graft_diagnosis *diagnosis, bool explaining, size_t width)
{
	bool colours = cli_has_colours(STDOUT_FILENO);
	size_t n = 0;

	for (size_t i = 0; i < diagnosis->n_findings; i++) {
		const struct graft_finding *finding = &diagnosis->findings[i];

		if (finding->explains != explaining || !is_shown(given, finding))
			continue;
		if (n++ == 0 && !explaining && diagnosis->message)
			graft_buffer_string(out, "Other checks:\n");
		add_finding(out, finding, colours, width);
	}
	return n;
}

/* Appends what is known of the message, and the findings that explain it. */
static void add_message(struct graft_buffer *out, const struct doctor_options *given,
			const struct graft_diagnosis *diagnosis, size_t width)
{
	if (!diagnosis->message) {
		graft_buffer_string(out, diagnosis->verdict > GRAFT_LEVEL_UNKNOWN
					     ? "I don't know this message. Here is everything that looks wrong on this "
					       "host:\n\n"
					     : "I don't know this message, and nothing looks wrong on this host.\n\n");
		return;
	}
	graft_buffer_string(out, "Usual cause:");
	ctk_doctor_add_wrapped(out, diagnosis->message, 12, 4, width);
	graft_buffer_string(out, "Usual remedy:");
	ctk_doctor_add_wrapped(out, diagnosis->message_remedy, 13, 4, width);
	graft_buffer_string(out, "\nOn this host:\n");
	if (add_findings(out, given, diagnosis, true, width) == 0)
		graft_buffer_string(out, "The checks for this message find nothing wrong.\n"
					 "To check one container, run 'nvidia-ctk doctor --container NAME'.\n");
	graft_buffer_char(out, '\n');
}

static void add_report(struct graft_buffer *out, const struct doctor_options *given, const char *message,
		       const struct graft_diagnosis *diagnosis)
{
	size_t width = ctk_doctor_width();

	if (diagnosis->simulated)
		graft_buffer_string(out, "The driver is simulated (graft-sim): there is no real GPU on this host.\n\n");
	if (message)
		add_message(out, given, diagnosis, width);
	if (add_findings(out, given, diagnosis, false, width) > 0)
		graft_buffer_char(out, '\n');
	add_ways(out, diagnosis);
	if (given->node)
		graft_buffer_string(out, diagnosis->verdict == GRAFT_LEVEL_BROKEN
					     ? "This node is not ready for pods with GPUs.\n"
					     : "This node is ready for pods with GPUs.\n");
	add_verdict(out, diagnosis);
}

int ctk_doctor_status(enum graft_level verdict)
{
	switch (verdict) {
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

static int print_ctk_diagnosis(struct ctk *ctk, struct doctor_options *given, const struct graft_health *health,
			       const char *message)
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
		add_report(&out, given, message, &diagnosis);
	return ctk_print(ctk, &out) == 0 ? ctk_doctor_status(diagnosis.verdict) : STATUS_FAILED;
}

/*
 * A message that was not quoted arrives as several arguments. Returns -1 if they contain no
 * message.
 */
static int join_message(struct ctk *ctk, int n_words, char **words, const char **ret_message, struct graft_error *err)
{
	const char *message = n_words > 0 ? words[0] : NULL;

	for (int i = 1; message && i < n_words; i++)
		message = graft_arena_printf(ctk->arena, "%s %s", message, words[i]);
	*ret_message = message;
	if (n_words > 0 && !message)
		return graft_fail_memory(err);
	if (!message || message[strspn(message, " \t\n")] != '\0')
		return 0;
	(void)graft_fail(err, GRAFT_INVALID, 0, "the message is empty");
	return graft_with_hint(err, "Give the text that the engine or the program printed.");
}

/*
 * The given message, or NULL. "kubernetes" or "node" in front of it asks about the cluster, as does
 * a message from one.
 */
static int take_doctor_words(struct ctk *ctk, struct doctor_options *given, int n_words, char **words,
			     const char **ret_message, struct graft_error *err)
{
	bool named;

	given->node = n_words > 0 && strcmp(words[0], WORD_NODE) == 0;
	named = given->node || (n_words > 0 && strcmp(words[0], WORD_CLUSTER) == 0);

	if (join_message(ctk, n_words - named, words + named, ret_message, err) < 0)
		return -1;
	given->cluster = named || (*ret_message && graft_doctor_is_of_cluster(*ret_message));
	return 0;
}

static int diagnose_host(void *target, struct graft_error *err)
{
	struct doctor_options *given = target;
	struct ctk *ctk = given->base.ctk;
	struct graft_buffer out = { .max = 0 };
	struct graft_config config = { .file = NULL };
	struct graft_health *health = NULL;
	const char *message;
	int status;

	if (take_doctor_words(ctk, given, given->base.argc, given->base.argv, &message, err) < 0)
		return -1;
	status = given->from ? read_facts(ctk, given->from, &health, err)
			     : collect_ctk_health(ctk, given, &config, &health, err);
	if (status < 0) {
		health = graft_health_free(health);
		return -1;
	}
	if (given->container) {
		status = ctk_doctor_container(ctk, given->container, given->json, health, &config);
	} else if (given->facts) {
		graft_health_write(health, &out);
		status = ctk_print(ctk, &out);
	} else {
		status = print_ctk_diagnosis(ctk, given, health, message);
	}
	health = graft_health_free(health);
	return status;
}

const struct graft_command ctk_doctor = {
	.name = "doctor",
	.arguments = "[kubernetes|node] [MESSAGE]",
	.max_arguments = -1,
	.go_style = true,
	.interspersed = true,
	.summary = "Find out why containers on this host get no GPU, and how to repair it",
	.description =
	    "Checks everything between the kernel and a container: driver, device nodes, libraries, daemons, control "
	    "groups, CDI specs, container engines. Prints what is wrong, why, and the command that repairs it; then "
	    "each way in which containers get GPUs here, and whether it works. Changes nothing. MESSAGE is an error "
	    "message of an engine or a program: its cause comes first.\n\n"
	    "With the argument kubernetes, also checks the Kubernetes side: the kubelet and its records, the device "
	    "plugin, the GPU Operator's files. The argument node does the same, and also says whether the node is "
	    "ready for pods with GPUs, and which package or installer owns each file that gives them GPUs.\n\n"
	    "With --container, checks one container instead: what it asked for, what gave it GPUs, what it got, and "
	    "what "
	    "has changed since. Only reads files; starts no program.\n\n"
	    "Exit status: 0 = healthy; 4 = there are warnings; 5 = something is broken; 1 = the doctor itself "
	    "failed.",
	GRAFT_OPTIONS(options),
	CTK_WORK(diagnose_host, struct doctor_options, .cdi_directories = CTK_CDI_DIRECTORIES),
};
