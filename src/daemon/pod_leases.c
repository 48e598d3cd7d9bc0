/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_leases: the leases of pods are those with the claim GRAFT_LEASE_OF_POD. A check reads the
 * table without its lock, and changes it only if a pod's lease has to be made, kept or removed.
 */
#include "daemon/pod_leases.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/strings.h"
#include "formats/json/json_document.h"
#include "lease/lease_table.h"

#define CHECKPOINT     "kubelet_internal_checkpoint"
#define CHECKPOINT_MAX ((size_t)16 << 20)
#define MEMORY_MAX     ((size_t)256 << 20)
#define LOOK_AGAIN_MS  10000
#define PENDING_MS     300000u  /* how long a lease lasts while its pod has no cgroup yet */
#define RENEW_MS       150000u  /* when less is left, it is renewed */
#define UNUSED_MS      60000u   /* after which the kubelet must have recorded the pod that it is for */
#define WAITS_MS       3600000u /* a pod that has no cgroup by then will never have one */
#define POD_UID_MAX    64u
#define DEPTH_MAX      8u
#define SEARCHED_MAX   4096u

/* A pod of the checkpoint, with those of our devices that it has. */
struct pod {
	const char *uid;
	struct graft_lease_slot slots[GRAFT_LEASE_SLOTS_MAX];
	size_t n_slots;
	struct graft_lease lease; /* the lease that its cgroup holds; without an id: it has no cgroup */
	bool is_written;          /* that lease is in the table */
};

struct pods {
	const struct pod_leases *leases;
	struct graft_arena *arena;
	struct pod *pods;
	size_t n;
	bool is_awaited;   /* a lease of the table waits for its pod's cgroup */
	const char *mount; /* of the hierarchy */
	const char **tops; /* cgroups of all pods: found by a search */
	size_t n_tops, n_searched;
	bool has_searched;
};

/* ---- devices ---- */

static struct graft_lease_slot slot_of_device(const struct pod_offer *offer, const struct graft_kube_device *device)
{
	struct graft_lease_slot slot = { .gpu = NULL };

	if (device->bus_id && device->gpu < offer->inventory->n_gpus)
		slot.gpu = offer->inventory->gpus[device->gpu].uuid.value;
	if (device->mig)
		slot.mig = device->base_id;
	return slot;
}

static bool is_same_slot(const struct graft_lease_slot *a, const struct graft_lease_slot *b)
{
	return strcmp(a->gpu, b->gpu) == 0 && (!a->mig || !b->mig ? a->mig == b->mig : strcmp(a->mig, b->mig) == 0);
}

/* A whole GPU overlaps with each of its MIG devices. */
static bool overlaps(const struct graft_lease_slot *a, const struct graft_lease_slot *b)
{
	return strcmp(a->gpu, b->gpu) == 0 && (!a->mig || !b->mig || strcmp(a->mig, b->mig) == 0);
}

static bool has_lease_slot(const struct graft_lease_slot *slots, size_t n, const struct graft_lease_slot *slot)
{
	for (size_t i = 0; i < n; i++) {
		if (is_same_slot(&slots[i], slot))
			return true;
	}
	return false;
}

static bool has_lease_slots(const struct graft_lease_slot *slots, size_t n, const struct graft_lease *lease)
{
	for (size_t i = 0; i < lease->n_slots; i++) {
		if (!has_lease_slot(slots, n, &lease->slots[i]))
			return false;
	}
	return true;
}

/* Replicas of one device are one slot. Devices without a UUID are not leased. */
static void add_slot(struct graft_lease_slot slots[GRAFT_LEASE_SLOTS_MAX], size_t *n, struct graft_lease_slot slot)
{
	if (slot.gpu && *n < GRAFT_LEASE_SLOTS_MAX && !has_lease_slot(slots, *n, &slot))
		slots[(*n)++] = slot;
}

/* ---- the kubelet's checkpoint ---- */

static struct pod *get_pod(struct pods *pods, const char *uid)
{
	struct pod *pod;

	for (size_t i = 0; i < pods->n; i++) {
		if (strcmp(pods->pods[i].uid, uid) == 0)
			return &pods->pods[i];
	}
	pod = graft_arena_push(pods->arena, &pods->pods, &pods->n, sizeof(*pod));
	if (pod)
		*pod = (struct pod){ .uid = graft_arena_strdup(pods->arena, uid) };
	return pod && pod->uid ? pod : NULL;
}

static void add_pod_devices(struct pods *pods, struct pod *pod, const struct graft_kube_resource *resource,
			    const struct graft_json_node *list)
{
	GRAFT_JSON_EACH(id, list) {
		const char *name = graft_json_node_string(id);
		const struct graft_kube_device *device = name ? graft_kube_find_device(resource, name) : NULL;

		/* Lists by NUMA node are one level deeper. */
		if (!name)
			add_pod_devices(pods, pod, resource, id);
		else if (device)
			add_slot(pod->slots, &pod->n_slots, slot_of_device(&pods->leases->offer, device));
	}
}

static void add_pod_entry(struct pods *pods, const struct graft_json_node *entry)
{
	const char *uid = graft_json_node_string(graft_json_node_member(entry, "PodUID"));
	const char *name = graft_json_node_string(graft_json_node_member(entry, "ResourceName"));
	const struct graft_kube_offer *offer = pods->leases->offer.offer;
	struct pod *pod;

	/* It becomes part of a path. */
	if (!uid || !name || strlen(uid) > POD_UID_MAX || uid[0] == '\0' ||
	    uid[strspn(uid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")] != '\0')
		return;
	for (size_t i = 0; i < offer->n_resources; i++) {
		if (strcmp(offer->resources[i].name, name) != 0)
			continue;
		pod = get_pod(pods, uid);
		if (pod)
			add_pod_devices(pods, pod, &offer->resources[i], graft_json_node_member(entry, "DeviceIDs"));
	}
}

/* A missing checkpoint means no pods. */
static int read_pods(struct pods *pods, const struct graft_root *root, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	const char *path = graft_arena_printf(pods->arena, "%s/" CHECKPOINT, pods->leases->offer.kubelet_folder), *text;
	size_t length;
	int rc = path ? graft_root_read_foreign(root, path, CHECKPOINT_MAX, pods->arena, &text, &length) : -ENOMEM;

	if (rc < 0)
		return rc == -ENOENT ? 0 : graft_fail_errno(err, -rc, "%s", path ? path : CHECKPOINT);
	if (graft_json_document_parse(path, text, length, &document, err) < 0)
		return -1;
	GRAFT_JSON_EACH(entry, graft_json_node_at(graft_json_document_root(document), "Data.PodDeviceEntries"))
		add_pod_entry(pods, entry);
	return graft_arena_failed(pods->arena) ? graft_fail_memory(err) : 0;
}

/* ---- cgroups of pods ---- */

static const char *with_underscores(const char *uid, struct graft_arena *arena)
{
	char *copy = graft_arena_strdup(arena, uid);

	for (char *at = copy; at && *at != '\0'; at++) {
		if (*at == '-')
			*at = '_';
	}
	return copy;
}

/*
 * Where kubelets make the cgroups of pods, by cgroupfs and by systemd, also below the directory of
 * a kubelet in a container (kind).
 */
static const char *const usual_tops[] = { "/kubepods", "/kubepods.slice", "/kubelet/kubepods",
					  "/kubelet.slice/kubelet-kubepods.slice" };
static const char *const classes_of_service[] = { "", "burstable", "besteffort" };

/*
 * With --cgroup-root they are elsewhere. SECURITY: systemd delegates cgroups to users, who can make
 * some of any name there. QUIRK: a cgroup without others below it has two links.
 */
static void search_tops(struct pods *pods, const struct graft_root *root, const char *path, unsigned int depth)
{
	const char *folder = graft_arena_printf(pods->arena, "%s%s", pods->mount, path), **names, **top;
	struct stat st;
	size_t n;

	if (!folder || graft_root_stat(root, folder, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != 0)
		return;
	if (graft_ends_with(folder, "kubepods") || graft_ends_with(folder, "kubepods.slice")) {
		top = graft_arena_push(pods->arena, &pods->tops, &pods->n_tops, sizeof(*top));
		if (top)
			*top = path;
		return;
	}
	if (st.st_nlink == 2 || depth == DEPTH_MAX || pods->n_searched++ >= SEARCHED_MAX ||
	    graft_root_list(root, folder, SEARCHED_MAX, pods->arena, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const char *child = graft_arena_printf(pods->arena, "%s/%s", path, names[i]);

		if (child)
			search_tops(pods, root, child, depth + 1);
	}
}

/* NULL: there is no memory. */
static const char *cgroup_of_pod(const struct pod *pod, const char *top, const char *class, struct graft_arena *arena)
{
	const char *name = strrchr(top, '/') + 1, *folder = top;
	const int length = (int)(strlen(name) - strlen(".slice"));

	if (!graft_ends_with(name, ".slice"))
		return graft_arena_printf(arena, "%s%s%s/pod%s", top, class[0] != '\0' ? "/" : "", class, pod->uid);
	name = graft_arena_printf(arena, "%.*s%s%s", length, name, class[0] != '\0' ? "-" : "", class);
	if (class[0] != '\0')
		folder = graft_arena_printf(arena, "%s/%s.slice", top, name);
	return graft_arena_printf(arena, "%s/%s-pod%s.slice", folder, name, with_underscores(pod->uid, arena));
}

static bool find_below(struct pods *pods, const struct graft_root *root, const struct pod *pod, const char *const *tops,
		       size_t n_tops, struct graft_lease_holder *holder)
{
	struct stat st;

	for (size_t i = 0; i < n_tops * GRAFT_COUNT(classes_of_service); i++) {
		const char *class = classes_of_service[i % GRAFT_COUNT(classes_of_service)];
		const char *path = cgroup_of_pod(pod, tops[i / GRAFT_COUNT(classes_of_service)], class, pods->arena);
		const char *folder = path ? graft_arena_printf(pods->arena, "%s%s", pods->mount, path) : NULL;

		if (!folder || graft_root_stat(root, folder, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		holder->cgroup = path;
		holder->cgroup_id = st.st_ino;
		return true;
	}
	return false;
}

static bool find_pod_cgroup(struct pods *pods, const struct graft_root *root, const struct pod *pod,
			    struct graft_lease_holder *holder)
{
	bool v2 = graft_root_has(root, "/sys/fs/cgroup/cgroup.controllers", O_RDONLY);
	struct stat st;

	pods->mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/devices";
	holder->kind = GRAFT_HOLDER_CGROUP;
	holder->cgroup_version = v2 ? 2 : 1;
	holder->cgroup_mount = pods->mount;
	holder->cgroup_root = graft_root_stat(root, pods->mount, &st) == 0 ? st.st_ino : 0;
	if (find_below(pods, root, pod, usual_tops, GRAFT_COUNT(usual_tops), holder))
		return true;
	/* Pods that have ended stay in the checkpoint, and no lease waits for them. */
	if (!pods->is_awaited)
		return false;
	if (!pods->has_searched)
		search_tops(pods, root, "", 0);
	pods->has_searched = true;
	return find_below(pods, root, pod, pods->tops, pods->n_tops, holder);
}

/* ---- leases ---- */

static int fill_lease(const struct graft_lease_table *table, const struct graft_lease_slot *slots, size_t n_slots,
		      struct graft_arena *arena, struct graft_lease *lease, struct graft_error *err)
{
	lease->id = graft_lease_new_id(arena);
	lease->boot = table->now.boot;
	lease->holder.clock = table->now.clock;
	lease->claim = GRAFT_LEASE_OF_POD;
	lease->slots = graft_arena_memdup(arena, slots, n_slots * sizeof(*slots));
	lease->n_slots = n_slots;
	lease->since = table->now.time;
	lease->date = (int64_t)time(NULL);
	return lease->id && lease->slots ? 0 : graft_fail_memory(err);
}

/* Makes the lease that the pod's cgroup would hold; without an id if there is no such cgroup. */
static int make_pod_lease(const struct graft_lease_table *table, struct pods *pods, struct pod *pod,
			  struct graft_error *err)
{
	struct graft_arena *arena = pods->arena;
	struct graft_lease *lease = &pod->lease;
	const char *why;
	bool bound;

	/* A process that never exists, so that only the cgroup counts. */
	lease->holder = (struct graft_lease_holder){ .pid = 1, .pid_namespace = table->now.pid_namespace };
	lease->holder.container = pod->uid;
	if (pod->n_slots == 0 || !find_pod_cgroup(pods, &table->now.root, pod, &lease->holder))
		return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
	lease->boot = table->now.boot;
	if (!graft_lease_is_alive(&table->now, lease, arena, &bound, &why))
		return 0;
	for (size_t i = 0; i < table->n_leases; i++) {
		const struct graft_lease *old = &table->leases[i];

		pod->is_written |= graft_lease_is_of_pod(old) && old->holder.kind == GRAFT_HOLDER_CGROUP &&
				   old->holder.cgroup_id == lease->holder.cgroup_id &&
				   strcmp(old->holder.cgroup, lease->holder.cgroup) == 0 &&
				   old->n_slots == pod->n_slots && has_lease_slots(pod->slots, pod->n_slots, old);
	}
	return fill_lease(table, pod->slots, pod->n_slots, arena, lease, err);
}

static bool awaits_pod(const struct graft_lease *lease)
{
	return graft_lease_is_of_pod(lease) && lease->holder.kind == GRAFT_HOLDER_TOKEN;
}

enum fate { KEPT, RENEWED, DROPPED };

/* Decides about a lease that was taken for a container before its pod was known. */
static enum fate fate_of_pending(const struct pods *pods, const struct graft_lease *lease, uint64_t now)
{
	uint64_t age = now > lease->since ? now - lease->since : 0;
	bool has_cgroup = false;

	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *pod = &pods->pods[i];

		if (!has_lease_slots(pod->slots, pod->n_slots, lease))
			continue;
		/* Where no pod has a cgroup that we can see, nothing shows that this one has ended. */
		if (!pod->lease.id && (age < WAITS_MS || (pods->has_searched && pods->n_tops == 0)))
			return lease->until > now + RENEW_MS ? KEPT : RENEWED;
		has_cgroup |= pod->lease.id != NULL;
	}
	/* The kubelet may not have recorded it yet. */
	return has_cgroup || age > UNUSED_MS ? DROPPED : KEPT;
}

/*
 * Makes, renews and removes leases of pods. Returns whether there is something to do; does it only
 * with `change`.
 */
static int settle(struct graft_lease_table *table, struct pods *pods, bool change, struct graft_error *err)
{
	bool any = false;

	for (size_t i = 0; i < table->n_leases; i++)
		pods->is_awaited |= awaits_pod(&table->leases[i]);
	for (size_t i = 0; i < pods->n; i++) {
		struct pod *pod = &pods->pods[i];

		if (make_pod_lease(table, pods, pod, err) < 0)
			return -1;
		any |= pod->lease.id && !pod->is_written;
		if (change && pod->lease.id && !pod->is_written && graft_lease_table_add(table, &pod->lease, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < table->n_leases; i++) {
		struct graft_lease *lease = &table->leases[i];
		enum fate fate;

		/*
		 * A lease that a pod's cgroup holds ends with it, even if the pod has got more
		 * devices since.
		 */
		if (!awaits_pod(lease))
			continue;
		fate = fate_of_pending(pods, lease, table->now.time);
		any |= fate != KEPT;
		if (fate == RENEWED)
			lease->until = table->now.time + PENDING_MS;
		if (change && fate == RENEWED && graft_lease_table_renew(table, lease, err) < 0)
			return -1;
		if (change && fate == DROPPED &&
		    graft_lease_table_remove(table, lease, "freed", "its pod has another lease, or none", err) < 0)
			return -1;
	}
	return any;
}

/* ---- what others hold ---- */

/* Records what others hold, and reports a change. */
static void take_busy(struct pod_leases *leases, const struct graft_lease_table *table)
{
	struct graft_arena *arena = graft_arena_new(MEMORY_MAX);
	struct graft_lease_slot *busy = NULL, *slot;
	size_t n = 0, n_old = 0;
	bool changed = false;

	for (size_t i = 0; arena && i < table->n_leases; i++) {
		const struct graft_lease *lease = &table->leases[i];

		for (size_t k = 0; k < lease->n_slots && !graft_lease_is_of_pod(lease); k++) {
			if (has_lease_slot(busy, n, &lease->slots[k]))
				continue;
			slot = graft_arena_push(arena, &busy, &n, sizeof(*slot));
			if (!slot)
				continue;
			*slot = (struct graft_lease_slot){ .gpu = graft_arena_strdup(arena, lease->slots[k].gpu),
							   .mig = graft_arena_strdup(arena, lease->slots[k].mig) };
			changed |= !has_lease_slot(leases->busy, leases->n_busy, slot);
		}
	}
	if (!arena || graft_arena_failed(arena)) {
		/* Devices that were held count as held. */
		(void)graft_arena_free(arena);
		return;
	}
	for (size_t i = 0; i < leases->n_busy; i++)
		n_old += has_lease_slot(busy, n, &leases->busy[i]);
	changed |= n_old != leases->n_busy;
	(void)graft_arena_free(leases->busy_arena);
	leases->busy_arena = arena;
	leases->busy = busy;
	leases->n_busy = n;
	if (!changed)
		return;
	graft_info(leases->log, "leases: %zu GPUs or MIG devices are leased outside Kubernetes", leases->n_busy);
	leases->changed(leases->arg);
}

static bool is_slot_busy(const struct pod_leases *leases, const struct graft_lease_slot *slot)
{
	for (size_t i = 0; i < leases->n_busy && slot->gpu; i++) {
		if (overlaps(&leases->busy[i], slot))
			return true;
	}
	return false;
}

bool pod_leases_is_busy(const struct pod_leases *leases, const struct graft_kube_device *device)
{
	const struct graft_lease_slot slot = leases->n_busy > 0 ? slot_of_device(&leases->offer, device)
								: (struct graft_lease_slot){ .gpu = NULL };

	return is_slot_busy(leases, &slot);
}

/* ---- looks ---- */

/* Checks the table once. Returns 1 if leases of pods have to be changed and were not, or -1. */
static int look_once(struct pod_leases *leases, bool change, struct graft_error *err)
{
	auto_lease_table struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_arena *arena = graft_arena_new(MEMORY_MAX);
	struct pods pods = { .leases = leases, .arena = arena };
	int rc = arena ? graft_lease_table_open(&table, leases->directory, change, arena, err) : graft_fail_memory(err);

	if (rc == 0)
		rc = graft_lease_table_check(&table, err);
	if (rc == 0) {
		take_busy(leases, &table);
		rc = read_pods(&pods, &table.now.root, err) < 0 ? -1 : settle(&table, &pods, change, err);
	}
	graft_lease_table_close(&table);
	(void)graft_arena_free(arena);
	return rc;
}

/* Watches the files that exist; the timer finds the others. Watching again does nothing. */
static void watch_tables(struct pod_leases *leases)
{
	if (leases->watch.place == 0)
		return;
	(void)inotify_add_watch(leases->watch.fd, leases->directory, IN_ATTRIB | IN_ONLYDIR);
	(void)inotify_add_watch(leases->watch.fd, leases->offer.kubelet_folder, IN_MOVED_TO | IN_ONLYDIR);
}

/* If the table cannot be read, nothing changes: the offer stays the same, and Allocate refuses. */
static void look_at_leases(void *arg)
{
	struct pod_leases *leases = arg;
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	watch_tables(leases);
	rc = look_once(leases, false, &err);
	if (rc > 0)
		rc = look_once(leases, true, &err);
	if (rc < 0 && !leases->failed)
		graft_warn(leases->log, "leases: %s", GRAFT_ERROR_TEXT(&err));
	leases->failed = rc < 0;
	graft_loop_set_timer(leases->loop, &leases->look, LOOK_AGAIN_MS);
}

static void tables_changed(void *arg, short events)
{
	struct pod_leases *leases = arg;
	char notes[4096];

	(void)events;
	while (read(leases->watch.fd, notes, sizeof(notes)) > 0)
		;
	look_at_leases(leases);
}

/* Call this with the table's lock held. */
static int take_slots(struct pod_leases *leases, const struct graft_lease_slot *slots, size_t n,
		      struct graft_lease_table *table, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_lease lease = { .holder = { .kind = GRAFT_HOLDER_TOKEN } };

	if (graft_lease_table_open(table, leases->directory, true, arena, err) < 0 ||
	    graft_lease_table_check(table, err) < 0)
		return -1;
	watch_tables(leases);
	take_busy(leases, table);
	for (size_t i = 0; i < n; i++) {
		if (is_slot_busy(leases, &slots[i]))
			return graft_fail(err, GRAFT_BUSY, 0, "%s is already leased: see 'nvidia-ctk lease list'",
					  slots[i].mig ? slots[i].mig : slots[i].gpu);
	}
	lease.until = table->now.time + PENDING_MS;
	return fill_lease(table, slots, n, arena, &lease, err) < 0 ? -1 : graft_lease_table_add(table, &lease, err);
}

int pod_leases_take(struct pod_leases *leases, const struct graft_kube_resource *resource, const char *const *ids,
		    size_t n_ids, struct graft_error *err)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_lease_slot slots[GRAFT_LEASE_SLOTS_MAX];
	struct graft_arena *arena;
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < n_ids; i++) {
		const struct graft_kube_device *device = graft_kube_find_device(resource, ids[i]);

		if (device)
			add_slot(slots, &n, slot_of_device(&leases->offer, device));
	}
	if (n == 0)
		return 0;
	arena = graft_arena_new(MEMORY_MAX);
	rc = arena ? take_slots(leases, slots, n, &table, arena, err) : graft_fail_memory(err);
	graft_lease_table_close(&table);
	(void)graft_arena_free(arena);
	return rc < 0 ? graft_wrap(err, "lease") : 0;
}

/* ---- begin and end ---- */

void pod_leases_begin(struct pod_leases *leases, const char *state_folder, const struct pod_offer *offer)
{
	leases->offer = *offer;
	if (!leases->arena) {
		leases->arena = graft_arena_new(MEMORY_MAX);
		leases->directory = leases->arena ? graft_arena_printf(leases->arena, "%s/leases", state_folder) : NULL;
		leases->watch = (struct graft_loop_watch){ .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
							   .events = POLLIN,
							   .ready = tables_changed,
							   .arg = leases };
		leases->look = (struct graft_loop_timer){ .due = look_at_leases, .arg = leases };
		if (leases->watch.fd >= 0)
			(void)graft_loop_watch(leases->loop, &leases->watch, NULL);
	}
	if (leases->directory)
		look_at_leases(leases);
}

void pod_leases_end(struct pod_leases *leases)
{
	if (!leases->arena)
		return;
	graft_loop_close(leases->loop, &leases->watch);
	graft_loop_clear_timer(&leases->look);
	leases->arena = graft_arena_free(leases->arena);
	leases->busy_arena = graft_arena_free(leases->busy_arena);
	leases->busy = NULL;
	leases->n_busy = 0;
}
