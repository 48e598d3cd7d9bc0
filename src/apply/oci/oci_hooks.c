/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_hooks: hooks of an OCI configuration: those of edits and that of the NVIDIA runtime (SPEC
 * runtime-and-hook 6.2, 6.3). Runs nothing.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "apply/oci/oci_edits.h"
#include "apply/oci/oci_put.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "plan/spec_hooks.h"

/*
 * This stage comes after the container's mounts are made and before its root is changed: it runs
 * files of the host in surroundings that the image controls.
 */
#define CREATE_CONTAINER "createContainer"

static bool is_stage(const char *name)
{
	static const char *const stages[] = { "prestart",       "createRuntime", "createContainer",
					      "startContainer", "poststart",     "poststop" };

	return graft_is_in(stages, GRAFT_COUNT(stages), name);
}

/*
 * SECURITY: a hook with no list, or an empty one, inherits the low-level runtime's environment,
 * which images can influence (CVE-2025-23266).
 */
static int put_environment(struct graft_json_document *document, struct graft_json_node *object, const char *path,
			   const char *const *env, size_t n_env, struct graft_error *err)
{
	const char *own = graft_spec_hook_variable(path);

	return n_env > 0 ? oci_put_strings(document, object, "env", env, n_env, err)
			 : oci_put_strings(document, object, "env", &own, 1, err);
}

/* SECURITY: the working directory of these hooks belongs to the image. */
static int check_path(const char *stage, const char *path, struct graft_error *err)
{
	if (strcmp(stage, CREATE_CONTAINER) != 0 || path[0] == '/')
		return 0;
	return graft_fail(err, GRAFT_INVALID, 0,
			  "the path of hook program '%s' is not absolute, so a program of the image would run", path);
}

int oci_put_hook(struct graft_json_document *document, const struct graft_cdi_hook *hook, struct graft_error *err)
{
	struct graft_json_node *list, *object;
	char path[64];

	if (!is_stage(hook->stage))
		return graft_fail(err, GRAFT_INVALID, 0, "unknown hook name \"%s\"", hook->stage);
	if (check_path(hook->stage, hook->path, err) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "hooks.%s", hook->stage);
	list = graft_json_make(document, path, GRAFT_JSON_ARRAY, err);
	object = list ? graft_json_new_object(document, err) : NULL;
	if (!object || oci_put_string(document, object, "path", hook->path, err) < 0 ||
	    oci_put_strings(document, object, "args", hook->args, hook->n_args, err) < 0 ||
	    ((hook->n_env > 0 || !graft_cdi_hook_is_of_image(hook)) &&
	     put_environment(document, object, hook->path, hook->env, hook->n_env, err) < 0) ||
	    (hook->has_timeout && oci_put_number(document, object, "timeout", hook->timeout, err) < 0))
		return -1;
	return graft_json_append(document, list, object, err);
}

static bool is_runtime_hook(struct graft_json_node *hook, void *arg)
{
	const char *path = graft_json_node_string(graft_json_node_member(hook, "path"));
	const char *name = path ? graft_path_name(path) : "";

	(void)arg;
	return strcmp(name, "nvidia-container-runtime-hook") == 0 || strcmp(name, "nvidia-container-toolkit") == 0;
}

/*
 * Finds the hooks of a stage; *ret_list is NULL if it has none. Fails if a name occurs twice, since
 * it is undefined which list would be run.
 */
static int find_stage(struct graft_json_document *document, const char *stage, struct graft_json_node **ret_list,
		      struct graft_error *err)
{
	struct graft_json_node *hooks = graft_json_node_at(graft_json_document_root(document), "hooks"), *list;
	char path[64];

	*ret_list = NULL;
	if (graft_json_node_kind(hooks) != GRAFT_JSON_OBJECT)
		return 0;
	if (!graft_json_make(document, "hooks", GRAFT_JSON_OBJECT, err))
		return -1;
	list = graft_json_node_member(hooks, stage);
	if (graft_json_node_kind(list) != GRAFT_JSON_ARRAY)
		return 0;
	(void)snprintf(path, sizeof(path), "hooks.%s", stage);
	*ret_list = graft_json_make(document, path, GRAFT_JSON_ARRAY, err);
	return *ret_list ? 0 : -1;
}

/*
 * SECURITY: what is given twice, or is not a list of strings, is an environment for some readers
 * and none for others. Returns 1 if there is one, 0 if there is none.
 */
static int has_environment(const struct graft_json_node *hook, struct graft_error *err)
{
	const struct graft_json_node *env = graft_json_node_member(hook, "env");
	enum graft_json_kind kind = graft_json_node_kind(env);
	bool sound = !env || kind == GRAFT_JSON_ARRAY || kind == GRAFT_JSON_NULL;

	GRAFT_JSON_EACH(member, hook) {
		const char *name = graft_json_node_name(member);

		/* A NUL, by which there is no name here, ends it for some readers. */
		sound = sound && (member == env || (name && strcasecmp(name, "env") != 0));
	}
	GRAFT_JSON_EACH(item, env)
		sound = sound && graft_json_node_string(item);
	if (!sound)
		return graft_fail(err, GRAFT_FORMAT, 0,
				  "the environment of a createContainer hook is not one list of strings");
	return graft_json_node_first(env) != NULL;
}

int graft_oci_close_hooks(struct graft_json_document *document, struct graft_error *err)
{
	struct graft_json_node *list;
	int n = 0;

	if (find_stage(document, CREATE_CONTAINER, &list, err) < 0)
		return -1;
	GRAFT_JSON_EACH(hook, list) {
		const char *path = graft_json_node_string(graft_json_node_member(hook, "path"));
		int found;

		if (graft_json_node_kind(hook) != GRAFT_JSON_OBJECT)
			continue;
		if (path && check_path(CREATE_CONTAINER, path, err) < 0)
			return -1;
		found = has_environment(hook, err);
		if (found < 0)
			return -1;
		if (found > 0)
			continue;
		if (put_environment(document, hook, path ? path : "", NULL, 0, err) < 0)
			return -1;
		n++;
	}
	return n;
}

int graft_oci_remove_runtime_hook(struct graft_json_document *document, struct graft_error *err)
{
	struct graft_json_node *list;
	int n = 0;

	if (find_stage(document, "prestart", &list, err) < 0)
		return -1;
	if (list)
		n = (int)graft_json_remove_each(document, list, is_runtime_hook, NULL);
	if (n > 0 && !graft_json_node_first(list))
		graft_json_remove(document, list);
	return n;
}

int graft_oci_insert_runtime_hook(struct graft_json_document *document, const char *path, const char **env,
				  size_t n_env, struct graft_error *err)
{
	const char *args[] = { graft_path_name(path), "prestart" };
	const struct graft_cdi_hook ours = {
		.stage = "prestart", .path = path, .args = args, .n_args = 2, .env = env, .n_env = n_env
	};
	struct graft_json_node *list;

	if (find_stage(document, "prestart", &list, err) < 0)
		return -1;
	GRAFT_JSON_EACH(hook, list) {
		if (is_runtime_hook(hook, NULL))
			return 0;
	}
	return oci_put_hook(document, &ours, err);
}

/* How dockerd calls itself to put an interface into the network namespace; it looks at no file. */
static bool is_network_hook(const struct graft_json_node *hook)
{
	const struct graft_json_node *args = graft_json_node_member(hook, "args");
	const char *name = graft_json_node_string(graft_json_node_first(args));

	return name && strcmp(name, "libnetwork-setkey") == 0;
}

size_t graft_oci_count_hooks(const struct graft_json_document *document, const char *stage)
{
	const struct graft_json_node *hooks = graft_json_node_at(graft_json_document_root(document), "hooks");
	size_t n = 0;

	GRAFT_JSON_EACH(hook, graft_json_node_member(hooks, stage))
		n += !is_network_hook(hook);
	return n;
}

bool graft_oci_has_early_hooks(const struct graft_json_document *document)
{
	return graft_oci_count_hooks(document, "prestart") > 0 ||
	       graft_oci_count_hooks(document, "createRuntime") > 0 ||
	       graft_oci_count_hooks(document, CREATE_CONTAINER) > 0;
}
