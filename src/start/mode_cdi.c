/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode_cdi: mode cdi (SPEC runtime-and-hook 8): the requested names are devices of the host's CDI
 * specs. Names of the kind runtime.nvidia.com/gpu have no spec; jit-cdi generates them.
 */
#include <string.h>
#include <sys/stat.h>

#include "apply/oci/oci_edits.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "host/cdi_registry.h"
#include "plan/hook_edits.h"
#include "plan/spec_hooks.h"
#include "start/cdi_staleness.h"
#include "start/give.h"
#include "start/hooks_as_edits.h"
#include "start/host_mounts.h"
#include "start/room.h"
#include "start/start.h"

#define JIT_KIND "runtime.nvidia.com/gpu"
/* Limits of the error message. The log has everything. */
#define LIST_MAX     160
#define PROBLEMS_MAX 3u

static bool is_of_kind(const char *name, const char *kind)
{
	size_t length = strlen(kind);

	return strncmp(name, kind, length) == 0 && name[length] == '=';
}

/* Adds the configured kind to names without one, and drops duplicates (SPEC runtime-and-hook 8). */
static int qualify(const struct graft_start *create, struct graft_strings *ret_names, struct graft_error *err)
{
	const struct graft_strings *devices = &create->container->devices;
	const char *kind = create->config->runtime.cdi_default_kind;

	*ret_names = (struct graft_strings){ .n = 0 };
	for (size_t i = 0; i < devices->n; i++) {
		const char *device = devices->items[i];
		const char *name = graft_cdi_is_qualified(device)
				       ? device
				       : graft_arena_printf(create->arena, "%s=%s", kind, device);

		if (!name)
			return graft_fail_memory(err);
		if (!graft_is_in(ret_names->items, ret_names->n, name) &&
		    !graft_arena_push_string(create->arena, &ret_names->items, &ret_names->n, name))
			return graft_fail_memory(err);
	}
	return 0;
}

/* --- specs that no longer fit this host --- */

/*
 * Sets *ret_why to the reason why a spec is stale for the given devices (n_devices 0: for all of
 * them); NULL if it is not stale or has no fingerprint. If the host cannot be examined, this is
 * only a warning, and the parts of the spec are checked against the host one by one later
 * (graft_cdi_choices_realize()).
 */
static int find_why_stale(const struct graft_start *create, const struct graft_cdi_spec *spec,
			  const char *const *devices, size_t n_devices, const char **ret_why, struct graft_error *err)
{
	const struct graft_host_options host = graft_start_host_options(create);
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_cdi_fingerprint made;
	char text[sizeof(why.msg) + sizeof(why.ctx)];

	if (graft_cdi_why_stale(&host, spec, devices, n_devices, create->arena, &made, ret_why, &why) >= 0)
		return 0;
	*ret_why = NULL;
	if (why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	graft_warn(create->log, "cannot find out whether CDI spec %s is stale: %s", spec->file,
		   graft_error_text(&why, text, sizeof(text)));
	return 0;
}

/* The names of the devices that were chosen from a spec. */
static int list_devices(const struct graft_start *create, const struct graft_cdi_choice *choices, size_t n,
			const struct graft_cdi_spec *spec, const char ***ret_names, size_t *ret_n,
			struct graft_error *err)
{
	*ret_names = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < n; i++)
		if (choices[i].spec == spec && choices[i].device &&
		    !graft_arena_push_string(create->arena, ret_names, ret_n, choices[i].device->name))
			return graft_fail_memory(err);
	return 0;
}

static int refuse_stale(const struct graft_start *create, const struct graft_cdi_choice *choices, size_t n,
			struct graft_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const char *why = NULL, **devices;
		size_t n_devices;

		/* Each spec is among the choices exactly once without a device. */
		if (choices[i].device)
			continue;
		if (list_devices(create, choices, n, choices[i].spec, &devices, &n_devices, err) < 0 ||
		    find_why_stale(create, choices[i].spec, devices, n_devices, &why, err) < 0)
			return -1;
		if (why)
			return graft_fail(err, GRAFT_STALE, 0, "CDI spec %s is stale: %s", choices[i].spec->file, why);
	}
	return 0;
}

/* --- messages --- */

static void join_device_names(struct graft_buffer *text, const char *before, const char *const *items, size_t n)
{
	size_t start = text->length;

	graft_buffer_string(text, before);
	for (size_t i = 0; i < n; i++) {
		if (text->length - start > LIST_MAX) {
			graft_buffer_printf(text, ", ... (%zu in all)", n);
			return;
		}
		graft_buffer_printf(text, "%s%s", i > 0 ? ", " : "", items[i]);
	}
}

static bool is_kind_of(const struct graft_cdi_spec *spec, const char *name)
{
	size_t vendor = strlen(spec->vendor), class_ = strlen(spec->class_);

	return strncmp(name, spec->vendor, vendor) == 0 && name[vendor] == '/' &&
	       strncmp(name + vendor + 1, spec->class_, class_) == 0 && name[vendor + 1 + class_] == '=';
}

/*
 * Reports a stale spec of the name's kind: the device may have been added since it was made. False:
 * there is no such spec.
 */
static bool tell_stale(struct graft_buffer *text, const struct graft_start *create,
		       const struct graft_cdi_registry *registry, const char *name)
{
	for (size_t i = 0; i < registry->n_specs; i++) {
		const struct graft_cdi_spec *spec = &registry->specs[i];
		const char *why = NULL;

		if (!is_kind_of(spec, name) || find_why_stale(create, spec, NULL, 0, &why, NULL) < 0 || !why)
			continue;
		graft_buffer_printf(text, "; CDI spec %s is stale: %s; run 'nvidia-ctk cdi refresh' as root",
				    spec->file, why);
		return true;
	}
	return false;
}

/* Lists the devices that exist of the name's kind. False: none. */
static bool list_known(struct graft_buffer *text, const struct graft_cdi_registry *registry, const char *name)
{
	bool any = false;

	for (size_t i = 0; i < registry->n_specs && text->length < (size_t)2 * LIST_MAX; i++) {
		const struct graft_cdi_spec *spec = &registry->specs[i];

		if (!is_kind_of(spec, name))
			continue;
		for (size_t j = 0; j < spec->n_devices && text->length < (size_t)2 * LIST_MAX; j++) {
			graft_buffer_printf(text, "%s%s",
					    any ? ", " : "; devices of that kind: ", spec->devices[j].name);
			any = true;
		}
	}
	return any;
}

static void tell_what_to_do(struct graft_buffer *text, const struct graft_cdi_registry *registry, const char *name)
{
	if (list_known(text, registry, name))
		graft_buffer_string(text, "; ask for one of them, or regenerate the spec");
	else if (graft_starts_with(name, "nvidia.com/"))
		graft_buffer_string(text, "; make a spec: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
	else
		graft_buffer_string(text, "; no spec has such a device");
}

/*
 * Puts into one line what is missing, where it was searched for, what exists, what to do, and which
 * specs could not be used.
 */
static int explain_unknown_device(const struct graft_start *create, const struct graft_cdi_registry *registry,
				  const char *first_name, struct graft_error *err)
{
	const struct graft_strings *directories = &create->config->runtime.cdi_spec_dirs;
	struct graft_buffer text = { .max = 0 };

	graft_buffer_printf(&text, "%.*s", 2 * LIST_MAX, err->msg);
	join_device_names(&text, " (searched ", directories->items, directories->n);
	graft_buffer_string(&text, ")");
	if (!tell_stale(&text, create, registry, first_name))
		tell_what_to_do(&text, registry, first_name);
	for (size_t i = 0; i < registry->n_problems && i < PROBLEMS_MAX; i++) {
		const struct graft_cdi_problem *problem = &registry->problems[i];
		bool named = strncmp(problem->why, problem->file, strlen(problem->file)) == 0;

		graft_buffer_printf(&text, "; skipped %s%s%s", named ? "" : problem->file, named ? "" : ": ",
				    problem->why);
	}
	if (registry->n_problems > PROBLEMS_MAX)
		graft_buffer_printf(&text, "; and %zu more", registry->n_problems - PROBLEMS_MAX);
	if (!graft_buffer_failed(&text))
		(void)graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "%s", graft_buffer_text(&text));
	graft_buffer_done(&text);
	return graft_wrap(err, "failed to inject CDI devices");
}

/* --- files that wait --- */

/* Whether these are the options of a driver file's mount, in any order. */
static bool has_file_options(const struct graft_cdi_mount *mount)
{
	static const char *const needed[] = { "ro", "nosuid", "nodev" };
	static const char *const allowed[] = { "ro", "nosuid", "nodev", "bind", "rbind", "private", "rprivate" };

	for (size_t i = 0; i < GRAFT_COUNT(needed); i++)
		if (!graft_is_in(mount->options, mount->n_options, needed[i]))
			return false;
	for (size_t i = 0; i < mount->n_options; i++)
		if (!graft_is_in(allowed, GRAFT_COUNT(allowed), mount->options[i]))
			return false;
	return graft_is_in(mount->options, mount->n_options, "bind") ||
	       graft_is_in(mount->options, mount->n_options, "rbind");
}

static bool is_file_mount(const struct graft_cdi_mount *mount)
{
	struct stat st;

	return mount->host_path[0] == '/' && has_file_options(mount) && lstat(mount->host_path, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

/* Removes a place from those that the plan does not know. */
static void forget_other_mount(struct graft_start *create, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < create->n_other_mounts; i++)
		if (strcmp(create->other_mounts[i], path) != 0)
			create->other_mounts[n++] = create->other_mounts[i];
	create->n_other_mounts = n;
}

/*
 * Moves files to the plan, so that they can wait until the container is created
 * (docs/decisions/0034-driver-tree.md).
 */
static int move_files_to_plan(struct graft_start *create, struct graft_cdi_edits *edits, struct graft_plan *plan,
			      struct graft_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < edits->n_mounts; i++) {
		const struct graft_hook_file file = { .source = edits->mounts[i].host_path,
						      .path = edits->mounts[i].container_path };

		if (!is_file_mount(&edits->mounts[i])) {
			edits->mounts[n++] = edits->mounts[i];
			continue;
		}
		if (!graft_hook_add_file(plan, &file))
			return graft_fail_memory(err);
		forget_other_mount(create, file.path);
	}
	edits->n_mounts = n;
	return 0;
}

/* --- the work --- */

/* Nodes without numbers are left out: the low-level runtime looks them up. */
static int link_cdi_nodes(const struct graft_start *create, const struct graft_cdi_edits *edits,
			  struct graft_error *err)
{
	struct graft_dev_char *nodes = graft_arena_list(create->arena, edits->n_nodes, sizeof(*nodes));
	size_t n = 0;

	if (edits->n_nodes > 0 && !nodes)
		return graft_fail_memory(err);
	for (size_t i = 0; i < edits->n_nodes; i++) {
		const struct graft_cdi_node *node = &edits->nodes[i];

		if (!node->type || strcmp(node->type, "c") != 0 || !node->has_numbers)
			continue;
		nodes[n].major = (unsigned int)node->major;
		nodes[n].minor = (unsigned int)node->minor;
		nodes[n++].path = node->host_path ? node->host_path : node->path;
	}
	graft_start_link_nodes(create, nodes, n);
	return 0;
}

static int list_kinds(const struct graft_start *create, const struct graft_strings *names,
		      struct graft_strings *ret_kinds, struct graft_error *err)
{
	*ret_kinds = (struct graft_strings){ .n = 0 };
	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->items[i],
			   *kind = graft_arena_strndup(create->arena, name, strcspn(name, "="));

		if (!kind)
			return graft_fail_memory(err);
		if (!graft_is_in(ret_kinds->items, ret_kinds->n, kind) &&
		    !graft_arena_push_string(create->arena, &ret_kinds->items, &ret_kinds->n, kind))
			return graft_fail_memory(err);
	}
	return 0;
}

static bool has_container_hooks(const struct graft_cdi_edits *edits)
{
	for (size_t i = 0; i < edits->n_hooks; i++)
		if (strcmp(edits->hooks[i].stage, "createContainer") == 0)
			return true;
	return false;
}

/*
 * The hooks of the edits, which a plan of their work would replace, may need what is in a directory
 * of the host, so ours precedes those of its own stage. Those of earlier stages never see it.
 */
static int mount_before_hooks(struct graft_start *create, bool has_hooks, struct graft_error *err)
{
	struct graft_plan *plan = graft_plan_new();
	int rc;

	if (!plan)
		return graft_fail_memory(err);
	create->hooks_follow = has_hooks;
	rc = graft_start_give(create, plan, NULL, NULL, err);
	create->hooks_follow = false;
	(void)graft_plan_free(plan);
	return rc;
}

/*
 * The root comes last: a failure there undoes itself, and no later step of this function can fail.
 */
static int apply_cdi_edits(struct graft_start *create, struct cdi_image *image, const struct graft_cdi_choice *choices,
			   size_t n, struct graft_cdi_edits *edits, struct graft_error *err)
{
	struct cdi_planned planned = { .plan = NULL };
	int rc = graft_start_leave_out_mounts(create, edits, err);

	if (rc == 0)
		rc = graft_spec_hooks_mend(create->cdi_hook_path, create->arena, edits, err);
	if (rc == 0)
		rc = cdi_plan_hooks(create, image, edits, &planned, err);
	if (rc == 0)
		rc = graft_cdi_choices_check_paths(choices, n, planned.seen, planned.n_seen, err);
	if (rc == 0 && planned.plan && create->config->late_mounts)
		rc = move_files_to_plan(create, edits, planned.plan, err);
	if (rc == 0)
		rc = graft_start_take_host_directories(create, edits, err);
	if (rc == 0 && create->n_edits > 0 && !planned.plan)
		rc = mount_before_hooks(create, has_container_hooks(edits), err);
	if (rc == 0)
		rc = graft_join_hooks(create->cdi_hook_path, create->hook_root, create->arena, edits, err);
	if (rc == 0)
		rc = graft_oci_apply_edits(create->document, edits, err);
	if (rc == 0 && planned.plan)
		rc = graft_start_give(create, planned.plan, &planned.image, NULL, err);
	graft_plan_free(planned.plan);
	return rc;
}

static int inject(struct graft_start *create, const struct graft_strings *names, struct graft_error *err)
{
	const struct graft_strings *directories = &create->config->runtime.cdi_spec_dirs;
	auto_cdi_image struct cdi_image image = CDI_IMAGE_INIT;
	struct graft_cdi_registry registry;
	struct graft_cdi_choice *choices;
	struct graft_cdi_edits edits;
	struct graft_strings kinds;
	size_t n;

	if (cdi_image_start(create, &image, err) < 0 || list_kinds(create, names, &kinds, err) < 0 ||
	    graft_cdi_registry_read(directories->items, directories->n, kinds.items, kinds.n, create->budget,
				    create->log, create->arena, &registry, err) < 0)
		return -1;
	for (size_t i = 0; i < registry.n_specs; i++)
		if (graft_spec_hooks_take_apart(create->arena, &registry.specs[i], err) < 0)
			return -1;
	if (graft_cdi_registry_resolve(&registry, names->items, names->n, create->arena, &choices, &n, err) < 0)
		return err->status == GRAFT_UNKNOWN_DEVICE
			   ? explain_unknown_device(create, &registry, names->items[0], err)
			   : -1;
	if (refuse_stale(create, choices, n, err) < 0 ||
	    graft_cdi_choices_realize_nodes(choices, n, create->log, create->arena, &edits, err) < 0 ||
	    graft_cdi_fingerprint_drop(&edits, create->arena, err) < 0 ||
	    apply_cdi_edits(create, &image, choices, n, &edits, err) < 0)
		return graft_wrap(err, "failed to inject CDI devices");
	return link_cdi_nodes(create, &edits, err);
}

/* Passes the names without their kind to mode jit-cdi. */
static int generate_cdi_devices(struct graft_start *create, const struct graft_strings *names, struct graft_error *err)
{
	struct graft_container container = *create->container;
	struct graft_start generated = *create;
	int rc;

	container.devices = (struct graft_strings){ .n = 0 };
	for (size_t i = 0; i < names->n; i++) {
		if (!graft_arena_push_string(create->arena, &container.devices.items, &container.devices.n,
					     names->items[i] + strlen(JIT_KIND "=")))
			return graft_fail_memory(err);
	}
	generated.container = &container;
	rc = graft_mode_jit_cdi(&generated, err);
	create->waiting = generated.waiting;
	return rc;
}

int graft_mode_cdi(struct graft_start *create, struct graft_error *err)
{
	struct graft_strings names;
	size_t n_generated = 0;

	if (qualify(create, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < names.n; i++) {
		n_generated += is_of_kind(names.items[i], JIT_KIND);
		graft_info(create->log, "requested CDI device %s", names.items[i]);
	}
	if (names.n == 0)
		return 0;
	if (n_generated == names.n)
		return generate_cdi_devices(create, &names, err);
	if (n_generated > 0)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "requesting a CDI device with vendor 'runtime.nvidia.com' is not supported when "
				  "requesting other CDI devices");
	return inject(create, &names, err);
}
