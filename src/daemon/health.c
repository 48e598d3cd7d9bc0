/* SPDX-License-Identifier: Apache-2.0 */
/* health: keeps the list of faults. The caller decides what is offered because of them. */
#include "daemon/health.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "daemon/gpu_presence.h"
#include "daemon/health_file.h"
#include "formats/procfs.h"

#define LOOK_MS 2000

#define HEALTH_WORD(name, word, text) word,
#define HEALTH_TEXT(name, word, text) text,
const char *const health_cause_names[HEALTH_CAUSES] = { HEALTH_CAUSE_LIST(HEALTH_WORD) };
const char *const health_end_names[HEALTH_ENDS] = { HEALTH_END_LIST(HEALTH_WORD) };
static const char *const cause_texts[HEALTH_CAUSES] = { HEALTH_CAUSE_LIST(HEALTH_TEXT) };
static const char *const end_texts[HEALTH_ENDS] = { HEALTH_END_LIST(HEALTH_TEXT) };

static size_t count_gpus(const struct health *health)
{
	size_t n = health->inventory ? health->inventory->n_gpus : 0;

	return n < HEALTH_MAX_GPUS ? n : HEALTH_MAX_GPUS;
}

/* The GPU that a line is about; NULL: the inventory has none. */
static const struct graft_gpu *find_gpu_of_line(const struct health *health, const struct graft_xid_line *line)
{
	for (size_t i = 0; i < count_gpus(health); i++) {
		if (graft_xid_is_of(line, health->inventory->gpus[i].bus_id))
			return &health->inventory->gpus[i];
	}
	return NULL;
}

static struct health_place place_of_line(const struct health *health, const struct graft_xid_line *line)
{
	const struct graft_gpu *gpu = find_gpu_of_line(health, line);

	return gpu ? gpu_presence_place(health->inventory, gpu, health->options.sys_root)
		   : (struct health_place){ .bound = 0 };
}

/* --- the list --- */

static const char *describe_fault(const struct health_fault *fault, char *text, size_t size)
{
	if (fault->cause == HEALTH_XID)
		(void)snprintf(text, size, "Xid %u", fault->line.number);
	else
		(void)snprintf(text, size, "%s", cause_texts[fault->cause]);
	return text;
}

static bool is_failed(const struct health *health, const struct graft_xid_line *gpu)
{
	for (size_t i = 0; i < health->n_faults; i++) {
		if (graft_xid_is_same_gpu(&health->faults[i].line, gpu))
			return true;
	}
	return health->flooded;
}

static void drop_fault(struct health *health, size_t i, enum health_end end)
{
	const struct health_fault fault = health->faults[i];
	char text[64];

	health->faults[i] = health->faults[--health->n_faults];
	health->n_ended[end]++;
	health->n_changes++;
	graft_info(health->options.log, "GPU %04x:%02x:%02x.0 is %s after '%s': %s", fault.line.domain, fault.line.bus,
		   fault.line.device, is_failed(health, &fault.line) ? "still unhealthy" : "healthy again",
		   describe_fault(&fault, text, sizeof(text)), end_texts[end]);
}

static void end_flood(struct health *health, enum health_end end)
{
	if (!health->flooded)
		return;
	health->flooded = false;
	health->n_ended[end]++;
	health->n_changes++;
	graft_info(health->options.log, "no longer treating all GPUs as unhealthy: %s", end_texts[end]);
}

/* Merges the faults of a GPU's MIG devices into one. Returns whether that made room. */
static bool merge_instances(struct health *health)
{
	size_t before = health->n_faults;

	for (size_t i = 0; i < health->n_faults; i++) {
		struct health_fault *fault = &health->faults[i];

		for (size_t k = health->n_faults; fault->cause == HEALTH_XID && k > i + 1; k--) {
			struct health_fault *other = &health->faults[k - 1];

			if (other->cause != HEALTH_XID || !graft_xid_is_same_gpu(&fault->line, &other->line))
				continue;
			fault->line.has_instance = false;
			fault->line.gi = fault->line.ci = 0;
			*other = health->faults[--health->n_faults];
		}
	}
	return health->n_faults < before;
}

static void push_fault(struct health *health, const struct health_fault *fault)
{
	char text[64];

	health->n_began[fault->cause]++;
	health->n_changes++;
	graft_warn(health->options.log, "GPU %04x:%02x:%02x.0 is unhealthy: %s", fault->line.domain, fault->line.bus,
		   fault->line.device, describe_fault(fault, text, sizeof(text)));
	if (health->n_faults < HEALTH_MAX_FAULTS || merge_instances(health)) {
		health->faults[health->n_faults++] = *fault;
		return;
	}
	/* SECURITY: a GPU whose fault does not fit into the list must not count as healthy. */
	if (health->flooded)
		return;
	health->flooded = true;
	health->n_began[HEALTH_TABLE]++;
	graft_warn(health->options.log, "all GPUs are unhealthy: %s", cause_texts[HEALTH_TABLE]);
}

static bool has_fault(const struct health *health, enum health_cause cause, const struct graft_xid_line *line)
{
	for (size_t i = 0; i < health->n_faults; i++) {
		if (health->faults[i].cause == cause && graft_xid_is_same_device(&health->faults[i].line, line))
			return true;
	}
	return false;
}

/*
 * Ends the faults of a GPU (NULL: of all GPUs) that the log has reported. Returns whether there was
 * one.
 */
static bool end_logged(struct health *health, const struct graft_xid_line *gpu, enum health_end end)
{
	size_t before = health->n_faults;

	for (size_t i = health->n_faults; i > 0; i--) {
		const struct health_fault *fault = &health->faults[i - 1];

		if (fault->cause == HEALTH_XID && (!gpu || graft_xid_is_same_gpu(&fault->line, gpu)))
			drop_fault(health, i - 1, end);
	}
	return health->n_faults < before;
}

/* --- what the log does not say --- */

/* Remembers that what the log has reported about a GPU is over. */
static void add_mark(struct health *health, const struct graft_xid_line *gpu)
{
	size_t i = 0;

	if (!health->numbered && !health->counted)
		return;
	while (i < health->n_marks && !graft_xid_is_same_gpu(&health->marks[i].gpu, gpu))
		i++;
	/* The oldest mark is lost: that GPU will be unhealthy again, which is the safe side. */
	if (i == HEALTH_MAX_FAULTS)
		i = 0;
	else if (i == health->n_marks)
		health->n_marks++;
	memmove(&health->marks[i], &health->marks[i + 1], (health->n_marks - 1 - i) * sizeof(health->marks[0]));
	health->marks[health->n_marks - 1] = (struct health_mark){ .gpu = *gpu, .sequence = health->sequence };
}

static bool is_marked(const struct health *health, const struct graft_xid_line *gpu)
{
	for (size_t i = 0; i < health->n_marks; i++) {
		if (graft_xid_is_same_gpu(&health->marks[i].gpu, gpu))
			return health->sequence <= health->marks[i].sequence;
	}
	return false;
}

/* Ends faults that the log has reported, based on facts that it does not report. */
static bool end_and_mark(struct health *health, const struct graft_xid_line *gpu, enum health_end end)
{
	const struct graft_xid_line which = *gpu;

	if (!end_logged(health, &which, end))
		return false;
	add_mark(health, &which);
	return true;
}

/*
 * Returns where the GPU was when it failed, if the previous process recorded it, otherwise where it
 * is now.
 */
static struct health_place place_of_fault(const struct health *health, const struct graft_xid_line *line)
{
	for (size_t i = 0; i < health->n_known; i++) {
		const struct graft_xid_line *known = &health->known[i].line;

		if (known->sequence == line->sequence && known->number == line->number &&
		    graft_xid_is_same_device(known, line))
			return health->known[i].place;
	}
	return place_of_line(health, line);
}

static void save_health(const struct health *health)
{
	if (health->options.state_folder && (health->numbered || health->counted))
		health_file_write(health->options.state_folder, health, health->options.log);
}

/* --- the log --- */

static void take_fault(struct health *health, struct graft_xid_line *line)
{
	line->sequence = health->sequence;
	if (!graft_xid_matters(&health->rules, line->number) || is_marked(health, line) ||
	    has_fault(health, HEALTH_XID, line))
		return;
	push_fault(health,
		   &(struct health_fault){ .cause = HEALTH_XID, .line = *line, .place = place_of_fault(health, line) });
}

static void take_line(struct health *health, const char *text)
{
	struct graft_xid_line line = graft_xid_parse(text);

	if (health->counted)
		health->sequence++;
	else if (line.sequence > 0)
		health->sequence = line.sequence;
	health->n_xids += line.kind == GRAFT_XID_FAULT;
	if (health->options.loaded && (line.kind == GRAFT_XID_LOADED || line.kind == GRAFT_XID_RECOVERED))
		health->options.loaded(health->options.arg);
	switch (line.kind) {
	case GRAFT_XID_NOTHING:
		break;
	case GRAFT_XID_FAULT:
		take_fault(health, &line);
		break;
	case GRAFT_XID_RECOVERED:
		(void)end_logged(health, &line, HEALTH_RESET);
		break;
	case GRAFT_XID_LOADED:
		(void)end_logged(health, NULL, HEALTH_LOADED);
		end_flood(health, HEALTH_LOADED);
		break;
	case GRAFT_XID_FOUND:
		(void)end_logged(health, &line, HEALTH_FOUND);
		break;
	}
}

/* Lines that are too long are read to their end; only their beginning matters. */
static void take_bytes(struct health *health, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			health->line[health->n_line] = '\0';
			take_line(health, health->line);
			health->n_line = 0;
		} else if (health->n_line < sizeof(health->line) - 1) {
			health->line[health->n_line++] = bytes[i];
		}
	}
}

static void read_log(struct health *health)
{
	char bytes[8192];

	while (health->log_fd >= 0) {
		ssize_t n = read(health->log_fd, bytes, sizeof(bytes));

		/* EPIPE: records were overwritten before they were read; the next one follows. */
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		take_bytes(health, bytes, (size_t)n);
	}
}

/*
 * Reports several changes once, so that callers see the final state; the log and the counters have
 * the steps.
 */
static void report_changes(struct health *health, uint64_t before)
{
	if (health->n_faults > 0 && !health->look.link)
		graft_loop_set_timer(health->options.loop, &health->look, LOOK_MS);
	if (health->n_faults == 0)
		graft_loop_clear_timer(&health->look);
	if (health->n_changes == before)
		return;
	save_health(health);
	health->options.changed(health->options.arg);
}

/* --- what is there --- */

/* The entry for a GPU as a whole. */
static bool line_of_gpu(const struct graft_gpu *gpu, struct graft_xid_line *ret_line)
{
	struct graft_pci_address address;

	if (!gpu->bus_id || !graft_pci_parse(gpu->bus_id, &address))
		return false;
	*ret_line = (struct graft_xid_line){ .domain = address.domain, .bus = address.bus, .device = address.device };
	return true;
}

/* Sets or ends a fault of a GPU. */
static void set_fault(struct health *health, const struct graft_xid_line *gpu, enum health_cause cause, bool failed)
{
	for (size_t i = health->n_faults; i > 0; i--) {
		if (health->faults[i - 1].cause != cause || !graft_xid_is_same_gpu(&health->faults[i - 1].line, gpu))
			continue;
		if (failed)
			return;
		drop_fault(health, i - 1, HEALTH_RETURNED);
	}
	if (failed)
		push_fault(health, &(struct health_fault){ .cause = cause, .line = *gpu });
}

/*
 * Returns whether the driver has released a GPU and taken it again, or the kernel has removed and
 * found it.
 */
static bool is_another_place(const struct health_place *a, const struct health_place *b)
{
	if (a->bound != 0 && b->bound != 0)
		return a->bound != b->bound;
	return a->procfs != b->procfs && b->procfs != 0;
}

static void look_at_gpu(struct health *health, size_t i)
{
	const struct graft_gpu *gpu = &health->inventory->gpus[i];
	const struct health_gpu *had = &health->gpus[i];
	struct gpu_presence now;
	struct graft_xid_line line;

	if (!line_of_gpu(gpu, &line))
		return;
	now = gpu_presence_look(health->inventory, gpu, health->options.sys_root);
	set_fault(health, &line, HEALTH_PCI, had->had_pci && !now.pci);
	set_fault(health, &line, HEALTH_DRIVER, had->had_procfs && !now.procfs);
	set_fault(health, &line, HEALTH_NODE, had->had_node && !now.node);
	for (size_t k = 0; k < health->n_faults; k++) {
		struct health_fault *fault = &health->faults[k];

		if (fault->cause != HEALTH_XID || !graft_xid_is_same_gpu(&fault->line, &line))
			continue;
		/* It was absent for a while: the GPU that comes back counts as another one. */
		if ((had->had_pci && !now.pci) || (had->had_procfs && !now.procfs))
			fault->place = (struct health_place){ .bound = 0 };
		else if (is_another_place(&fault->place, &now.place) && end_and_mark(health, &line, HEALTH_BOUND))
			break;
	}
}

static void look_at_gpus(struct health *health)
{
	for (size_t i = 0; !health->rules.none && i < count_gpus(health); i++)
		look_at_gpu(health, i);
}

void health_look(struct health *health)
{
	uint64_t before = health->n_changes;

	look_at_gpus(health);
	report_changes(health, before);
}

static void look_at_gpus_again(void *arg)
{
	health_look(arg);
}

static const struct health_fault *find_logged(const struct health *health, const char *bus_id)
{
	for (size_t i = 0; i < health->n_faults; i++) {
		const struct health_fault *fault = &health->faults[i];

		if (fault->cause == HEALTH_XID && (!bus_id || graft_xid_is_of(&fault->line, bus_id)))
			return fault;
	}
	return NULL;
}

bool health_clear(struct health *health, const char *bus_id)
{
	uint64_t before = health->n_changes;
	const struct health_fault *fault;

	while ((fault = find_logged(health, bus_id)))
		(void)end_and_mark(health, &fault->line, HEALTH_CLEARED);
	if (!bus_id)
		end_flood(health, HEALTH_CLEARED);
	report_changes(health, before);
	return health->n_changes > before;
}

/* --- what NVML reports --- */

static bool line_of_report(const struct graft_nvml_report *report, struct graft_xid_line *ret_line)
{
	struct graft_pci_address address;

	if (!graft_pci_parse(report->text, &address))
		return false;
	*ret_line = (struct graft_xid_line){ .domain = address.domain, .bus = address.bus, .device = address.device };
	return true;
}

/*
 * An Xid from NVML has no log sequence number, so marks do not apply to it. The log reports how it
 * ends, and what GRAFT_XID_RECOVERY means.
 */
static void take_nvml_xid(struct health *health, struct graft_xid_line *line, const struct graft_nvml_report *report)
{
	health->n_nvml_xids++;
	line->kind = GRAFT_XID_FAULT;
	line->number = report->xid;
	line->has_instance = report->has_instance;
	line->gi = report->gi;
	line->ci = report->ci;
	line->sequence = health->sequence;
	/* The log may report more about it, such as its end. */
	read_log(health);
	if (line->number == GRAFT_XID_RECOVERY || !graft_xid_matters(&health->rules, line->number) ||
	    has_fault(health, HEALTH_XID, line))
		return;
	graft_info(health->options.log, "NVML reports Xid %u of GPU %s", report->xid, report->text);
	push_fault(health,
		   &(struct health_fault){ .cause = HEALTH_XID, .line = *line, .place = place_of_line(health, line) });
}

void health_take_report(struct health *health, const struct graft_nvml_report *report)
{
	uint64_t before = health->n_changes;
	struct graft_xid_line line;

	if (!line_of_report(report, &line) || !find_gpu_of_line(health, &line))
		return;
	switch (report->kind) {
	case GRAFT_NVML_REPORT_XID:
		take_nvml_xid(health, &line, report);
		break;
	case GRAFT_NVML_REPORT_LOST:
	case GRAFT_NVML_REPORT_ANSWERS:
		if (!health->rules.none)
			set_fault(health, &line, HEALTH_NVML, report->kind == GRAFT_NVML_REPORT_LOST);
		break;
	case GRAFT_NVML_REPORT_FAILURE:
		break;
	}
	report_changes(health, before);
}

void health_forget_nvml(struct health *health)
{
	uint64_t before = health->n_changes;

	for (size_t i = health->n_faults; i > 0; i--) {
		if (health->faults[i - 1].cause == HEALTH_NVML)
			drop_fault(health, i - 1, HEALTH_UNCHECKED);
	}
	report_changes(health, before);
}

/* --- begin and end --- */

static void log_ready(void *arg, short events)
{
	struct health *health = arg;
	uint64_t before = health->n_changes;
	char note[sizeof(struct inotify_event) + NAME_MAX + 1];

	(void)events;
	if (health->watch.fd != health->log_fd && read(health->watch.fd, note, sizeof(note)) < 0)
		return;
	read_log(health);
	report_changes(health, before);
}

/* A regular file is always readable; inotify reports when there is more to read. */
static int watch_for_changes(const char *path)
{
	auto_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY) < 0)
		return -1;
	return TAKE_FD(fd);
}

static void open_log(struct health *health, const char *path)
{
	const struct graft_log *log = health->options.log;
	struct stat st = { .st_mode = 0 };
	int flags = O_CLOEXEC | O_NONBLOCK;

	/* A FIFO is held open for writing as well, so that it does not end with each writer. */
	flags |= stat(path, &st) == 0 && S_ISFIFO(st.st_mode) ? O_RDWR : O_RDONLY;
	health->log_fd = open(path, flags);
	if (health->log_fd < 0) {
		graft_warn(log, "GPU failures in the kernel log are not detected: cannot open %s: %s", path,
			   strerror(errno));
		return;
	}
	/* A FIFO cannot be read again; the records of a file have the numbers of its lines. */
	health->numbered = !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode);
	health->counted = S_ISREG(st.st_mode);
	health->watch.fd = S_ISREG(st.st_mode) ? watch_for_changes(path) : health->log_fd;
	if (health->watch.fd < 0 || graft_loop_watch(health->options.loop, &health->watch, NULL) < 0)
		graft_warn(log, "GPU failures in the kernel log are not detected: cannot watch %s", path);
}

void health_begin(struct health *health, const struct health_options *options)
{
	*health = (struct health){ .options = *options, .log_fd = -1 };
	health->watch = (struct graft_loop_watch){ .fd = -1, .events = POLLIN, .ready = log_ready, .arg = health };
	health->look = (struct graft_loop_timer){ .due = look_at_gpus_again, .arg = health };
	health->options.kernel_log = NULL;
	if (options->state_folder)
		health_file_read(options->state_folder, health, options->log);
	if (options->kernel_log)
		open_log(health, options->kernel_log);
}

/*
 * Records what of each GPU exists now. A part whose absence is a known fault counts as having
 * existed.
 */
static void note_presence(struct health *health)
{
	for (size_t i = 0; i < count_gpus(health); i++) {
		const struct graft_gpu *gpu = &health->inventory->gpus[i];
		const struct gpu_presence now = gpu_presence_look(health->inventory, gpu, health->options.sys_root);
		struct graft_xid_line line = { .number = 0 };
		bool known = line_of_gpu(gpu, &line);

		health->gpus[i] = (struct health_gpu){
			.had_pci = now.pci || (known && has_fault(health, HEALTH_PCI, &line)),
			.had_procfs = now.procfs || (known && has_fault(health, HEALTH_DRIVER, &line)),
			.had_node = now.node || (known && has_fault(health, HEALTH_NODE, &line)),
		};
	}
}

void health_configure(struct health *health, const struct graft_xid_rules *rules,
		      const struct graft_inventory *inventory)
{
	uint64_t before = health->n_changes;

	health->rules = *rules;
	health->inventory = inventory;
	for (size_t i = health->n_faults; i > 0; i--) {
		const struct health_fault *fault = &health->faults[i - 1];

		/* A missing GPU is no longer in the inventory, or will be found missing again. */
		if (fault->cause == HEALTH_XID ? !graft_xid_matters(rules, fault->line.number)
					       : rules->none || !find_gpu_of_line(health, &fault->line))
			drop_fault(health, i - 1, HEALTH_UNCHECKED);
	}
	note_presence(health);
	read_log(health);
	look_at_gpus(health);
	/* From here on the file is up to date. */
	health->n_known = 0;
	report_changes(health, before);
}

void health_done(struct health *health)
{
	graft_loop_forget(health->options.loop, &health->watch);
	graft_loop_clear_timer(&health->look);
	if (health->watch.fd >= 0 && health->watch.fd != health->log_fd)
		(void)close(health->watch.fd);
	if (health->log_fd >= 0)
		(void)close(health->log_fd);
	health->watch.fd = health->log_fd = -1;
}

const struct health_fault *health_find(const struct health *health, const char *bus_id, bool mig, uint32_t gi,
				       uint32_t ci)
{
	static const struct health_fault flood = { .cause = HEALTH_TABLE };

	for (size_t i = 0; i < health->n_faults; i++) {
		const struct graft_xid_line *line = &health->faults[i].line;

		if (!graft_xid_is_of(line, bus_id))
			continue;
		if (!line->has_instance || !mig || (line->gi == gi && line->ci == ci))
			return &health->faults[i];
	}
	return health->flooded && bus_id ? &flood : NULL;
}
