/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_host: the process that reads the host, and its answer: an error, then an inventory as JSON.
 */
#include "daemon/nri_host.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "apply/dev_char.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "host/discover.h"
#include "kubernetes/kube_facts.h"

#define ANSWER_MAX      ((size_t)32 << 20)
#define HOST_MEMORY     ((size_t)256 << 20)
#define NVML_TIMEOUT_MS 30000
#define SOON_MS         100
#define READ_LIMIT_S    60

/* --- the process --- */

static bool wants_explicit_libraries(const struct graft_config *config)
{
	const struct graft_strings *flags = &config->runtime.jit_feature_flags;

	return graft_is_in(flags->items, flags->n, "enable-explicit-driver-libraries");
}

/* Everything that a container may ask for. */
static unsigned int needs_of_all(const struct graft_config *config)
{
	unsigned int needs = GRAFT_NEED_ALL | GRAFT_NEED_MANAGEMENT;

	return wants_explicit_libraries(config) ? needs | GRAFT_NEED_EXPLICIT : needs;
}

static bool has_all_uuids(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (!gpu->uuid.value)
			return false;
		for (size_t k = 0; k < gpu->n_mig_devices; k++) {
			if (!gpu->mig_devices[k].uuid.value)
				return false;
		}
	}
	return true;
}

/*
 * NVML is asked only for UUIDs that procfs lacks. Without its answer, devices cannot be named by
 * UUID. What it fills in belongs to the arena.
 */
static int ask_for_uuids(const struct graft_host_options *options, struct graft_inventory *inventory,
			 struct graft_arena *arena, const struct graft_log *log, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_kept_facts kept;

	if (has_all_uuids(inventory) ||
	    graft_kube_facts(options, NULL, GRAFT_KUBE_ASK_UNSETTLED, inventory, arena, &kept, &why) == 0)
		return 0;
	graft_warn(log, "the UUIDs of some devices are unknown: %s", GRAFT_ERROR_TEXT(&why));
	return why.status == GRAFT_NO_MEMORY ? graft_fail_memory(err) : 0;
}

static int discover_host(const struct nri_host *host, struct graft_arena *arena, struct graft_inventory **ret_inventory,
			 struct graft_error *err)
{
	static const struct graft_log quiet = { .max = GRAFT_LOG_ERROR };
	const struct graft_config *config = host->policy->config;
	const char *root = host->policy->driver_root_seen;
	const struct graft_host_options options = { .root = root && root[0] != '\0' ? root : NULL,
						    .nvml_uid = (uid_t)-1,
						    .nvml_gid = (gid_t)-1,
						    .nvml_timeout_ms = NVML_TIMEOUT_MS,
						    .capabilities = GRAFT_CAP_ALL,
						    .gates = (1u << GRAFT_GATE_MAX) - 1u,
						    .log = &quiet };

	if (graft_host_discover(&options, needs_of_all(config), ret_inventory, err) < 0)
		return -1;
	return ask_for_uuids(&options, *ret_inventory, arena, host->log, err);
}

static int discover_and_tell(const void *arg, struct graft_buffer *answer, struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new(HOST_MEMORY);
	struct graft_inventory *inventory = NULL;

	if (!arena)
		return graft_fail_memory(err);
	if (discover_host(arg, arena, &inventory, err) < 0)
		return -1;
	graft_inventory_write(inventory, answer);
	return 0;
}

/* --- its answer --- */

/* When systemd reloads, it revokes containers' access to devices without such a link. */
static void link_nodes(const struct nri_host *host)
{
	const struct graft_inventory *inventory = host->inventory;
	struct graft_dev_char *nodes = calloc(inventory->n_management_nodes + 1, sizeof(*nodes));
	struct graft_error why = { .status = GRAFT_OK };
	size_t n = 0;

	for (size_t i = 0; nodes && i < inventory->n_management_nodes; i++) {
		const struct graft_node *node = &inventory->management_nodes[i];

		if (node->present)
			nodes[n++] =
			    (struct graft_dev_char){ .major = node->major, .minor = node->minor, .path = node->path };
	}
	if (n > 0 && geteuid() == 0 && graft_dev_char_make(nodes, n, host->log, &why) < 0)
		graft_warn(host->log, "%s; containers may lose their GPUs at the next 'systemctl daemon-reload'",
			   why.msg);
	free(nodes);
}

/*
 * Few pods name their devices. The configuration lists who may do so; these are the devices that
 * exist.
 */
static void read_specs(struct nri_host *host)
{
	const struct graft_strings *directories = &host->policy->config->runtime.cdi_spec_dirs;
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_strings kinds = { .n = 0 };

	(void)graft_arena_free(host->arena);
	host->registry = (struct graft_cdi_registry){ .n_specs = 0 };
	host->arena = graft_arena_new(HOST_MEMORY);
	if (!host->arena || graft_nri_kinds(host->policy, host->arena, &kinds, &why) < 0 || kinds.n == 0)
		return;
	if (graft_cdi_registry_read(directories->items, directories->n, kinds.items, kinds.n, NULL, host->log,
				    host->arena, &host->registry, &why) < 0) {
		host->registry = (struct graft_cdi_registry){ .n_specs = 0 };
		graft_warn(host->log, "CDI specifications cannot be read: %s", GRAFT_ERROR_TEXT(&why));
	}
}

static void take_inventory(struct nri_host *host)
{
	struct graft_inventory *inventory = NULL;
	struct graft_error said = { .status = GRAFT_OK };
	const char *answer;
	size_t n;
	int rc = graft_kube_question_take(&host->question, &answer, &n, &said);

	if (rc > 0)
		(void)graft_fail(&said, GRAFT_IO, 0, "the process that reads the host ended without an answer");
	if (rc == 0)
		(void)graft_inventory_read(answer, n, &inventory, &said);
	if (!inventory)
		graft_warn(host->log, "this node has no GPU for containers: %s", GRAFT_ERROR_TEXT(&said));
	else
		graft_info(host->log, "driver %s%s, GPUs: %zu",
			   inventory->driver_version.value ? inventory->driver_version.value : "unknown",
			   inventory->simulated ? " (simulated: there is no real GPU)" : "", inventory->n_gpus);
	host->why = said;
	(void)graft_inventory_free(host->inventory);
	host->inventory = inventory ? inventory : graft_inventory_new();
	host->n_reads++;
	host->known = host->begun;
}

static void read_later(struct nri_host *host, int64_t delay_ms)
{
	if (!host->soon.link || host->soon.at_ms > graft_clock_ms() + delay_ms)
		graft_loop_set_timer(host->loop, &host->soon, delay_ms);
}

static void begin_reader(struct nri_host *host);

static void host_answered(void *arg, short events)
{
	struct nri_host *host = arg;

	(void)events;
	if (!graft_kube_question_read(&host->question))
		return;
	graft_loop_forget(host->loop, &host->watch);
	take_inventory(host);
	graft_kube_question_done(&host->question);
	read_specs(host);
	if (host->inventory)
		link_nodes(host);
	else
		read_later(host, HARDWARE_POLL_MS);
	if (host->asked > host->known && !host->soon.link)
		begin_reader(host);
	host->renewed(host->arg);
}

static int start_reader(struct nri_host *host, struct graft_error *err)
{
	const struct graft_kube_asking asking = { .name = "graft:[host]",
						  .limit_s = host->limit_s > 0 ? host->limit_s : READ_LIMIT_S,
						  .max = ANSWER_MAX,
						  .ask = discover_and_tell,
						  .arg = host };

	if (graft_kube_question_begin(&host->question, &asking, err) < 0)
		return -1;
	host->watch =
	    (struct graft_loop_watch){ .fd = host->question.fd, .events = POLLIN, .ready = host_answered, .arg = host };
	if (graft_loop_watch(host->loop, &host->watch, err) == 0)
		return 0;
	graft_kube_question_done(&host->question);
	return -1;
}

/* Only one reading at a time; the next begins when this one has ended. */
static void begin_reader(struct nri_host *host)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (host->watch.place != 0)
		return;
	graft_loop_clear_timer(&host->soon);
	host->begun = host->asked;
	if (start_reader(host, &err) == 0)
		return;
	graft_warn(host->log, "the host cannot be read: %s", GRAFT_ERROR_TEXT(&err));
	read_later(host, HARDWARE_POLL_MS);
}

uint64_t nri_host_renew(struct nri_host *host)
{
	host->asked++;
	begin_reader(host);
	return host->asked;
}

/* --- events --- */

static void soon_due(void *arg)
{
	(void)nri_host_renew(arg);
}

/* From here on, the known facts are out of date. */
static void driver_noticed(void *arg)
{
	struct nri_host *host = arg;

	host->changed = ++host->asked;
	/* This leads to a reading in any case: `changed` of the hardware may be late. */
	read_later(host, SOON_MS);
}

static void nri_hardware_changed(void *arg)
{
	read_later(arg, 0);
}

static void take_folder_events(struct nri_host *host)
{
	char bytes[4096];

	while (host->folders.fd >= 0 && read(host->folders.fd, bytes, sizeof(bytes)) > 0)
		driver_noticed(host);
}

static void spec_folder_changed(void *arg, short events)
{
	(void)events;
	take_folder_events(arg);
}

/* A directory that does not exist yet is found at the next change of hardware, or at SIGHUP. */
static void watch_folders(struct nri_host *host)
{
	const struct graft_strings *directories = &host->policy->config->runtime.cdi_spec_dirs;

	graft_loop_close(host->loop, &host->folders);
	host->folders = (struct graft_loop_watch){ .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
						   .events = POLLIN,
						   .ready = spec_folder_changed,
						   .arg = host };
	if (host->folders.fd < 0)
		return;
	for (size_t i = 0; i < directories->n && host->policy->config->nri.allowed.n > 0; i++)
		(void)inotify_add_watch(host->folders.fd, directories->items[i],
					IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR);
	(void)graft_loop_watch(host->loop, &host->folders, NULL);
}

void nri_host_begin(struct nri_host *host)
{
	host->question.fd = host->folders.fd = -1;
	host->soon = (struct graft_loop_timer){ .due = soon_due, .arg = host };
	hardware_begin(&host->hardware, host->loop, "/dev", host->log, nri_hardware_changed, host);
	host->hardware.noticed = driver_noticed;
	watch_folders(host);
	(void)nri_host_renew(host);
}

void nri_host_reload(struct nri_host *host)
{
	watch_folders(host);
	host->changed = nri_host_renew(host);
}

bool nri_host_is_known(struct nri_host *host, uint64_t number, struct graft_nri_host *ret_host)
{
	/* Pending events came before the question. */
	hardware_catch_up(&host->hardware);
	take_folder_events(host);
	*ret_host = (struct graft_nri_host){ .inventory = host->inventory, .registry = &host->registry };
	return host->inventory && host->known >= host->changed && host->known >= number;
}

void nri_host_done(struct nri_host *host)
{
	if (!host->soon.due)
		return;
	graft_loop_forget(host->loop, &host->watch);
	graft_kube_question_done(&host->question);
	graft_loop_clear_timer(&host->soon);
	hardware_done(&host->hardware);
	graft_loop_close(host->loop, &host->folders);
	host->inventory = graft_inventory_free(host->inventory);
	host->arena = graft_arena_free(host->arena);
	host->soon.due = NULL;
}
