/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_bundle: reads config.json, determines what its container requests and the mode that provides
 * it, lets the mode edit the document, and writes it back. The edits themselves are left to the
 * modes.
 */

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "apply/oci/oci_edits.h"
#include "apply/oci/oci_file.h"
#include "base/cleanup.h"
#include "host/platform.h"
#include "lease/lease_take.h"
#include "start/give.h"
#include "start/lease_claim.h"
#include "start/locate.h"
#include "start/share_mps.h"
#include "start/start.h"

/* The id of the lease whose GPUs are in the edited configuration. */
#define LEASE_ANNOTATION "graft.lease"

struct choice {
	enum graft_mode mode;
	bool no_board;                    /* the host was examined, and is not a Tegra board */
	struct graft_container container; /* without annotations unless the mode is cdi (SPEC runtime-and-hook 5.3) */
};

/* ---- the mode ---- */

/*
 * The kind of host matters only to a container that requests a GPU: for any other, all modes that
 * "auto" can resolve to do the same. Looks at files, not at the driver.
 */
static struct graft_platform_facts probe_host(void *arg)
{
	const struct graft_log *const *log = arg;
	const struct graft_platform_facts facts = graft_platform_of_host();

	graft_debug(*log, "platform: dxcore=%d tegra-files=%d nvml=%d integrated-gpu=%d", facts.dxcore,
		    facts.tegra_files, facts.nvml, facts.integrated_gpu);
	return facts;
}

static struct graft_platform_facts probe_nothing(void *arg)
{
	(void)arg;
	return (struct graft_platform_facts){ .nvml = false };
}

static int fail_mode(const struct graft_config *config, struct graft_error *err)
{
	return graft_wrap(err, "nvidia-container-runtime.mode in %s", config->file ? config->file : "the defaults");
}

/*
 * SPEC runtime-and-hook 5.3: annotations can request CDI devices and nothing else. They take part
 * in choosing the mode; if the result is not cdi, the container is read again without them and the
 * mode stays.
 */
static int choose_mode(const struct graft_config *config, const char *word, const struct graft_oci_spec *spec,
		       const struct graft_log *log, struct graft_arena *arena, struct choice *ret_choice,
		       struct graft_error *err)
{
	struct graft_container first;
	bool may_be_cdi = strcmp(word, "auto") == 0 || strcmp(word, graft_mode_names[GRAFT_MODE_CDI]) == 0;

	if (graft_container_read(spec, config, may_be_cdi, log, arena, &first, err) < 0)
		return -1;
	ret_choice->container = first;
	ret_choice->no_board = false;
	if (graft_mode_resolve(word, &first, GRAFT_MODE_JIT_CDI, probe_nothing, NULL, &ret_choice->mode, err) < 0)
		return fail_mode(config, err);
	if (ret_choice->mode == GRAFT_MODE_CDI || strcmp(word, "auto") != 0)
		return 0;
	if (first.origin == GRAFT_ORIGIN_ANNOTATIONS) {
		graft_debug(log, "ignoring the annotations: not all of them name CDI devices");
		if (graft_container_read(spec, config, false, log, arena, &ret_choice->container, err) < 0)
			return -1;
	}
	if (!ret_choice->container.wants_devices)
		return 0;
	if (graft_mode_resolve(word, &first, GRAFT_MODE_JIT_CDI, probe_host, &log, &ret_choice->mode, err) < 0)
		return -1;
	ret_choice->no_board = ret_choice->mode == GRAFT_MODE_JIT_CDI;
	return 0;
}

static void log_mode(const struct graft_log *log, const char *word, const struct choice *choice)
{
	const char *name = graft_mode_names[choice->mode];

	if (!choice->container.wants_devices)
		graft_debug(log, "mode %s (configured: %s); the container asks for no GPU", name, word);
	else if (strcmp(word, "auto") == 0)
		graft_info(log, "Auto-detected mode as '%s'; devices are requested by %s", name,
			   choice->container.origin_name);
	else
		graft_info(log, "Using requested mode '%s'; devices are requested by %s", name,
			   choice->container.origin_name);
}

/* ---- the edits ---- */

static int (*const modes[GRAFT_MODE_MAX])(struct graft_start *create, struct graft_error *err) = {
	[GRAFT_MODE_LEGACY] = graft_mode_legacy,
	[GRAFT_MODE_JIT_CDI] = graft_mode_jit_cdi,
	[GRAFT_MODE_CDI] = graft_mode_cdi,
	[GRAFT_MODE_CSV] = graft_mode_csv,
};

/*
 * SPEC runtime-and-hook 6.2: in all modes but legacy the hook of `docker run --gpus` would do the
 * work a second time.
 */
static int remove_hooks(const struct graft_start *create, struct graft_error *err)
{
	int n = create->spec->n_prestart > 0 ? graft_oci_remove_runtime_hook(create->document, err) : 0;

	if (n > 0)
		graft_debug(create->log, "removed %d prestart hooks of NVIDIA: this mode does their work", n);
	return n < 0 ? -1 : 0;
}

/*
 * SECURITY: this includes the hooks of others, which an engine took from CDI specifications itself.
 */
static int close_hooks(const struct graft_start *create, struct graft_error *err)
{
	int n = graft_oci_close_hooks(create->document, err);

	if (n > 0)
		graft_debug(create->log, "gave %d createContainer hooks without an environment one of their own", n);
	return n < 0 ? -1 : 0;
}

/*
 * root.path as an absolute path, with what is there now; NULL if it cannot be determined, or if
 * hooks have to read the OCI state.
 */
static const char *find_hook_root(const struct graft_start *create)
{
	const char *path = create->spec->root_path, *bundle = create->bundle;
	bool absolute = path && path[0] == '/', joinable = path && path[0] != '\0' && bundle && bundle[0] == '/';
	struct stat st;

	/* With a mount at "/", the root is that mount. */
	if ((!absolute && !joinable) || graft_oci_spec_mount_at(create->spec, "/", create->arena) ||
	    !graft_low_level_ignores_unread_state(create->low_level, create->arena))
		return NULL;
	path = absolute ? path : graft_arena_printf(create->arena, "%s/%s", bundle, path);
	if (!path || stat(path, &st) < 0)
		return NULL;
	return graft_arena_printf(create->arena, "%ju:%ju:%s", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, path);
}

static int find_helpers(struct graft_start *create, enum graft_mode mode, struct graft_error *err)
{
	if (mode == GRAFT_MODE_LEGACY)
		create->hook_path = graft_locate_hook(create->config, create->log, create->arena);
	if (create->container->wants_devices) {
		create->cdi_hook_path = graft_locate_cdi_hook(create->config, create->log, create->arena);
		create->hook_root = find_hook_root(create);
	}
	return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
}

static int edit(struct graft_start *create, enum graft_mode mode, struct graft_error *err)
{
	int rc;

	if (close_hooks(create, err) < 0 || (mode != GRAFT_MODE_LEGACY && remove_hooks(create, err) < 0))
		return -1;
	if (mode != GRAFT_MODE_LEGACY && !create->container->wants_devices)
		return 0;
	if (find_helpers(create, mode, err) < 0)
		return -1;
	create->budget = graft_budget_new(GRAFT_BUDGET_CPU_MS);
	if (!create->budget)
		return graft_fail_memory(err);
	rc = create->container->wants_devices ? graft_start_look_at_mounts(create, err) : 0;
	if (rc == 0)
		rc = modes[mode](create, err);
	/* The waiting edits use the rest. The runtime must not see a reader of ours. */
	(void)graft_budget_end_child(create->budget);
	if (create->waiting.plan)
		create->waiting.budget = TAKE_PTR(create->budget);
	create->budget = graft_budget_free(create->budget);
	return rc;
}

static int edit_and_write(struct graft_start *create, enum graft_mode mode, struct graft_error *err)
{
	if (edit(create, mode, err) < 0)
		return graft_wrap(err, "could not apply required modification to OCI specification: error modifying "
				       "OCI spec");
	if (!graft_json_document_changed(create->document)) {
		graft_debug(create->log, "config.json stays unchanged");
		return 0;
	}
	if (graft_oci_file_write(create->bundle, create->document, err) < 0)
		return graft_wrap(err,
				  "could not apply required modification to OCI specification: error writing OCI spec");
	graft_debug(create->log, "config.json was rewritten");
	return 0;
}

/*
 * Errors of opening and reading already name the file. Errors in the content get the prefix that
 * tools look for.
 */
static int fail_content(struct graft_error *err)
{
	if (err->status != GRAFT_FORMAT && err->status != GRAFT_TOO_BIG)
		return -1;
	return graft_wrap(err, "error loading OCI specification from file: error reading OCI specification");
}

/*
 * The edited configuration has the nodes of the lease's GPUs and no longer asks for any, so a
 * second container made from it would have them without a lease.
 */
static int refuse_used_bundle(const struct graft_config *config, const struct graft_oci_spec *spec,
			      struct graft_error *err)
{
	for (size_t i = 0; graft_config_lends(config) && i < spec->n_annotations; i++) {
		if (strcmp(spec->annotations[i].key, LEASE_ANNOTATION) != 0)
			continue;
		(void)graft_fail(err, GRAFT_INVALID, 0,
				 "config.json has the GPUs of lease %.32s, which belong to another container",
				 spec->annotations[i].value);
		return graft_with_hint(err, "Make a new bundle for each container.");
	}
	return 0;
}

static int lease_devices(const struct graft_config *config, const struct graft_oci_arguments *arguments,
			 struct graft_start *create, struct choice *choice, struct graft_error *err)
{
	const struct graft_lease_container container = { .cgroups_path = create->spec->cgroups_path,
							 .pid_file = arguments->pid_file,
							 .id = arguments->container };
	const struct graft_lease_for whom = { .container = &container,
					      .wait = choice->container.lease_wait,
					      .owner = choice->container.lease_owner,
					      .what = choice->container.lease_what,
					      .has_user = create->spec->has_process,
					      .user = graft_start_host_uid(create->spec) };
	struct graft_json_node *annotations, *value;
	struct graft_lease lease;

	if (refuse_used_bundle(config, create->spec, err) < 0 ||
	    graft_start_lease_claim(config, &whom, create->log, create->arena, &choice->container.devices, &lease,
				    err) < 0)
		return -1;
	if (!lease.id)
		return 0;
	if (graft_start_share_mps(create, &lease, err) < 0)
		return graft_wrap(err, "lease");
	annotations = graft_json_make(create->document, "annotations", GRAFT_JSON_OBJECT, err);
	value = annotations ? graft_json_new_string(create->document, lease.id, err) : NULL;
	return value ? graft_json_set_key(create->document, annotations, LEASE_ANNOTATION, value, err) : -1;
}

int graft_start_edit_bundle(const struct graft_config *config, const char *word, const char *low_level,
			    const struct graft_oci_arguments *arguments, const struct graft_log *log,
			    struct graft_arena *arena, struct graft_oci_waiting *ret_waiting, struct graft_error *err)
{
	const char *bundle = arguments->bundle && arguments->bundle[0] != '\0' ? arguments->bundle : NULL;
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_start create = {
		.config = config, .low_level = low_level, .comes_back = ret_waiting != NULL, .log = log, .arena = arena
	};
	struct graft_oci_spec spec;
	struct choice choice;

	if (graft_oci_file_read(bundle, &document, err) < 0)
		return -1;
	if (graft_oci_spec_read(document, arena, &spec, err) < 0)
		return fail_content(err);
	if (choose_mode(config, word, &spec, log, arena, &choice, err) < 0)
		return -1;
	log_mode(log, word, &choice);
	create.bundle = bundle;
	create.document = document;
	create.spec = &spec;
	/* In mode legacy the hook takes the lease, because it knows the container's process. */
	if (choice.mode != GRAFT_MODE_LEGACY && lease_devices(config, arguments, &create, &choice, err) < 0)
		return -1;
	create.container = &choice.container;
	create.no_board = choice.no_board;
	if (edit_and_write(&create, choice.mode, err) < 0) {
		graft_oci_waiting_done(&create.waiting);
		return -1;
	}
	if (ret_waiting)
		*ret_waiting = create.waiting;
	return 0;
}
