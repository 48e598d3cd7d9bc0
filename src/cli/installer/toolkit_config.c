/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolkit_config: config.toml of the installed toolkit (SPEC installer-and-nri 4): the defaults,
 * what the installer always sets, and what it was given.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "cli/installer/installer.h"
#include "start/config_file.h"
#include "start/installed.h"

struct edit {
	const struct installer_options *options;
	struct graft_toml *toml;
	struct graft_arena *arena;
};

/* Sets a key, whose comment in the defaults it replaces. NULL: out of memory. */
static int set_text(struct edit *edit, const char *key, const char *value, struct graft_error *err)
{
	const char *setting = value ? graft_arena_printf(edit->arena, "%s=%s", key, value) : NULL;

	return setting ? graft_config_set(&edit->toml, setting, ",", err) : graft_fail_memory(err);
}

static int set_flag_key(struct edit *edit, const char *key, bool value, struct graft_error *err)
{
	return set_text(edit, key, value ? "true" : "false", err);
}

/* A key that is only set if it was given and is not empty. */
static int set_given(struct edit *edit, const char *key, const char *value, struct graft_error *err)
{
	return !value || value[0] == '\0' ? 0 : set_text(edit, key, value, err);
}

/* Below the driver's root on the node; which of the two names it has there is seen from here. */
static const char *ldconfig_of(const struct edit *edit)
{
	const struct installer_options *o = edit->options;
	const char *host = strcmp(o->driver_root, "/") == 0 ? "" : o->driver_root;
	struct stat st;

	return graft_arena_printf(edit->arena, "@%s/sbin/ldconfig%s", host,
				  installer_stat_below(o->driver_root_ctr, "/sbin/ldconfig.real", &st) ? ".real" : "");
}

static int set_always(struct edit *edit, const struct ctk_list *runtimes, struct graft_error *err)
{
	const struct installer_options *o = edit->options;
	struct graft_arena *arena = edit->arena;

	if (set_flag_key(edit, "accept-nvidia-visible-devices-envvar-when-unprivileged", o->accept_envvar, err) < 0 ||
	    set_flag_key(edit, "accept-nvidia-visible-devices-as-volume-mounts", o->accept_mounts, err) < 0 ||
	    set_text(edit, "nvidia-container-cli.root", o->driver_root, err) < 0 ||
	    set_text(edit, "nvidia-container-cli.path",
		     graft_arena_printf(arena, "%s/nvidia-container-cli", o->toolkit), err) < 0 ||
	    set_text(edit, "nvidia-container-cli.ldconfig", ldconfig_of(edit), err) < 0 ||
	    set_text(edit, "nvidia-ctk.path", graft_arena_printf(arena, "%s/nvidia-ctk", o->toolkit), err) < 0 ||
	    set_text(edit, "nvidia-container-runtime-hook.path",
		     graft_arena_printf(arena, "%s/nvidia-container-runtime-hook", o->toolkit), err) < 0 ||
	    set_flag_key(edit, "nvidia-container-runtime-hook.skip-mode-detection", o->skip_mode_detection, err) < 0)
		return -1;
	return runtimes->n == 0 ? 0
				: graft_toml_set_strings(edit->toml, "nvidia-container-runtime.runtimes",
							 runtimes->items, runtimes->n, err);
}

static int set_features(struct edit *edit, struct graft_error *err)
{
	const struct ctk_list *features = &edit->options->opt_in_features;

	for (size_t i = 0; i < features->n; i++) {
		auto_buffer struct graft_buffer key = { 0 };

		graft_toml_add_name(&key, "features");
		graft_toml_add_name(&key, features->items[i]);
		if (graft_buffer_failed(&key))
			return graft_fail_memory(err);
		if (graft_toml_set_bool(edit->toml, graft_buffer_text(&key), true, err) < 0)
			return -1;
	}
	return 0;
}

static int set_optional(struct edit *edit, struct graft_error *err)
{
	const struct installer_options *o = edit->options;
	const struct ctk_list *prefixes = &o->annotation_prefixes;

	if (set_given(edit, "nvidia-container-runtime.debug", o->runtime_debug, err) < 0 ||
	    set_given(edit, "nvidia-container-runtime.log-level", o->runtime_log_level, err) < 0 ||
	    set_given(edit, "nvidia-container-runtime.mode", o->runtime_mode, err) < 0 ||
	    set_given(edit, "nvidia-container-runtime.modes.cdi.default-kind", o->cdi_default_kind, err) < 0 ||
	    set_given(edit, "nvidia-container-cli.debug", o->cli_debug, err) < 0)
		return -1;
	return prefixes->n == 0
		   ? 0
		   : graft_toml_set_strings(edit->toml, "nvidia-container-runtime.modes.cdi.annotation-prefixes",
					    prefixes->items, prefixes->n, err);
}

static int make_defaults_of_node(struct edit *edit, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_config_host host = { 0 };
	const char *path = installer_host_path(edit->options, "/");
	auto_buffer struct graft_buffer text = { .max = 0 };

	if (path && graft_root_open(&root, path, NULL) == 0)
		graft_config_file_host(&root, edit->arena, &host);
	if (graft_config_default_document(&host, edit->arena, &text, err) < 0)
		return -1;
	return graft_toml_parse("config.toml", graft_buffer_text(&text), text.length, &edit->toml, err);
}

/* Refuses a configuration that the toolkit's programs could not read. */
static int check_installed_config(const struct edit *edit, struct graft_error *err)
{
	const struct graft_config_host host = { 0 };
	struct graft_config config;

	if (graft_config_read(edit->toml, &host, edit->arena, &config, err) < 0)
		return -1;
	return ctk_warn_of_mistakes(edit->options->base.ctk, &config, err);
}

int installer_config_make(const struct installer_options *o, const struct ctk_list *runtimes,
			  struct graft_engine_text *ret_text, struct graft_error *err)
{
	struct edit edit = { .options = o, .arena = o->base.ctk->arena };
	int rc = make_defaults_of_node(&edit, err);

	if (rc == 0)
		rc = set_always(&edit, runtimes, err);
	if (rc == 0)
		rc = set_features(&edit, err);
	if (rc == 0)
		rc = set_optional(&edit, err);
	if (rc == 0)
		rc = check_installed_config(&edit, err);
	if (rc == 0) {
		const char *text = graft_toml_text(edit.toml, &ret_text->length);

		ret_text->bytes = graft_arena_strndup(edit.arena, text, ret_text->length);
		rc = ret_text->bytes ? 0 : graft_fail_memory(err);
	}
	graft_toml_free(edit.toml);
	return rc < 0 ? graft_wrap(err, "failed to make config.toml") : 0;
}

int installer_config_read_runtimes(const struct installer_options *o, struct ctk_list *ret_runtimes,
				   struct graft_error *err)
{
	const char *path = graft_arena_printf(o->base.ctk->arena, "%s/" GRAFT_OWN_CONFIG, o->toolkit);
	auto_toml struct graft_toml *toml = NULL;
	struct graft_error why = { .status = GRAFT_OK };
	char text[800];

	*ret_runtimes = (struct ctk_list){ .n = 0 };
	if (!path)
		return graft_fail_memory(err);
	if (graft_config_file_read(path, false, o->base.ctk->arena, &toml, &why) < 0 ||
	    graft_toml_get_strings(toml, "nvidia-container-runtime.runtimes", o->base.ctk->arena, &ret_runtimes->items,
				   &ret_runtimes->n, &why) < 0)
		graft_warn(&o->base.ctk->log, "Could not read the low-level runtimes of an earlier installation: %s",
			   graft_error_text(&why, text, sizeof(text)));
	return 0;
}
