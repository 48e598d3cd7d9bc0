/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_show: nvidia-ctk lease list, explain, history and doctor: what is lent, to whom, and what
 * is wrong. Any user may call them; only `doctor --repair` changes anything.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "cli/ctk/lease_command.h"
#include "formats/json/json.h"
#include "lease/lease_host.h"
#include "lease/lease_log.h"
#include "lease/lease_look.h"
#include "lease/lease_mps.h"
#include "lease/lease_state.h"
#include "lease/lease_take.h"

#define ROUND_MAX ((size_t)64 << 20)

/* Configuration, host and table of a command that only reads. */
struct view {
	struct ctk *ctk;
	struct graft_config config;
	struct graft_lendable host;
	struct graft_lease_table table;
};

static int open_view(struct ctk *ctk, bool change, struct view *view, struct graft_error *err)
{
	struct graft_lease_look look;

	*view = (struct view){ .ctk = ctk, .table = GRAFT_LEASE_TABLE_INIT };
	if (lease_load_config(ctk, &view->config, err) < 0 ||
	    graft_lease_host_read(&view->config, NULL, &ctk->waiting, ctk->arena, &view->host, err) < 0 ||
	    graft_lease_look_first(&view->config, NULL, NULL, ctk->arena, &view->host, &look, err) < 0 ||
	    graft_lease_table_open(&view->table, view->config.leases.directory, change, ctk->arena, err) < 0)
		return -1;
	return graft_lease_look_at(&look, &view->table, &view->host, err);
}

/* ---- list ---- */

/* A row for each part of the GPU that the lease holds. */
static void add_lease_rows(const struct view *view, const struct graft_lendable_gpu *gpu,
			   const struct graft_lease *lease, struct graft_buffer *out)
{
	auto_buffer struct graft_buffer holder = { .max = 512 };

	graft_lease_describe(lease, view->table.now.time, &holder);
	for (size_t i = 0; i < lease->n_slots; i++) {
		const struct graft_lease_slot *slot = &lease->slots[i];

		if (strcmp(slot->gpu, gpu->uuid) != 0)
			continue;
		graft_buffer_printf(out, "%-4u held   %s  %s", gpu->index, lease->id, graft_buffer_text(&holder));
		if (lease->what)
			graft_buffer_printf(out, "  %s", lease->what);
		if (slot->mig)
			graft_buffer_printf(out, "  %s", slot->mig);
		if (slot->replica > 0)
			graft_buffer_printf(out, "  slot %u", slot->replica);
		graft_buffer_char(out, '\n');
	}
}

static uint32_t count_free_slots(const struct view *view, const struct graft_lendable_gpu *gpu)
{
	return gpu->uuid ? graft_lease_free_slots(view->table.leases, view->table.n_leases, gpu) : 0;
}

/* For a shared GPU: how much of it is free, and what sharing means. */
static void add_shared_row(const struct view *view, const struct graft_lendable_gpu *gpu, struct graft_buffer *out)
{
	graft_buffer_printf(
	    out, "%-4u shared %u of %u slots free; %s\n", gpu->index, count_free_slots(view, gpu), gpu->replicas,
	    view->host.mps ? "MPS: a fatal fault of one program ends all of them" : "time-sliced: no isolation");
}

static void add_gpu_rows(const struct view *view, const struct graft_lendable_gpu *gpu, struct graft_buffer *out)
{
	const struct graft_lease *leases = view->table.leases;
	size_t n = view->table.n_leases;
	size_t i = gpu->uuid ? graft_lease_next_of_gpu(leases, n, 0, gpu->uuid) : n;
	const char *why_not = gpu->why_not && i < n ? NULL : gpu->why_not ? gpu->why_not : gpu->ill;

	if (gpu->replicas > 0 && !gpu->mig && !why_not)
		add_shared_row(view, gpu, out);
	else if (why_not)
		graft_buffer_printf(out, "%-4u not lent: %s\n", gpu->index, why_not);
	else if (i == n && !gpu->in_use)
		graft_buffer_printf(out, "%-4u free\n", gpu->index);
	if (i == n && gpu->in_use)
		graft_buffer_printf(out, "%-4u used   -             %s, without a lease\n", gpu->index, gpu->in_use);
	for (; i < n; i = graft_lease_next_of_gpu(leases, n, i + 1, gpu->uuid))
		add_lease_rows(view, gpu, &leases[i], out);
}

static void add_lease_table(const struct view *view, struct graft_buffer *out)
{
	graft_buffer_string(out, "GPU  STATE  LEASE         HOLDER\n");
	for (size_t i = 0; i < view->host.n_gpus; i++)
		add_gpu_rows(view, &view->host.gpus[i], out);
	for (size_t i = 0; i < view->table.n_tickets; i++) {
		const struct graft_lease *ticket = &view->table.tickets[i];

		graft_buffer_printf(out, "-    waits  %s  ", ticket->id);
		graft_lease_describe(ticket, view->table.now.time, out);
		graft_buffer_printf(out, "  %s%s\n", ticket->claim, ticket->urgent ? "  urgent" : "");
	}
}

static void add_json_gpu(const struct view *view, const struct graft_lendable_gpu *gpu, struct graft_buffer *out)
{
	size_t n = view->table.n_leases, i = gpu->uuid ? 0 : n;
	const char *separator = "";

	graft_buffer_printf(out, "{\"index\": %u, \"uuid\": ", gpu->index);
	graft_json_quote(out, gpu->uuid ? gpu->uuid : "");
	graft_buffer_string(out, ", \"model\": ");
	graft_json_quote(out, gpu->model ? gpu->model : "");
	if (gpu->why_not) {
		graft_buffer_string(out, ", \"not_lent\": ");
		graft_json_quote(out, gpu->why_not);
	}
	if (gpu->ill)
		graft_buffer_printf(out, ", \"failed\": \"%s\"", gpu->ill);
	if (graft_lease_user_of(view->table.leases, n, gpu)) {
		graft_buffer_string(out, ", \"in_use\": ");
		graft_json_quote(out, gpu->in_use);
	}
	if (gpu->replicas > 0)
		graft_buffer_printf(out, ", \"sharing\": \"%s\", \"slots\": %u, \"free\": %u",
				    view->host.mps ? "mps" : "time-slice", gpu->replicas, count_free_slots(view, gpu));
	graft_buffer_string(out, ", \"leases\": [");
	for (; (i = graft_lease_next_of_gpu(view->table.leases, n, i, gpu->uuid)) < n; i++) {
		graft_buffer_printf(out, "%s\"%s\"", separator, view->table.leases[i].id);
		separator = ", ";
	}
	graft_buffer_string(out, "]}");
}

static void add_lease_json(const struct view *view, struct graft_buffer *out)
{
	graft_buffer_string(out, "{\"gpus\": [");
	for (size_t i = 0; i < view->host.n_gpus; i++) {
		graft_buffer_string(out, i > 0 ? ",\n" : "\n");
		add_json_gpu(view, &view->host.gpus[i], out);
	}
	graft_buffer_string(out, "],\n\"leases\": [");
	for (size_t i = 0; i < view->table.n_leases; i++) {
		graft_buffer_string(out, i > 0 ? "," : "");
		graft_lease_write(&view->table.leases[i], out);
	}
	graft_buffer_string(out, "],\n\"waiting\": [");
	for (size_t i = 0; i < view->table.n_tickets; i++) {
		graft_buffer_string(out, i > 0 ? "," : "");
		graft_lease_write(&view->table.tickets[i], out);
	}
	graft_buffer_string(out, "],\n\"damaged\": [");
	for (size_t i = 0; i < view->table.n_damages; i++) {
		graft_buffer_string(out, i > 0 ? ", " : "");
		graft_json_quote(out, view->table.damages[i].name);
	}
	graft_buffer_string(out, "]}\n");
}

static void warn_of_damages(const struct view *view)
{
	for (size_t i = 0; i < view->table.n_damages; i++)
		graft_warn(&view->ctk->log,
			   "%s/held/%s is damaged (%s): nothing is lent; see 'nvidia-ctk lease doctor'",
			   view->table.directory, view->table.damages[i].name, view->table.damages[i].why);
}

/* What of the text fits the terminal, over what is there. Each line is letters of one column. */
static void fit_screen(const struct graft_buffer *text, struct graft_buffer *out)
{
	const char *line = graft_buffer_text(text), *end;
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
		size = (struct winsize){ .ws_row = USHRT_MAX, .ws_col = USHRT_MAX };
	/* Erased first: behind its last column a terminal would erase that column. */
	graft_buffer_string(out, "\033[H");
	for (unsigned int row = 1; row < size.ws_row && *line != '\0'; row++) {
		end = strchrnul(line, '\n');
		graft_buffer_string(out, "\033[K");
		graft_buffer_add(out, line, (size_t)(end - line) < size.ws_col ? (size_t)(end - line) : size.ws_col);
		graft_buffer_string(out, "\n");
		line = *end == '\n' ? end + 1 : end;
	}
	graft_buffer_string(out, "\033[J");
	out->failed |= text->failed;
}

/* Prints the table once; `screen`: over what the terminal shows. */
static int print_list(struct ctk *ctk, const struct lease_options *given, bool screen, struct graft_error *err)
{
	struct graft_buffer out = { .max = 0 }, fitting = { .max = 0 };
	struct view view;
	int rc;

	if (open_view(ctk, false, &view, err) < 0) {
		graft_lease_table_close(&view.table);
		return -1;
	}
	if (given->json)
		add_lease_json(&view, &out);
	else
		add_lease_table(&view, &out);
	if (screen) {
		fit_screen(&out, &fitting);
		graft_buffer_done(&out);
		out = fitting;
	}
	/* On a screen it is below the table, which would cover it. */
	if (!screen)
		warn_of_damages(&view);
	rc = ctk_print(ctk, &out);
	if (screen)
		warn_of_damages(&view);
	graft_lease_table_close(&view.table);
	return rc;
}

/* Repeats until the user ends it. Each round has memory of its own. */
static int watch_list(struct ctk *ctk, const struct lease_options *given, struct graft_error *err)
{
	const struct timespec pause = { .tv_sec = 1 };
	struct graft_arena *arena = ctk->arena;
	int status;

	do {
		ctk->arena = graft_arena_new(ROUND_MAX);
		status = ctk->arena ? print_list(ctk, given, !given->json && isatty(STDOUT_FILENO) == 1, err) : 1;
		(void)graft_arena_free(ctk->arena);
	} while (status == 0 && nanosleep(&pause, NULL) == 0);
	ctk->arena = arena;
	return status;
}

static int lease_list(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;

	return given->watch ? watch_list(given->base.ctk, given, err) : print_list(given->base.ctk, given, false, err);
}

/* clang-format off */
static const struct graft_option list_options[] = {
	LEASE_JSON,
	{ .name = "watch", .letter = 'w', FLAG, AT(watch), .help = "Print the list again every second until interrupted" },
};
/* clang-format on */
const struct graft_command ctk_lease_list = {
	CTK_COMMAND,
	.name = "list",
	.summary = "List the GPUs of this host, and who holds them",
	GRAFT_OPTIONS(list_options),
	CTK_WORK(lease_list, struct lease_options),
};

/* ---- metrics ---- */

static void add_family(struct graft_buffer *out, const char *name, const char *help)
{
	graft_buffer_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void add_owner_metrics(const struct view *view, struct graft_buffer *out)
{
	const struct graft_lease *leases = view->table.leases;

	add_family(out, "graft_lease_owner_slots", "GPUs and MIG devices that a user holds.");
	for (size_t i = 0; i < view->table.n_leases; i++) {
		size_t first = 0;

		while (!graft_lease_has_same_owner(&leases[first], &leases[i]))
			first++;
		if (first < i)
			continue;
		if (leases[i].owner)
			graft_buffer_printf(out, "graft_lease_owner_slots{owner=\"%s\"}", leases[i].owner);
		else
			graft_buffer_printf(out, "graft_lease_owner_slots{uid=\"%u\"}", leases[i].uid);
		graft_buffer_printf(out, " %u\n",
				    graft_lease_count_held(leases, view->table.n_leases, &leases[i], false));
	}
}

static void add_state_metrics(const struct view *view, struct graft_buffer *out)
{
	add_family(out, "graft_lease_gpu_failed", "The GPU is not lent, because it has failed.");
	for (size_t i = 0; i < view->host.n_gpus; i++)
		graft_buffer_printf(out, "graft_lease_gpu_failed{gpu=\"%u\",uuid=\"%s\"} %d\n",
				    view->host.gpus[i].index, view->host.gpus[i].uuid ? view->host.gpus[i].uuid : "",
				    view->host.gpus[i].ill != NULL);
}

static void add_slot_metrics(const struct view *view, struct graft_buffer *out)
{
	add_family(out, "graft_lease_gpu_free_slots", "Slots of a shared GPU that are free.");
	for (size_t i = 0; i < view->host.n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &view->host.gpus[i];

		if (gpu->replicas > 0)
			graft_buffer_printf(out,
					    "graft_lease_gpu_free_slots{gpu=\"%u\",uuid=\"%s\",sharing=\"%s\"} %u\n",
					    gpu->index, gpu->uuid ? gpu->uuid : "",
					    view->host.mps ? "mps" : "time-slice", count_free_slots(view, gpu));
	}
}

/* The text that node_exporter's textfile collector reads. */
static void add_lease_metrics(const struct view *view, struct graft_buffer *out)
{
	const struct graft_lease *leases = view->table.leases;

	add_family(out, "graft_lease_gpu_leases", "Leases that hold the GPU or a MIG device of it.");
	for (size_t i = 0; i < view->host.n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &view->host.gpus[i];
		size_t n = 0, n_leases = gpu->uuid ? view->table.n_leases : 0;

		for (size_t at = 0; (at = graft_lease_next_of_gpu(leases, n_leases, at, gpu->uuid)) < n_leases; at++)
			n++;
		graft_buffer_printf(out, "graft_lease_gpu_leases{gpu=\"%u\",uuid=\"%s\"} %zu\n", gpu->index,
				    gpu->uuid ? gpu->uuid : "", n);
	}
	add_state_metrics(view, out);
	add_slot_metrics(view, out);
	add_owner_metrics(view, out);
	add_family(out, "graft_lease_waiting", "Processes that wait for a lease.");
	graft_buffer_printf(out, "graft_lease_waiting %zu\n", view->table.n_tickets);
	add_family(out, "graft_lease_damaged", "Damaged files, which stop all lending.");
	graft_buffer_printf(out, "graft_lease_damaged %zu\n", view->table.n_damages);
}

static int lease_metrics(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;
	auto_buffer struct graft_buffer out = { .max = 0 };
	struct view view;
	int rc = open_view(given->base.ctk, false, &view, err);

	if (rc == 0)
		add_lease_metrics(&view, &out);
	graft_lease_table_close(&view.table);
	if (rc < 0)
		return -1;
	if (!given->output)
		return ctk_print(given->base.ctk, &out);
	if (graft_buffer_failed(&out))
		return graft_fail_memory(err);
	return graft_host_file_write(given->output, out.bytes, out.length, 0644, err);
}

/* clang-format off */
static const struct graft_option metrics_options[] = {
	{ .name = "output", TEXT, AT(output), .value_name = "FILE",
	  .help = "Write to this file, replacing it atomically (default standard output)" },
};
/* clang-format on */
const struct graft_command ctk_lease_metrics = {
	CTK_COMMAND,
	.name = "metrics",
	.summary = "Print how much each user holds, as text for node_exporter's textfile collector",
	GRAFT_OPTIONS(metrics_options),
	CTK_WORK(lease_metrics, struct lease_options),
};

/* ---- explain ---- */

static int lease_explain(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;
	struct ctk *ctk = given->base.ctk;
	struct graft_buffer out = { .max = 0 };
	struct graft_lease_state state;
	struct graft_config config;
	struct graft_claim claim;
	struct graft_lease lease;

	if (given->base.argc != 1)
		return graft_fail(err, GRAFT_INVALID, 0, "one claim is needed, such as any:2");
	if (graft_claim_parse(given->base.argv[0], ctk->arena, &claim, err) < 0 ||
	    lease_load_config(ctk, &config, err) < 0 ||
	    graft_lease_state_look(&config, &claim, &ctk->waiting, ctk->arena, &state, err) < 0)
		return -1;
	state.uid = lease_owner();
	if (graft_lease_state_choose(&state, &claim, ctk->arena, &lease, err) < 0 ||
	    graft_lease_check_named(&lease, err) < 0)
		return -1;
	for (size_t i = 0; i < lease.n_slots; i++) {
		const struct graft_lease_slot *slot = &lease.slots[i];
		const char *name = slot->mig ? slot->mig : slot->gpu;
		const struct graft_lendable_mig *mig;
		const struct graft_lendable_gpu *gpu = graft_lendable_find(&state.host, name, &mig);

		if (given->json) {
			graft_buffer_printf(&out, "%s\"%s\"%s", i == 0 ? "[" : ", ", name,
					    i + 1 == lease.n_slots ? "]\n" : "");
			continue;
		}
		if (gpu)
			graft_buffer_printf(&out, "GPU %u: ", gpu->index);
		graft_buffer_string(&out, name);
		if (slot->replica > 0)
			graft_buffer_printf(&out, ", slot %u", slot->replica);
		graft_buffer_char(&out, '\n');
	}
	return ctk_print(ctk, &out);
}

static const struct graft_option explain_options[] = { LEASE_JSON };
const struct graft_command ctk_lease_explain = {
	LEASE_COMMAND("CLAIM"),
	.name = "explain",
	.summary = "Show what a claim would get now, or why it would get nothing; takes nothing",
	GRAFT_OPTIONS(explain_options),
	CTK_WORK(lease_explain, struct lease_options),
};

/* ---- history ---- */

static void add_json_word(const char *name, const char *text, struct graft_buffer *out)
{
	graft_buffer_printf(out, ", \"%s\": ", name);
	graft_json_quote(out, text);
}

/* What was taken: "any:2 GPU-a,GPU-b container x", or "process 7" at the end. */
static void add_taken_json(char *rest, struct graft_buffer *out)
{
	const char *separator = "", *device, *kind;
	char *devices;

	add_json_word("claim", strsep(&rest, " "), out);
	devices = strsep(&rest, " ");
	graft_buffer_string(out, ", \"devices\": [");
	while ((device = strsep(&devices, ",")) != NULL) {
		graft_buffer_string(out, separator);
		graft_json_quote(out, device);
		separator = ", ";
	}
	graft_buffer_char(out, ']');
	kind = strsep(&rest, " ");
	if (kind && rest && strcmp(kind, "container") == 0)
		add_json_word(kind, rest, out);
	else if (kind && rest)
		graft_buffer_printf(out, ", \"process\": %lu", strtoul(rest, NULL, 10));
}

/* A line of the log, which is changed. One that a full disk has cut short is left out. */
static void add_event_json(char *line, struct graft_buffer *out)
{
	const char *date = strsep(&line, " "), *event = strsep(&line, " "), *id = strsep(&line, " ");
	const char *mark = strsep(&line, " "), *owner = strsep(&line, " ");

	if (!line)
		return;
	graft_buffer_printf(out, "%s\n{\"date\": %lld", out->length > 1 ? "," : "", strtoll(date, NULL, 10));
	add_json_word("event", event, out);
	add_json_word("lease", id, out);
	if (strcmp(mark, "owner") == 0)
		add_json_word(mark, owner, out);
	else
		graft_buffer_printf(out, ", \"uid\": %lu", strtoul(owner, NULL, 10));
	if (strcmp(event, "taken") == 0)
		add_taken_json(line, out);
	else
		add_json_word("why", line, out);
	graft_buffer_char(out, '}');
}

static int lease_history(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;
	const char *owner = given->owner;
	struct ctk *ctk = given->base.ctk;
	struct graft_buffer out = { .max = 0 };
	const char *text, *word = NULL, *next;
	struct graft_config config;

	if (lease_load_config(ctk, &config, err) < 0)
		return -1;
	errno = 0;
	text = graft_lease_log_read(config.leases.directory, 0, ctk->arena);
	if (text && text[0] == '\0' && errno != 0 && errno != ENOENT)
		return graft_fail_errno(err, errno, "%s/" GRAFT_LEASE_LOG, config.leases.directory);
	if (owner)
		word = graft_arena_printf(ctk->arena, " %s %s ", graft_lease_owner_is_valid(owner) ? "owner" : "uid",
					  owner);
	if (!text || (owner && !word))
		return graft_fail_memory(err);
	graft_buffer_string(&out, given->json ? "[" : "");
	for (; *text != '\0'; text = next) {
		const char *end = strchrnul(text, '\n');
		char *line;

		next = *end == '\n' ? end + 1 : end;
		if (word && !memmem(text, (size_t)(end - text), word, strlen(word)))
			continue;
		line = given->json ? graft_arena_strndup(ctk->arena, text, (size_t)(end - text)) : NULL;
		if (line)
			add_event_json(line, &out);
		else if (!given->json)
			graft_buffer_add(&out, text, (size_t)(next - text));
	}
	graft_buffer_string(&out, given->json ? "\n]\n" : "");
	return graft_arena_failed(ctk->arena) ? graft_fail_memory(err) : ctk_print(ctk, &out);
}

/* clang-format off */
static const struct graft_option history_options[] = {
	LEASE_JSON,
	{ .name = "owner", TEXT, AT(owner), .value_name = "OWNER", .help = "Only leases of this user id or owner" },
};
/* clang-format on */
const struct graft_command ctk_lease_history = {
	CTK_COMMAND,
	.name = "history",
	.summary = "Print what was taken and freed, oldest first: seconds since 1970, event, lease, owner",
	GRAFT_OPTIONS(history_options),
	CTK_WORK(lease_history, struct lease_options),
};

/* ---- doctor ---- */

/* "GPU 0, 3": the GPUs that the process has open; nothing if they do not belong to this host. */
static void add_open_gpus(const struct view *view, const struct graft_lease_user *user, struct graft_buffer *out)
{
	const char *separator = "GPU ";

	for (size_t i = 0; i < view->host.n_gpus; i++) {
		const struct graft_lendable_gpu *gpu = &view->host.gpus[i];

		if (!graft_lease_user_has(user, gpu->major, gpu->minor))
			continue;
		graft_buffer_printf(out, "%s%u", separator, gpu->index);
		separator = ", ";
	}
	if (separator[0] == 'G')
		graft_buffer_string(out, "a GPU");
}

/* Lists the processes that have a GPU open without a lease. */
static int find_strangers(const struct view *view, struct graft_buffer *out, size_t *ret_n, struct graft_error *err)
{
	struct graft_arena *arena = view->ctk->arena;
	struct graft_lease_user *users;
	uint32_t *pids;
	size_t n, n_pids;

	*ret_n = 0;
	if (graft_lease_users_read(&view->table.now.root, arena, &users, &n, err) < 0 ||
	    graft_lease_users_holders(&view->table.now, view->table.leases, view->table.n_leases, arena, &pids, &n_pids,
				      err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (graft_lease_user_is_of(&users[i], pids, n_pids))
			continue;
		graft_buffer_string(out, "warning: ");
		graft_lease_user_describe(&users[i], out);
		graft_buffer_string(out, users[i].computes ? " uses " : " has open, and does not compute on, ");
		add_open_gpus(view, &users[i], out);
		graft_buffer_string(out, " without a lease\n");
		(*ret_n)++;
	}
	return 0;
}

/* A damaged file may have been a lease that counts. */
static int repair_table(struct view *view, size_t n_strangers, struct graft_error *err)
{
	if (n_strangers > 0) {
		(void)graft_fail(err, GRAFT_LEASES, 0, "processes use GPUs without a lease, which may be damaged");
		return graft_with_hint(err, "End them or wait for them to end, then repair the table.");
	}
	for (size_t i = 0; i < view->table.n_damages; i++) {
		if (graft_lease_table_repair(&view->table, &view->table.damages[i], err) < 0)
			return -1;
	}
	view->table.n_damages = 0;
	return 0;
}

/* Finds daemons that would not be ended, and compute modes that would not be reset. */
static int look_at_mps(struct view *view, bool repair, struct graft_buffer *out, struct graft_error *err)
{
	struct graft_strings gpus;
	int rc = 0;

	if (graft_lease_mps_abandoned(&view->config, view->ctk->arena, &gpus, err) < 0)
		return -1;
	/* A keeper needs the table. */
	if (repair && gpus.n > 0)
		graft_lease_table_unlock(&view->table);
	for (size_t i = 0; i < gpus.n; i++) {
		graft_buffer_printf(
		    out, "%s: %s: no process supervises MPS: nothing would end it and reset the compute mode\n",
		    repair ? "repair" : "warning", gpus.items[i]);
		if (repair && graft_lease_mps_ensure_keeper(&view->config, gpus.items[i], view->ctk->arena, err) < 0)
			rc = -1;
	}
	return rc;
}

static int lease_doctor(void *target, struct graft_error *err)
{
	const struct lease_options *given = target;
	struct graft_buffer out = { .max = 0 };
	size_t n_strangers = 0;
	struct view view;
	int rc = open_view(given->base.ctk, given->repair, &view, err), status;

	if (rc == 0) {
		graft_buffer_printf(&out, "%s: leases are %s; %zu held\n", view.config.leases.directory,
				    graft_config_lends(&view.config) ? "on" : "off", view.table.n_leases);
		for (size_t i = 0; i < view.table.n_damages; i++)
			graft_buffer_printf(&out, "%s: %s: %s\n", given->repair ? "repair" : "error",
					    view.table.damages[i].name, view.table.damages[i].why);
		rc = find_strangers(&view, &out, &n_strangers, err);
		if (rc == 0 && given->repair && view.table.n_damages > 0)
			rc = repair_table(&view, n_strangers, err);
	}
	if (rc == 0)
		rc = look_at_mps(&view, given->repair, &out, err);
	status = ctk_print(given->base.ctk, &out);
	if (view.table.n_damages > 0)
		status = 1;
	graft_lease_table_close(&view.table);
	return rc < 0 ? -1 : status;
}

/* clang-format off */
static const struct graft_option doctor_options[] = {
	{ .name = "repair", FLAG, AT(repair), .help = "Remove damaged files, if no process uses a GPU without a lease" },
};
/* clang-format on */
const struct graft_command ctk_lease_doctor = {
	CTK_COMMAND,
	.name = "doctor",
	.summary = "Check the table of leases, and list the processes that use GPUs without a lease",
	GRAFT_OPTIONS(doctor_options),
	CTK_WORK(lease_doctor, struct lease_options),
};
