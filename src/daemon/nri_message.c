/* SPDX-License-Identifier: Apache-2.0 */
/* nri_message: from protobuf to plain data and back. */
#include "daemon/nri_message.h"

#include <nri.pb-c.h>
#include <string.h>

#include "base/cleanup.h"
#include "plan/spec_hooks.h"
#include "rpc/message.h"
#include "rpc/ttrpc.h"

typedef Nri__Pkg__Api__V1alpha1__PodSandbox nri_pod;
typedef Nri__Pkg__Api__V1alpha1__Container nri_box;
typedef Nri__Pkg__Api__V1alpha1__ContainerAdjustment nri_adjustment;

/* --- views --- */

static int view_annotations(const nri_pod *pod, struct graft_arena *arena, struct graft_nri_container *view)
{
	view->pod_annotations = graft_arena_list(arena, pod->n_annotations, sizeof(*view->pod_annotations));
	for (size_t i = 0; view->pod_annotations && i < pod->n_annotations; i++)
		view->pod_annotations[view->n_pod_annotations++] = (struct graft_oci_annotation){
			.key = pod->annotations[i]->key,
			.value = pod->annotations[i]->value,
		};
	return graft_arena_failed(arena) ? -1 : 0;
}

/* SPEC runtime-and-hook Q5: entries without '=' are not variables. */
static int view_env(const nri_box *container, struct graft_arena *arena, struct graft_nri_container *view)
{
	view->env = graft_arena_list(arena, container->n_env, sizeof(*view->env));
	for (size_t i = 0; view->env && i < container->n_env; i++) {
		if (strchr(container->env[i], '='))
			view->env[view->n_env++] = container->env[i];
	}
	return graft_arena_failed(arena) ? -1 : 0;
}

static int view_mounts(const nri_box *container, struct graft_arena *arena, struct graft_nri_container *view)
{
	view->mounts = graft_arena_list(arena, container->n_mounts, sizeof(*view->mounts));
	for (size_t i = 0; view->mounts && i < container->n_mounts; i++) {
		const Nri__Pkg__Api__V1alpha1__Mount *mount = container->mounts[i];

		view->mounts[view->n_mounts++] = (struct graft_oci_mount){
			.destination = mount->destination,
			.source = mount->source,
			.type = mount->type,
			.options = graft_rpc_read_only(mount->options),
			.n_options = mount->n_options,
		};
	}
	return graft_arena_failed(arena) ? -1 : 0;
}

static int view_devices(const nri_box *container, struct graft_arena *arena, struct graft_nri_container *view)
{
	const Nri__Pkg__Api__V1alpha1__LinuxContainer *part = container->linux_part;
	struct graft_strings *nodes = &view->nodes, *names = &view->cdi_names;

	for (size_t i = 0; part && i < part->n_devices; i++)
		(void)graft_arena_push_string(arena, &nodes->items, &nodes->n, part->devices[i]->path);
	for (size_t i = 0; i < container->n_cdi_devices; i++)
		(void)graft_arena_push_string(arena, &names->items, &names->n, container->cdi_devices[i]->name);
	return graft_arena_failed(arena) ? -1 : 0;
}

int nri_message_view(const ProtobufCMessage *pod_message, const ProtobufCMessage *container_message,
		     struct graft_arena *arena, struct graft_nri_container *ret_container, struct graft_error *err)
{
	const nri_pod *pod = (const void *)pod_message;
	const nri_box *container = (const void *)container_message;

	*ret_container = (struct graft_nri_container){
		.namespace_ = pod ? pod->namespace_ : "",
		.pod = pod ? pod->name : "",
		.uid = pod ? pod->uid : "",
		.handler = pod ? pod->runtime_handler : "",
		.name = container ? container->name : "",
	};
	if ((pod && view_annotations(pod, arena, ret_container) < 0) ||
	    (container &&
	     (view_env(container, arena, ret_container) < 0 || view_mounts(container, arena, ret_container) < 0 ||
	      view_devices(container, arena, ret_container) < 0)))
		return graft_fail_memory(err);
	return 0;
}

/* --- adjustments --- */

static int add_nri_mounts(const struct graft_cdi_edits *edits, struct graft_arena *arena, nri_adjustment *adjustment)
{
	static const char *const bind[] = { "rbind", "ro" };
	Nri__Pkg__Api__V1alpha1__Mount *mounts = graft_rpc_list(&nri__pkg__api__v1alpha1__mount__descriptor,
								edits->n_mounts, arena, &adjustment->mounts);

	for (size_t i = 0; mounts && i < edits->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &edits->mounts[i];

		mounts[i].destination = graft_rpc_read_only(mount->container_path);
		mounts[i].source = graft_rpc_read_only(mount->host_path);
		mounts[i].type = graft_rpc_read_only(mount->type ? mount->type : "bind");
		mounts[i].options = graft_rpc_read_only(
		    mount->n_options > 0 ? mount->options : (const char **)graft_rpc_read_only(bind));
		mounts[i].n_options = mount->n_options > 0 ? mount->n_options : GRAFT_COUNT(bind);
	}
	adjustment->n_mounts = mounts ? edits->n_mounts : 0;
	return graft_arena_failed(arena) ? -1 : 0;
}

static int add_variables(const struct graft_cdi_edits *edits, struct graft_arena *arena, nri_adjustment *adjustment)
{
	Nri__Pkg__Api__V1alpha1__KeyValue *variables = graft_rpc_list(&nri__pkg__api__v1alpha1__key_value__descriptor,
								      edits->n_env, arena, &adjustment->env);

	for (size_t i = 0; variables && i < edits->n_env; i++) {
		const char *equals = strchr(edits->env[i], '=');
		size_t length = equals ? (size_t)(equals - edits->env[i]) : strlen(edits->env[i]);

		variables[i].key = graft_arena_strndup(arena, edits->env[i], length);
		variables[i].value = graft_rpc_read_only(equals ? equals + 1 : "");
	}
	adjustment->n_env = variables ? edits->n_env : 0;
	return graft_arena_failed(arena) ? -1 : 0;
}

/* If the arena is exhausted, it records that. */
static void set_number(bool has, uint32_t number, struct graft_arena *arena,
		       Nri__Pkg__Api__V1alpha1__OptionalUInt32 **slot)
{
	if (has)
		*slot = graft_rpc_new(&nri__pkg__api__v1alpha1__optional_uint32__descriptor, arena);
	if (*slot)
		(*slot)->value = number;
}

static void fill_nri_device(const struct graft_cdi_node *node, struct graft_arena *arena,
			    Nri__Pkg__Api__V1alpha1__LinuxDevice *device)
{
	device->path = graft_rpc_read_only(node->path);
	device->type = graft_rpc_read_only(node->type ? node->type : "c");
	device->major = node->major;
	device->minor = node->minor;
	if (node->has_mode)
		device->file_mode = graft_rpc_new(&nri__pkg__api__v1alpha1__optional_file_mode__descriptor, arena);
	if (device->file_mode)
		device->file_mode->value = node->mode;
	set_number(node->has_uid, node->uid, arena, &device->uid);
	set_number(node->has_gid, node->gid, arena, &device->gid);
}

/*
 * SECURITY: the engine allows reading, writing and making any device that it makes. A device that
 * should only be visible is not sent.
 */
static int add_nri_devices(const struct graft_cdi_edits *edits, struct graft_arena *arena, nri_adjustment *adjustment)
{
	Nri__Pkg__Api__V1alpha1__LinuxContainerAdjustment *part = graft_rpc_new(
	    &nri__pkg__api__v1alpha1__linux_container_adjustment__descriptor, arena);
	Nri__Pkg__Api__V1alpha1__LinuxDevice *devices = NULL;

	if (part)
		devices = graft_rpc_list(&nri__pkg__api__v1alpha1__linux_device__descriptor, edits->n_nodes, arena,
					 &part->devices);
	for (size_t i = 0; devices && i < edits->n_nodes; i++) {
		const struct graft_cdi_node *node = &edits->nodes[i];

		if (!node->permissions || node->permissions[0] != '\0')
			fill_nri_device(node, arena, &devices[part->n_devices++]);
	}
	adjustment->linux_part = part && part->n_devices > 0 ? part : NULL;
	return graft_arena_failed(arena) ? -1 : 0;
}

/* The list for the hooks of a stage; NULL for a stage that NRI does not have. */
static Nri__Pkg__Api__V1alpha1__Hook ***find_stage_of_hooks(Nri__Pkg__Api__V1alpha1__Hooks *hooks, const char *stage,
							    size_t **ret_n)
{
	const struct {
		const char *stage;
		Nri__Pkg__Api__V1alpha1__Hook ***list;
		size_t *n;
	} stages[] = {
		{ "prestart", &hooks->prestart, &hooks->n_prestart },
		{ "createRuntime", &hooks->create_runtime, &hooks->n_create_runtime },
		{ "createContainer", &hooks->create_container, &hooks->n_create_container },
		{ "startContainer", &hooks->start_container, &hooks->n_start_container },
		{ "poststart", &hooks->poststart, &hooks->n_poststart },
		{ "poststop", &hooks->poststop, &hooks->n_poststop },
	};

	for (size_t i = 0; i < GRAFT_COUNT(stages); i++) {
		*ret_n = stages[i].n;
		if (strcmp(stages[i].stage, stage) == 0)
			return stages[i].list;
	}
	return NULL;
}

/*
 * SECURITY: a hook without an environment inherits that of the low-level runtime, which images can
 * influence.
 */
static int add_nri_hook(const struct graft_cdi_hook *hook, struct graft_arena *arena,
			Nri__Pkg__Api__V1alpha1__Hooks *hooks, struct graft_error *err)
{
	size_t *n;
	Nri__Pkg__Api__V1alpha1__Hook ***list = find_stage_of_hooks(hooks, hook->stage, &n), **place, *message;
	const char *own = graft_spec_hook_variable(hook->path);

	if (!list || hook->path[0] != '/')
		return graft_fail(err, GRAFT_UNSUPPORTED, 0,
				  "NRI cannot add a hook of stage '%.60s' (program '%.200s')", hook->stage, hook->path);
	message = graft_rpc_new(&nri__pkg__api__v1alpha1__hook__descriptor, arena);
	place = message ? graft_arena_push(arena, list, n, sizeof(**list)) : NULL;
	if (!place)
		return graft_fail_memory(err);
	*place = message;
	message->path = graft_rpc_read_only(hook->path);
	message->args = graft_rpc_read_only(hook->args);
	message->n_args = hook->n_args;
	message->env = graft_rpc_read_only(hook->env);
	message->n_env = hook->n_env;
	if (hook->n_env == 0 && !graft_cdi_hook_is_of_image(hook)) {
		message->env = graft_arena_memdup(arena, &own, sizeof(own));
		message->n_env = 1;
	}
	if (hook->has_timeout) {
		message->timeout = graft_rpc_new(&nri__pkg__api__v1alpha1__optional_int__descriptor, arena);
		if (message->timeout)
			message->timeout->value = hook->timeout;
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

static int add_nri_hooks(const struct graft_cdi_edits *edits, struct graft_arena *arena, nri_adjustment *adjustment,
			 struct graft_error *err)
{
	Nri__Pkg__Api__V1alpha1__Hooks *hooks;

	if (edits->n_hooks == 0)
		return 0;
	hooks = graft_rpc_new(&nri__pkg__api__v1alpha1__hooks__descriptor, arena);
	if (!hooks)
		return graft_fail_memory(err);
	adjustment->hooks = hooks;
	for (size_t i = 0; i < edits->n_hooks; i++) {
		if (add_nri_hook(&edits->hooks[i], arena, hooks, err) < 0)
			return -1;
	}
	return 0;
}

static int add_edits(const struct graft_cdi_edits *edits, struct graft_arena *arena, nri_adjustment *adjustment,
		     struct graft_error *err)
{
	if (edits->n_net_devices > 0 || edits->rdt)
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "NRI cannot express %s of a CDI specification",
				  edits->rdt ? "intelRdt" : "network devices");
	if (!adjustment)
		return graft_fail_memory(err);
	if (add_nri_mounts(edits, arena, adjustment) < 0 || add_variables(edits, arena, adjustment) < 0 ||
	    add_nri_devices(edits, arena, adjustment) < 0)
		return graft_fail_memory(err);
	if (add_nri_hooks(edits, arena, adjustment, err) < 0)
		return -1;
	/* The engine could not decode the answer. */
	if (!graft_ttrpc_is_utf8(&adjustment->base))
		return graft_fail(err, GRAFT_UNSUPPORTED, 0,
				  "NRI cannot express a path or a value that is not UTF-8; the driver's files or a CDI "
				  "specification have one");
	return 0;
}

const ProtobufCMessage *nri_message_adjust(const struct graft_cdi_edits *edits, struct graft_arena *arena,
					   struct graft_error *err)
{
	nri_adjustment *adjustment = graft_rpc_new(&nri__pkg__api__v1alpha1__container_adjustment__descriptor, arena);

	return add_edits(edits, arena, adjustment, err) < 0 ? NULL : &adjustment->base;
}
