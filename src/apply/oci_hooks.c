/* SPDX-License-Identifier: Apache-2.0 */
/* oci_hooks: hooks of an OCI configuration: those of edits, and the one of the NVIDIA runtime (SPEC runtime-and-hook 6.2, 6.3). Runs nothing. */
#include <stdio.h>
#include <string.h>

#include "apply/oci_edits.h"
#include "apply/oci_put.h"
#include "base/cleanup.h"

static bool is_stage(const char *name)
{
	static const char *const stages[] = { "prestart",       "createRuntime", "createContainer",
					      "startContainer", "poststart",     "poststop" };

	for (size_t i = 0; i < GRAFT_COUNT(stages); i++) {
		if (strcmp(name, stages[i]) == 0)
			return true;
	}
	return false;
}

int oci_put_hook(struct graft_json_document *document, const struct graft_cdi_hook *hook, struct graft_error *err)
{
	struct graft_json_node *list, *object;
	char path[64];

	if (!is_stage(hook->stage))
		return graft_fail(err, GRAFT_INVALID, 0, "unknown hook name \"%s\"", hook->stage);
	(void)snprintf(path, sizeof(path), "hooks.%s", hook->stage);
	list = graft_json_make(document, path, GRAFT_JSON_ARRAY, err);
	object = list ? graft_json_new_object(document, err) : NULL;
	if (!object || oci_put_string(document, object, "path", hook->path, err) < 0 ||
	    oci_put_strings(document, object, "args", hook->args, hook->n_args, err) < 0 ||
	    oci_put_strings(document, object, "env", hook->env, hook->n_env, err) < 0 ||
	    (hook->has_timeout && oci_put_number(document, object, "timeout", hook->timeout, err) < 0))
		return -1;
	return graft_json_append(document, list, object, err);
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_runtime_hook(const struct graft_json_node *hook)
{
	const char *path = graft_json_node_string(graft_json_node_member(hook, "path"));
	const char *name = path ? last_component(path) : "";

	return strcmp(name, "nvidia-container-runtime-hook") == 0 || strcmp(name, "nvidia-container-toolkit") == 0;
}

/* The prestart hooks; *ret_list is NULL where there are none. -1 where a name is there twice: nobody knows which list is run. */
static int find_prestart(struct graft_json_document *document, struct graft_json_node **ret_list,
			 struct graft_error *err)
{
	struct graft_json_node *hooks = graft_json_node_at(graft_json_document_root(document), "hooks"), *list;

	*ret_list = NULL;
	if (graft_json_node_kind(hooks) != GRAFT_JSON_OBJECT)
		return 0;
	if (!graft_json_make(document, "hooks", GRAFT_JSON_OBJECT, err))
		return -1;
	list = graft_json_node_member(hooks, "prestart");
	if (graft_json_node_kind(list) != GRAFT_JSON_ARRAY)
		return 0;
	*ret_list = graft_json_make(document, "hooks.prestart", GRAFT_JSON_ARRAY, err);
	return *ret_list ? 0 : -1;
}

int graft_oci_remove_runtime_hook(struct graft_json_document *document, struct graft_error *err)
{
	struct graft_json_node *list, *next;
	int n = 0;

	if (find_prestart(document, &list, err) < 0)
		return -1;
	for (struct graft_json_node *hook = graft_json_node_first(list); hook; hook = next) {
		next = graft_json_node_next(hook);
		if (is_runtime_hook(hook)) {
			graft_json_remove(document, hook);
			n++;
		}
	}
	if (n > 0 && !graft_json_node_first(list))
		graft_json_remove(document, list);
	return n;
}

int graft_oci_insert_runtime_hook(struct graft_json_document *document, const char *path, struct graft_error *err)
{
	const char *args[] = { last_component(path), "prestart" };
	const struct graft_cdi_hook ours = { .stage = "prestart", .path = path, .args = args, .n_args = 2 };
	struct graft_json_node *list;

	if (find_prestart(document, &list, err) < 0)
		return -1;
	for (const struct graft_json_node *hook = graft_json_node_first(list); hook;
	     hook = graft_json_node_next(hook)) {
		if (is_runtime_hook(hook))
			return 0;
	}
	return oci_put_hook(document, &ours, err);
}
