/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_decision: evaluates the flags one by one, then the decisions that depend on several of them.
 */
#include "cli/ctk/cdi_decision.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/strings.h"
#include "cli/ctk/ctk_devices.h"
#include "plan/cdi_devices.h"
#include "plan/planner.h"
#include "start/config_file.h"
#include "start/find_program.h"

#define USUAL_PLACE     "/usr/bin/"
#define LEASE_HOOK_NAME "nvidia-container-runtime-hook"
#define ALL             "all"

/* ---- flags with a fixed set of values ---- */

static int check_format(const struct ctk_cdi_flags *given, struct graft_error *err)
{
	if (!given->format || strcasecmp(given->format, "json") == 0 || strcasecmp(given->format, "yaml") == 0)
		return 0;
	return graft_fail(err, GRAFT_INVALID, 0, "invalid output format: %s", given->format);
}

/* Sets GRAFT_CDI_MODES if the mode must be detected. */
static int read_mode(const struct ctk_cdi_flags *given, enum graft_cdi_mode *ret_mode, struct graft_error *err)
{
	*ret_mode = GRAFT_CDI_MODES;
	if (!given->mode || strcasecmp(given->mode, "auto") == 0)
		return 0;
	for (unsigned int i = 0; i < GRAFT_CDI_MODES; i++) {
		if (strcasecmp(given->mode, graft_cdi_modes[i].word) == 0) {
			*ret_mode = (enum graft_cdi_mode)i;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "invalid discovery mode: %s", given->mode);
}

static int read_namings(const struct ctk_list *words, unsigned int *ret_namings, struct graft_error *err)
{
	*ret_namings = words->given ? 0u : (unsigned int)(GRAFT_CDI_NAMING_INDEX | GRAFT_CDI_NAMING_UUID);
	for (size_t i = 0; i < words->n; i++) {
		unsigned int bit = 0;

		while (bit < GRAFT_CDI_NAMINGS && strcmp(words->items[i], graft_cdi_naming_words[bit]) != 0)
			bit++;
		if (bit == GRAFT_CDI_NAMINGS)
			return graft_fail(err, GRAFT_INVALID, 0, "invalid device name strategy: %s", words->items[i]);
		*ret_namings |= 1u << bit;
	}
	return 0;
}

static int read_provenance(const char *word, enum graft_cdi_provenance *ret_provenance, struct graft_error *err)
{
	*ret_provenance = GRAFT_CDI_PROVENANCE_AUTO;
	for (unsigned int i = 0; word && i < GRAFT_CDI_PROVENANCE_MAX; i++) {
		if (strcmp(word, graft_cdi_provenance_names[i]) == 0) {
			*ret_provenance = (enum graft_cdi_provenance)i;
			return 0;
		}
	}
	return word ? graft_fail(err, GRAFT_INVALID, 0, "invalid --provenance value: %s", word) : 0;
}

/* Versions below 0.5.0 do not allow numbers as device names. */
static int read_cdi_version(const char *word, const char **ret_version, struct graft_error *err)
{
	static const char *const versions[] = { "0.5.0", "0.6.0", "0.7.0" };

	*ret_version = NULL;
	if (!word || strcmp(word, "auto") == 0)
		return 0;
	for (size_t i = 0; i < GRAFT_COUNT(versions); i++) {
		if (strcmp(word, versions[i]) == 0)
			*ret_version = versions[i];
	}
	return *ret_version ? 0 : graft_fail(err, GRAFT_INVALID, 0, "invalid --cdi-version value: %s", word);
}

static int read_capabilities(const struct ctk_cdi_flags *given, uint32_t *ret_capabilities, struct graft_error *err)
{
	struct graft_request *request = graft_request_new();
	int rc = request ? 0 : graft_fail_memory(err);

	for (size_t i = 0; rc == 0 && i < given->capabilities.n; i++)
		rc = graft_request_capabilities(request, given->capabilities.items[i], err);
	if (rc == 0) {
		*ret_capabilities = given->capabilities.given ? request->capabilities
							      : (uint32_t)GRAFT_CAP_ALL & ~(uint32_t)GRAFT_CAP_COMPAT32;
		if (given->compat32)
			*ret_capabilities |= GRAFT_CAP_COMPAT32;
	}
	(void)graft_request_free(request);
	return rc;
}

/* SPEC ctk-and-cdi 1.5: unknown feature flags belong to other versions and are ignored. */
static void read_features(const struct ctk *ctk, const struct ctk_list *words, struct graft_cdi_demand *demand)
{
	for (size_t i = 0; i < words->n; i++) {
		if (!graft_cdi_set_feature(demand, words->items[i]))
			graft_debug(&ctk->log, "feature flag '%s' has no effect here", words->items[i]);
	}
}

/* ---- hooks ---- */

static void warn_of_unknown_hooks(const struct ctk *ctk, const struct ctk_list *words)
{
	for (size_t i = 0; i < words->n; i++) {
		struct graft_error why = { .status = GRAFT_OK };
		uint32_t bits = 0;

		if (graft_policy_disable_hook(&bits, words->items[i], &why) < 0)
			graft_warn(&ctk->log, "there is no hook '%s'%s", words->items[i],
				   graft_nearest_hint(graft_hook_names, GRAFT_HOOK_BITS, words->items[i], ctk->arena));
	}
}

/*
 * SPEC ctk-and-cdi 4.5: enabling a hook overrides disabling it. chmod is off unless enabled, and in
 * mode management the container creates its own device nodes.
 */
static void read_hooks(const struct ctk *ctk, const struct ctk_cdi_flags *given, struct graft_cdi_demand *demand)
{
	bool all = graft_is_in(given->disabled_hooks.items, given->disabled_hooks.n, ALL);

	warn_of_unknown_hooks(ctk, &given->disabled_hooks);
	warn_of_unknown_hooks(ctk, &given->enabled_hooks);
	demand->disabled_hooks = demand->mode == GRAFT_CDI_MODE_MANAGEMENT ? (uint32_t)GRAFT_HOOK_PARAMS : 0u;
	for (unsigned int i = 0; i < GRAFT_HOOK_BITS; i++) {
		if (all || graft_is_in(given->disabled_hooks.items, given->disabled_hooks.n, graft_hook_names[i]))
			demand->disabled_hooks |= 1u << i;
		if (graft_is_in(given->enabled_hooks.items, given->enabled_hooks.n, graft_hook_names[i]))
			demand->disabled_hooks &= ~(1u << i);
	}
	demand->chmod = graft_is_in(given->enabled_hooks.items, given->enabled_hooks.n, "chmod");
}

/* SPEC ctk-and-cdi 1.5: an absolute path is used as it is; any other name is searched for. */
static const char *choose_cdi_hook_path(const struct ctk *ctk, const char *value)
{
	const char *name = value && value[0] != '\0' ? value : CTK_CDI_HOOK_NAME, *usual;
	char path[PATH_MAX];
	struct stat st;

	if (name[0] == '/')
		return name;
	if (strchr(name, '/') ? graft_is_program(name, &st) : graft_find_program(name, NULL, NULL, &ctk->log, path))
		return strchr(name, '/') ? graft_path_clean(NULL, name, ctk->arena)
					 : graft_arena_strdup(ctk->arena, path);
	usual = graft_arena_printf(ctk->arena, USUAL_PLACE "%s",
				   strcmp(graft_path_name(name), "nvidia-ctk") == 0 ? "nvidia-ctk" : CTK_CDI_HOOK_NAME);
	if (usual)
		graft_warn(&ctk->log, "the hook program '%s' was not found; the spec says %s", name, usual);
	return usual;
}

/* The hook of leases: next to the other hook program, unless it is only found elsewhere. */
static const char *choose_lease_hook_path(const struct ctk *ctk, const char *hook_path)
{
	const char *slash = strrchr(hook_path, '/');
	const char *beside = graft_arena_printf(ctk->arena, "%.*s/" LEASE_HOOK_NAME, (int)(slash - hook_path),
						hook_path);
	char path[PATH_MAX];
	struct stat st;

	if (!beside || graft_is_program(beside, &st))
		return beside;
	if (graft_find_program(LEASE_HOOK_NAME, NULL, NULL, &ctk->log, path))
		return graft_arena_strdup(ctk->arena, path);
	graft_warn(&ctk->log, "the hook program '" LEASE_HOOK_NAME "' was not found; the spec says %s", beside);
	return beside;
}

static int read_cdi_leases(const struct ctk *ctk, const struct ctk_cdi_flags *given, struct graft_cdi_demand *demand,
			   struct graft_error *err)
{
	if (!given->leases)
		return 0;
	if (demand->mode != GRAFT_CDI_MODE_NVML)
		return graft_fail(err, GRAFT_INVALID, 0, "--leases needs mode nvml, and the mode is %s",
				  graft_cdi_modes[demand->mode].word);
	if (given->no_hooks)
		return graft_fail(err, GRAFT_INVALID, 0, "--leases and --no-hooks cannot be used together");
	demand->config = ctk->config && ctk->config[0] != '\0' ? ctk->config : NULL;
	if (demand->config && demand->config[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "--config must be an absolute path with --leases: '%s'",
				  demand->config);
	demand->lease_hook_path = choose_lease_hook_path(ctk, demand->hook_path);
	return demand->lease_hook_path ? 0 : graft_fail_memory(err);
}

/* ---- name of the output ---- */

static bool ends_in(const char *name, const char *ending)
{
	size_t length = strlen(name), n = strlen(ending);

	return length > n && strcasecmp(name + length - n, ending) == 0;
}

/*
 * SPEC ctk-and-cdi 1.5, 7.1 (9): readers of specifications look at "*.json" and "*.yaml" only, so
 * files are given one of these suffixes. The suffix overrides --format, as it does for these
 * readers.
 */
static int name_output(const struct ctk *ctk, const struct ctk_cdi_flags *given, struct ctk_cdi_decision *decision,
		       struct graft_error *err)
{
	static const struct {
		const char *ending, *proper;
		enum graft_cdi_format format;
	} endings[] = {
		{ ".json", ".json", GRAFT_CDI_JSON },
		{ ".yaml", ".yaml", GRAFT_CDI_YAML },
		{ ".yml", ".yaml", GRAFT_CDI_YAML },
	};
	const char *name = given->output && given->output[0] != '\0' ? given->output : NULL;
	bool json = given->format && strcasecmp(given->format, "json") == 0;

	decision->format = json ? GRAFT_CDI_JSON : GRAFT_CDI_YAML;
	if (!name)
		return 0;
	for (size_t i = 0; i < GRAFT_COUNT(endings) && !decision->output; i++) {
		if (!ends_in(name, endings[i].ending))
			continue;
		if (given->format && decision->format != endings[i].format)
			graft_warn(&ctk->log,
				   "--format=%s contradicts the name %s, by which engines read the file: writing %s",
				   given->format, name, endings[i].proper + 1);
		decision->format = endings[i].format;
		decision->output = graft_arena_printf(
		    ctk->arena, "%.*s%s", (int)(strlen(name) - strlen(endings[i].ending)), name, endings[i].proper);
	}
	if (!decision->output)
		decision->output = graft_arena_printf(ctk->arena, "%s%s", name, json ? ".json" : ".yaml");
	if (!decision->output)
		return graft_fail_memory(err);
	if (strcmp(decision->output, name) != 0)
		graft_warn(&ctk->log, "specs are read from *.json and *.yaml only: writing %s", decision->output);
	return 0;
}

/* ---- places ---- */

/*
 * The configured root applies only if neither flag nor variable is given. An empty value is not
 * ignored.
 */
static int read_driver_root(struct ctk *ctk, const struct ctk_cdi_flags *given, const char **ret_root,
			    struct graft_error *err)
{
	struct graft_config config;

	*ret_root = given->driver_root;
	if (given->driver_root)
		return 0;
	if (graft_config_file_load(GRAFT_CONFIG_OF_RUNTIME, ctk->config, ctk->arena, &config, err) < 0)
		return -1;
	graft_config_file_warn(&config, &ctk->log);
	if (ctk->config && ctk->config[0] != '\0' && !config.file)
		graft_warn(&ctk->log, "%s does not exist: using the default driver root", ctk->config);
	*ret_root = config.cli.root;
	return 0;
}

/*
 * Turns paths of the host into paths below the driver root, where all driver files are looked up.
 */
static int rebase(struct ctk *ctk, const char *option, const char *root, const struct ctk_list *paths,
		  const char *const **ret_paths, size_t *ret_n, struct graft_error *err)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
	const char **list = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < paths->n; i++) {
		const char *path = graft_path_clean(NULL, paths->items[i], ctk->arena);

		if (!path && graft_arena_failed(ctk->arena))
			return graft_fail_memory(err);
		if (!path)
			return graft_fail(err, GRAFT_INVALID, 0, "--%s: '%s' is not an absolute path", option,
					  paths->items[i]);
		if (strncmp(path, root, length) != 0 || (length > 0 && path[length] != '/' && path[length] != '\0'))
			return graft_fail(err, GRAFT_INVALID, 0, "--%s: %s is not below the driver root %s", option,
					  path, root);
		path += length;
		if (!graft_arena_push_string(ctk->arena, &list, ret_n, path[0] != '\0' ? path : "/"))
			return graft_fail_memory(err);
	}
	*ret_paths = list;
	return 0;
}

static int read_places(struct ctk *ctk, const struct ctk_cdi_flags *given, struct graft_cdi_places *places,
		       struct graft_error *err)
{
	const char *dev_root = given->dev_root && given->dev_root[0] != '\0' ? given->dev_root : NULL, *root;

	if (read_driver_root(ctk, given, &root, err) < 0 || ctk_clean_root(ctk, "driver-root", &root, err) < 0 ||
	    (dev_root && ctk_clean_root(ctk, "dev-root", &dev_root, err) < 0))
		return -1;
	*places = (struct graft_cdi_places){ .driver_root = root,
					     .dev_root = dev_root,
					     .path = secure_getenv("PATH"),
					     .csv_files = given->csv_files.items,
					     .n_csv_files = given->csv_files.n,
					     .csv_ignore_patterns = given->csv_ignore_patterns.items,
					     .n_csv_ignore_patterns = given->csv_ignore_patterns.n };
	if (rebase(ctk, "library-search-path", places->driver_root, &given->library_search_path,
		   &places->library_directories, &places->n_library_directories, err) < 0)
		return -1;
	return rebase(ctk, "config-search-path", places->driver_root, &given->config_search_path,
		      &places->data_directories, &places->n_data_directories, err);
}

/* ---- all flags ---- */

static int check_cdi_spec_kind(const struct graft_cdi_demand *demand, struct graft_error *err)
{
	if (graft_cdi_check_vendor(demand->vendor, err) < 0)
		return graft_wrap(err, "invalid CDI vendor name");
	if (graft_cdi_check_class(demand->class_, err) < 0)
		return graft_wrap(err, "invalid CDI class name");
	return 0;
}

/*
 * SPEC ctk-and-cdi 7.1 (10): other toolkits use nvidia.com/gpu in all modes, so that specs of
 * several modes conflict with each other.
 */
static void set_kind(const struct ctk *ctk, const struct ctk_cdi_flags *given, struct graft_cdi_demand *demand)
{
	const struct graft_cdi_mode_row *row = &graft_cdi_modes[demand->mode],
					*usual = &graft_cdi_modes[GRAFT_CDI_MODE_NVML];

	demand->vendor = given->vendor ? given->vendor : row->vendor;
	demand->class_ = given->class_ ? given->class_ : row->class_;
	if (strcmp(demand->vendor, given->vendor ? given->vendor : usual->vendor) != 0 ||
	    strcmp(demand->class_, given->class_ ? given->class_ : usual->class_) != 0)
		graft_info(&ctk->log, "The devices are of kind %s/%s in this mode; --vendor and --class change that",
			   demand->vendor, demand->class_);
}

/* Reads the flags that do not depend on the mode, in the order of SPEC ctk-and-cdi 1.5. */
static int read_generate_flags(struct ctk *ctk, const struct ctk_cdi_flags *given, struct ctk_cdi_decision *decision,
			       struct graft_error *err)
{
	struct graft_cdi_demand *demand = &decision->demand;

	if (check_format(given, err) < 0 || read_mode(given, &demand->mode, err) < 0 ||
	    read_namings(&given->namings, &demand->namings, err) < 0)
		return -1;
	demand->hook_path = given->no_hooks ? USUAL_PLACE CTK_CDI_HOOK_NAME
					    : choose_cdi_hook_path(ctk, given->hook_path);
	if (!demand->hook_path)
		return graft_fail_memory(err);
	return name_output(ctk, given, decision, err);
}

static void read_ids(const struct ctk *ctk, const struct ctk_cdi_flags *given, struct graft_cdi_demand *demand)
{
	static const char *const all[] = { ALL };

	demand->ids = given->ids.given ? given->ids.items : all;
	demand->n_ids = given->ids.given ? given->ids.n : GRAFT_COUNT(all);
	demand->no_all_device = given->no_all_device;
	if (graft_is_in(given->ids.items, given->ids.n, "none") && !demand->no_all_device) {
		graft_warn(&ctk->log, "Disabling generation of 'all' device");
		demand->no_all_device = true;
	}
}

int ctk_cdi_decide(struct ctk *ctk, const struct ctk_cdi_flags *given, struct ctk_cdi_decision *ret_decision,
		   struct graft_error *err)
{
	struct graft_cdi_demand *demand = &ret_decision->demand;
	const char *compat = given->csv_compat_directory;

	*ret_decision = (struct ctk_cdi_decision){ .output = NULL };
	if (read_generate_flags(ctk, given, ret_decision, err) < 0)
		return -1;
	demand->vendor = given->vendor ? given->vendor : graft_cdi_modes[GRAFT_CDI_MODE_NVML].vendor;
	demand->class_ = given->class_ ? given->class_ : graft_cdi_modes[GRAFT_CDI_MODE_NVML].class_;
	if (check_cdi_spec_kind(demand, err) < 0)
		return -1;
	if (graft_is_in(given->enabled_hooks.items, given->enabled_hooks.n, ALL))
		return graft_fail(err, GRAFT_INVALID, 0, "enabling all hooks is not supported");
	if (read_provenance(given->provenance, &demand->provenance, err) < 0 ||
	    read_cdi_version(given->cdi_version, &ret_decision->cdi_version, err) < 0 ||
	    read_capabilities(given, &demand->capabilities, err) < 0)
		return -1;
	read_ids(ctk, given, demand);
	if (read_places(ctk, given, &ret_decision->places, err) < 0)
		return -1;
	if (demand->mode == GRAFT_CDI_MODES &&
	    graft_cdi_detect_mode(&ret_decision->places, &ctk->log, &demand->mode, err) < 0)
		return -1;
	ret_decision->leases = given->leases;
	set_kind(ctk, given, demand);
	if (read_cdi_leases(ctk, given, demand, err) < 0)
		return -1;
	read_features(ctk, &given->features, demand);
	read_hooks(ctk, given, demand);
	demand->no_hooks = given->no_hooks;
	demand->late_mounts = given->late_mounts;
	if (demand->no_hooks && demand->late_mounts)
		return graft_fail(err, GRAFT_INVALID, 0, "--late-mounts and --no-hooks cannot be used together");
	demand->ldconfig_path = given->ldconfig_path && given->ldconfig_path[0] != '\0' ? given->ldconfig_path : NULL;
	demand->csv_compat_directory = compat && compat[0] != '\0' ? compat : CTK_CDI_ORIN_COMPAT;
	return 0;
}
