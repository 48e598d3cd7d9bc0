/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_refresh: nvidia-ctk cdi refresh: regenerates the CDI specifications that no longer fit this
 * host, each with its original options. Other specs stay, except that hooks without an environment
 * get one if an nvidia-ctk wrote the spec. To find out what a spec would look like today, `cdi
 * generate` is run and its output compared.
 */
#include <string.h>
#include <sys/stat.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/strings.h"
#include "cli/ctk/cdi_file.h"
#include "host/cdi_registry.h"
#include "plan/spec_hooks.h"
#include "start/cdi_spec.h"

#define SPEC_MODE      0644
#define SPEC_MAX       ((size_t)16 * 1024 * 1024)
#define STATUS_CHANGED 2
#define OTHER_OPTIONS  "it was made with different options"
#define OTHER_CONTENT  "what containers get from it has changed"
#define NOT_MADE       "this host no longer has such GPUs"
/* Options that make several files */
#define COHERENT "enable-coherent-annotations"
#define LEASES   "--leases"

struct refresh_options {
	struct ctk_base base;
	struct ctk_list directories;
	const char *output;
	bool check, exit_code;
};

/* clang-format off */
#define AT(member) .offset = offsetof(struct refresh_options, member)
static const struct graft_option options[] = {
	CTK_CDI_DIRECTORIES_OPTION(struct refresh_options, directories),
	{ .name = "output", TEXT, AT(output), .value_name = "FILE", ENV("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"),
	  .help = "Spec that must exist; if missing, it is made with the variables of 'cdi generate'" },
	{ .name = "check", FLAG, AT(check), ALIAS("dry-run"),
	  .help = "Change nothing; exit with 2 if there is something to do" },
	{ .name = "exit-code", FLAG, AT(exit_code), .help = "Exit with 2 if a spec was written" },
};
/* clang-format on */

/* Specifications of this host that one run of `cdi generate` makes. */
struct target {
	const char *path;   /* its first file */
	const char *flags;  /* how it is made, as recorded in its files */
	const char **words; /* the same as a list of options */
	size_t n_words;
};

/* A file that was made in the same run as the first file of a target, with the same options. */
struct companion {
	const char *path, *first, *flags;
};

struct made_file {
	const char *path, *bytes;
	size_t length;
};

struct refresh {
	struct ctk *ctk;
	const struct refresh_options *given;
	struct target *targets;
	size_t n_targets;
	struct companion *companions;
	size_t n_companions;
	/* specs that have hooks without an environment, and no record of how they were made */
	struct graft_cdi_spec *open;
	size_t n_open;
	struct made_file *made; /* by the current target */
	size_t n_made;
	size_t n_changed, n_failed;
	struct graft_buffer out;
};

/* ---- what to refresh ---- */

/* Also true for two names of one file, such as below /run and /var/run. */
static bool is_same_file(const char *a, const char *b)
{
	struct stat status_a, status_b;

	return strcmp(a, b) == 0 || (stat(a, &status_a) == 0 && stat(b, &status_b) == 0 &&
				     status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino);
}

static int add_target(struct refresh *refresh, const char *path, const char *flags, struct graft_error *err)
{
	struct target *target;

	for (size_t i = 0; i < refresh->n_targets; i++) {
		if (is_same_file(refresh->targets[i].path, path))
			return 0;
	}
	target = graft_arena_push(refresh->ctk->arena, &refresh->targets, &refresh->n_targets, sizeof(*target));
	if (!target)
		return graft_fail_memory(err);
	target->path = path;
	target->flags = flags;
	return graft_cdi_flags_read(flags, refresh->ctk->arena, &target->words, &target->n_words, err);
}

/*
 * "nvidia.coherent.yaml" of class "gpu.coherent" was made together with "nvidia.yaml" (SPEC
 * ctk-and-cdi 1.5) if the recorded flags split specs by coherence, and "nvidia.lease.yaml" of class
 * "lease" if they ask for leases.
 */
static const char *first_file(struct refresh *refresh, const struct graft_cdi_spec *spec, const char *flags)
{
	static const struct {
		const char *infix, *class_, *flag; /* how its class ends */
	} rows[] = {
		{ ".coherent", ".coherent", COHERENT },
		{ ".noncoherent", ".noncoherent", COHERENT },
		{ GRAFT_CDI_LEASE_INFIX, GRAFT_CDI_LEASE, LEASES },
	};
	const char *dot = strrchr(spec->file, '.');
	size_t stem = (size_t)(dot - spec->file);

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		size_t n = strlen(rows[i].infix);

		if (strstr(flags, rows[i].flag) && stem > n && strncmp(dot - n, rows[i].infix, n) == 0 &&
		    graft_ends_with(spec->class_, rows[i].class_))
			return graft_arena_printf(refresh->ctk->arena, "%.*s%s", (int)(stem - n), spec->file, dot);
	}
	return spec->file;
}

static int add_refresh_spec(struct refresh *refresh, const struct graft_cdi_spec *spec, struct graft_error *err)
{
	struct graft_arena *arena = refresh->ctk->arena;
	struct graft_cdi_fingerprint made;
	struct companion *companion;
	struct graft_cdi_spec *open;
	const char *path;
	int found = graft_cdi_fingerprint_find(spec, arena, &made, err);

	if (found < 0)
		return -1;
	if ((found == 0 || !made.flags) && graft_cdi_spec_find_open_hook(spec)) {
		open = graft_arena_push(arena, &refresh->open, &refresh->n_open, sizeof(*open));
		if (!open)
			return graft_fail_memory(err);
		*open = *spec;
		return 0;
	}
	if (found == 0 || !made.flags) {
		graft_debug(&refresh->ctk->log, "CDI spec %s does not record how it was made, and is left alone",
			    spec->file);
		return 0;
	}
	path = first_file(refresh, spec, made.flags);
	if (!path)
		return graft_fail_memory(err);
	if (path != spec->file) {
		companion = graft_arena_push(arena, &refresh->companions, &refresh->n_companions, sizeof(*companion));
		if (!companion)
			return graft_fail_memory(err);
		*companion = (struct companion){ spec->file, path, made.flags };
	}
	return add_target(refresh, path, made.flags, err);
}

static int find_targets(struct refresh *refresh, struct graft_error *err)
{
	const struct refresh_options *given = refresh->given;
	struct graft_cdi_registry registry;
	const char **words, *flags;
	size_t n;

	/* The required spec comes first, so that its options are the current ones. */
	if (given->output && given->output[0] != '\0') {
		ctk_read_variables(refresh->ctk, &ctk_cdi_generate, &words, &n);
		flags = ctk_cdi_flags_text(refresh->ctk, words, n);
		if (!flags)
			return graft_fail_memory(err);
		if (add_target(refresh, given->output, flags, err) < 0)
			return -1;
	}
	if (graft_cdi_registry_read(given->directories.items, given->directories.n, NULL, 0, NULL, &refresh->ctk->log,
				    refresh->ctk->arena, &registry, err) < 0)
		return -1;
	for (size_t i = 0; i < registry.n_specs; i++) {
		if (add_refresh_spec(refresh, &registry.specs[i], err) < 0)
			return -1;
	}
	return 0;
}

/* ---- what it would look like today ---- */

static int keep_file(void *arg, const char *path, const void *bytes, size_t length, struct graft_error *err)
{
	struct refresh *refresh = arg;
	struct graft_arena *arena = refresh->ctk->arena;
	struct made_file *file = graft_arena_push(arena, &refresh->made, &refresh->n_made, sizeof(*file));

	if (!file)
		return graft_fail_memory(err);
	file->path = graft_arena_strdup(arena, path);
	file->bytes = graft_arena_memdup(arena, bytes, length);
	file->length = length;
	return file->path && file->bytes ? 0 : graft_fail_memory(err);
}

/*
 * Runs `cdi generate` and collects its files in refresh->made. Its informational messages are
 * dropped, its warnings and errors are not. Returns its exit status.
 */
static int generate_refresh_target(struct refresh *refresh, const struct target *target)
{
	const struct ctk_sink sink = { keep_file, refresh };
	struct ctk inner = *refresh->ctk;
	const char **words = graft_arena_list(inner.arena, target->n_words + 1, sizeof(*words));

	refresh->made = NULL;
	refresh->n_made = 0;
	if (!words)
		return 1;
	for (size_t i = 0; i < target->n_words; i++)
		words[i] = target->words[i];
	words[target->n_words] = graft_arena_printf(inner.arena, "--output=%s", target->path);
	inner.sink = &sink;
	inner.no_variables = true;
	inner.config = NULL; /* if there was one, an option names it */
	inner.quiet = inner.quiet || !inner.debug;
	return ctk_run_words(&inner, &ctk_cdi_generate, words, target->n_words + 1);
}

/* ---- differences ---- */

/* The recorded boot id may differ: that is no reason to write the spec again. */
static bool is_same_text(struct refresh *refresh, const char *old, size_t length, const struct made_file *file,
			 const struct graft_cdi_fingerprint *made, const struct graft_cdi_fingerprint *now)
{
	char *copy;
	size_t n;

	if (length != file->length)
		return false;
	if (memcmp(old, file->bytes, length) == 0)
		return true;
	if (!made->boot_id || !now->boot_id || strlen(made->boot_id) != strlen(now->boot_id))
		return false;
	copy = graft_arena_memdup(refresh->ctk->arena, old, length);
	n = strlen(made->boot_id);
	for (char *at = copy; at && (at = memmem(at, length - (size_t)(at - copy), made->boot_id, n)); at += n)
		memcpy(at, now->boot_id, n);
	return copy && memcmp(copy, file->bytes, length) == 0;
}

static int find_difference(struct refresh *refresh, const struct graft_cdi_fingerprint *made,
			   const struct graft_cdi_fingerprint *now, const char **ret_why, struct graft_error *err)
{
	if (graft_cdi_fingerprint_compare(made, now, refresh->ctk->arena, ret_why, err) < 0)
		return -1;
	if (!*ret_why)
		*ret_why = made->flags && now->flags && strcmp(made->flags, now->flags) != 0 ? OTHER_OPTIONS
											     : OTHER_CONTENT;
	return 0;
}

/* Finds out why the existing file must be replaced; *ret_why is NULL if it is up to date. */
static int compare_made_file(struct refresh *refresh, const struct made_file *file, const char **ret_why,
			     struct graft_error *err)
{
	struct graft_arena *arena = refresh->ctk->arena;
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_cdi_fingerprint made, now;
	struct graft_cdi_spec old_spec, new_spec;
	const char *old;
	size_t length;
	int found = graft_host_file_read(file->path, SPEC_MAX, arena, &old, &length, err);

	*ret_why = found == 0 ? "there is none" : NULL;
	if (found <= 0)
		return found;
	if (graft_cdi_spec_read(file->path, file->bytes, file->length, arena, &new_spec, err) < 0 ||
	    graft_cdi_fingerprint_find(&new_spec, arena, &now, err) < 0)
		return -1;
	if (graft_cdi_spec_read(file->path, old, length, arena, &old_spec, &why) < 0) {
		*ret_why = graft_arena_strdup(arena, why.msg);
		return why.status == GRAFT_NO_MEMORY || !*ret_why ? graft_fail_memory(err) : 0;
	}
	if (graft_cdi_fingerprint_find(&old_spec, arena, &made, err) < 0)
		return -1;
	if (is_same_text(refresh, old, length, file, &made, &now))
		return 0;
	return find_difference(refresh, &made, &now, ret_why, err);
}

/* ---- the work ---- */

static int refresh_file(struct refresh *refresh, const struct made_file *file, struct graft_error *err)
{
	const struct graft_log *log = &refresh->ctk->log;
	const char *why;

	if (compare_made_file(refresh, file, &why, err) < 0)
		return -1;
	if (!why) {
		graft_info(log, "CDI spec %s is up to date", file->path);
		return 0;
	}
	graft_info(log, "CDI spec %s is stale: %s", file->path, why);
	if (!refresh->given->check) {
		if (graft_host_file_write(file->path, file->bytes, file->length, SPEC_MODE, err) < 0)
			return -1;
		graft_info(log, "Wrote CDI spec %s", file->path);
	}
	graft_buffer_printf(&refresh->out, "%s\n", file->path);
	refresh->n_changed++;
	return 0;
}

static bool is_made(const struct refresh *refresh, const char *path)
{
	for (size_t i = 0; i < refresh->n_made; i++) {
		if (is_same_file(refresh->made[i].path, path))
			return true;
	}
	return false;
}

/* Removes files that are no longer made; otherwise engines would continue to use them. */
static int drop_companions(struct refresh *refresh, const struct target *target, struct graft_error *err)
{
	const struct graft_log *log = &refresh->ctk->log;

	for (size_t i = 0; i < refresh->n_companions; i++) {
		const struct companion *companion = &refresh->companions[i];

		if (!is_same_file(companion->first, target->path) || strcmp(companion->flags, target->flags) != 0 ||
		    is_made(refresh, companion->path))
			continue;
		graft_info(log, "CDI spec %s is stale: " NOT_MADE, companion->path);
		if (!refresh->given->check) {
			if (graft_host_file_remove(companion->path, err) < 0)
				return -1;
			graft_info(log, "Removed CDI spec %s", companion->path);
		}
		graft_buffer_printf(&refresh->out, "%s\n", companion->path);
		refresh->n_changed++;
	}
	return 0;
}

/* A failure must not keep the other targets from being refreshed. */
static void refresh_target(struct refresh *refresh, const struct target *target)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (generate_refresh_target(refresh, target) != 0) {
		(void)graft_fail(&err, GRAFT_STALE, 0, "CDI spec %s is left unchanged", target->path);
		graft_log_write(&refresh->ctk->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s", err.msg);
		refresh->n_failed++;
		return;
	}
	for (size_t i = 0; i < refresh->n_made; i++) {
		if (refresh_file(refresh, &refresh->made[i], &err) < 0) {
			(void)ctk_fail(refresh->ctk, &err, "failed to refresh CDI spec %s", refresh->made[i].path);
			refresh->n_failed++;
			return;
		}
	}
	if (drop_companions(refresh, target, &err) < 0) {
		(void)ctk_fail(refresh->ctk, &err, "%s", "");
		refresh->n_failed++;
	}
}

/* ---- hooks without an environment ---- */

/* Rewriting the file would lose a user's comments. JSON has none. */
static bool has_comments(const char *text)
{
	const char *start = text + strspn(text, " \t\r\n");

	for (const char *at = *start == '{' ? NULL : strchr(start, '#'); at; at = strchr(at + 1, '#'))
		if (at == start || strchr(" \t\n", at[-1]))
			return true;
	return false;
}

/*
 * Finds nvidia-cdi-hook in the directory of the nvidia-ctk that the spec names. NULL: it does not
 * exist and nvidia-ctk stays, or out of memory.
 */
static const char *find_hook_beside_toolkit(struct refresh *refresh, const struct graft_cdi_spec *spec)
{
	const char *toolkit = graft_spec_hooks_find_toolkit(spec);
	const char *slash = toolkit && toolkit[0] == '/' ? strrchr(toolkit, '/') : NULL;
	const char *path = slash ? graft_arena_printf(refresh->ctk->arena, "%.*s/nvidia-cdi-hook",
						      (int)(slash - toolkit), toolkit)
				 : NULL;
	struct stat status;

	return path && stat(path, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111) ? path : NULL;
}

/* Finds out why only its author may change a spec; *ret_why is NULL if we may. */
static int find_mending_obstacle(struct refresh *refresh, const struct graft_cdi_spec *spec, const char **ret_why,
				 struct graft_error *err)
{
	const char *text;
	size_t length;

	*ret_why = NULL;
	if (!graft_spec_is_of_toolkit(spec)) {
		*ret_why = "nvidia-ctk did not write it";
		return 0;
	}
	if (graft_cdi_file_read(spec->file, refresh->ctk->arena, &text, &length, err) < 0)
		return -1;
	if (has_comments(text))
		*ret_why = "it has comments, which would be lost";
	return 0;
}

static int mend_open_spec(struct refresh *refresh, struct graft_cdi_spec *spec, struct graft_error *err)
{
	struct ctk *ctk = refresh->ctk;
	const char *program = graft_cdi_spec_find_open_hook(spec)->path, *why;

	if (find_mending_obstacle(refresh, spec, &why, err) < 0)
		return -1;
	if (why) {
		graft_warn(
		    &ctk->log,
		    "CDI spec %s has hooks without an environment (%s): an image's variables reach them "
		    "(CVE-2025-23266). It is left alone, as %s: give each a list 'env' with at least one variable",
		    spec->file, program, why);
		return 0;
	}
	graft_info(&ctk->log, "CDI spec %s has hooks without an environment (%s)", spec->file, program);
	if (!refresh->given->check) {
		if (graft_spec_hooks_mend_all(find_hook_beside_toolkit(refresh, spec), ctk->arena, spec, err) < 0 ||
		    ctk_cdi_save(ctk, spec, spec->file, err) < 0)
			return -1;
		graft_info(&ctk->log, "Wrote CDI spec %s", spec->file);
	}
	graft_buffer_printf(&refresh->out, "%s\n", spec->file);
	refresh->n_changed++;
	return 0;
}

static void mend_open_specs(struct refresh *refresh)
{
	for (size_t i = 0; i < refresh->n_open; i++) {
		struct graft_error err = { .status = GRAFT_OK };

		if (mend_open_spec(refresh, &refresh->open[i], &err) == 0)
			continue;
		(void)ctk_fail(refresh->ctk, &err, "failed to refresh CDI spec %s", refresh->open[i].file);
		refresh->n_failed++;
	}
}

static int refresh_all(struct refresh *refresh, struct graft_error *err)
{
	int status;

	if (find_targets(refresh, err) < 0)
		return -1;
	if (refresh->n_targets == 0 && refresh->n_open == 0)
		graft_info(&refresh->ctk->log, "No CDI spec records how it was made; there is nothing to refresh");
	for (size_t i = 0; i < refresh->n_targets; i++)
		refresh_target(refresh, &refresh->targets[i]);
	mend_open_specs(refresh);
	status = ctk_print(refresh->ctk, &refresh->out);
	if (refresh->n_failed > 0)
		return 1;
	return refresh->n_changed > 0 && (refresh->given->check || refresh->given->exit_code) ? STATUS_CHANGED : status;
}

static int refresh_cdi_specs(void *target, struct graft_error *err)
{
	const struct refresh_options *given = target;
	struct refresh refresh = { .ctk = given->base.ctk, .given = given };
	int status = refresh_all(&refresh, err);

	graft_buffer_done(&refresh.out);
	return status;
}

const struct graft_command ctk_cdi_refresh = {
	CTK_COMMAND,
	.name = "refresh",
	.summary = "Regenerate CDI specs that no longer fit this host",
	.description =
	    "Checks all specs that record how 'cdi generate' made them, and regenerates those that are outdated "
	    "because the driver, a GPU, a MIG instance or a library has changed. Each is made with the same "
	    "options as before. If the spec that --output names does not exist, it is made with the options from "
	    "the environment variables of 'cdi generate'.\n\nA spec that does not record how it "
	    "was made is left alone, except that hooks without an environment get one if nvidia-ctk made the spec; in "
	    "other specs they are only reported.\n\nPrints the names of the files that were written, or would be, and "
	    "the reasons on stderr. The exit status is 0 if all specs are up to date afterwards, 1 if one could not be "
	    "made (it is left unchanged), and 2 with --check or --exit-code if there was something to do.",
	GRAFT_OPTIONS(options),
	CTK_WORK(refresh_cdi_specs, struct refresh_options, .directories = CTK_CDI_DIRECTORIES),
};
