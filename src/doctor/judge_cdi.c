/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_cdi: judges CDI specs: whether they are valid, safe and up to date, and whether each engine
 * finds them and reads their version.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/judge_state.h"

#define GPU_KIND        "nvidia.com/gpu"
#define CDI_READ_BY_ALL "0.5.0" /* device names that are numbers need it */

/* --- what an engine does with the specs --- */

/* Where an engine, or our runtime, looks for specs. */
struct spec_reader {
	const char *const *directories; /* a later one counts more */
	size_t n;
	const struct graft_cdi_reader *reader; /* NULL: unknown version */
	bool reads_all;
};

/* Returns the place of a file's directory, from 1; 0 if it is not read. /var/run is /run. */
static size_t spec_place(const char *file, const struct spec_reader *by)
{
	const char *slash = strrchr(file, '/');
	size_t length = slash ? (size_t)(slash - file) : 0, skip = graft_starts_with(file, "/var/run/") ? 4 : 0;

	for (size_t i = by->n; i > 0; i--) {
		const char *directory = by->directories[i - 1];

		directory += graft_starts_with(directory, "/var/run/") ? 4 : 0;
		if (strlen(directory) == length - skip && strncmp(directory, file + skip, length - skip) == 0)
			return i;
	}
	return by->n == 0 ? 1 : 0;
}

static bool is_cdi_on(const struct graft_health_engine *engine, const struct graft_cdi_reader *reader)
{
	if (reader && reader->reads[0] == '\0')
		return false;
	if (graft_judge_docker_answers(engine))
		return engine->answer.n_cdi_directories > 0;
	if (engine->has_cdi)
		return engine->cdi;
	return reader ? reader->enabled : engine->kind == GRAFT_ENGINE_PODMAN || engine->kind == GRAFT_ENGINE_CRIO;
}

const struct graft_cdi_reader *graft_doctor_oldest_reader(const struct graft_health *health,
							  const struct graft_health_engine **ret_engine)
{
	const struct graft_cdi_reader *oldest = NULL;

	for (size_t i = 0; i < health->n_engines; i++) {
		const struct graft_health_engine *engine = &health->engines[i];
		const struct graft_cdi_reader *reader = graft_cdi_reader_find(graft_health_engine_names[engine->kind],
									      engine->version, engine->cdi_library);

		if (!reader || reader->newest || !is_cdi_on(engine, reader))
			continue;
		if (oldest && graft_cdi_version_compare(reader->reads, oldest->reads) >= 0)
			continue;
		oldest = reader;
		*ret_engine = engine;
	}
	return oldest;
}

/* An engine of unknown version is expected to read what all readers of CDI device names read. */
static bool can_read(const struct graft_cdi_reader *reader, const char *version)
{
	if (!version)
		return true;
	return reader ? graft_cdi_reader_reads(reader, version)
		      : graft_cdi_version_compare(version, CDI_READ_BY_ALL) <= 0;
}

const char *graft_judge_version(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	if (!engine->version)
		return graft_judge_text(judge, "CDI library %s", engine->cdi_library);
	return graft_judge_text(judge, "version %.*s", (int)graft_cdi_version_length(engine->version), engine->version);
}

static struct spec_reader reader_of(const struct graft_health_engine *engine)
{
	bool answers = graft_judge_docker_answers(engine);

	return (struct spec_reader){
		.directories = (const char *const *)(answers ? engine->answer.cdi_directories
							     : engine->cdi_directories),
		.n = answers ? engine->answer.n_cdi_directories : engine->n_cdi_directories,
		.reader = graft_cdi_reader_find(graft_health_engine_names[engine->kind], engine->version,
						engine->cdi_library),
	};
}

/* Returns a spec that counts more and has that device; NULL if none does. */
static const struct graft_health_spec *find_override(const struct graft_health_cdi *cdi,
						     const struct graft_health_spec *spec, const char *name,
						     const struct spec_reader *by)
{
	for (size_t i = 0; i < cdi->n_specs; i++) {
		const struct graft_health_spec *other = &cdi->specs[i];

		if (strcmp(other->kind, spec->kind) == 0 && spec_place(other->file, by) > spec_place(spec->file, by) &&
		    (by->reads_all || can_read(by->reader, other->version)) &&
		    graft_is_in(other->names, other->n_names, name))
			return other;
	}
	return NULL;
}

/* Returns a spec that has devices of this one, if all are taken elsewhere; otherwise NULL. */
static const struct graft_health_spec *
find_overriding(const struct graft_health_cdi *cdi, const struct graft_health_spec *spec, const struct spec_reader *by)
{
	const struct graft_health_spec *other = NULL;
	struct spec_reader usual = *by;

	if (by->n == 0) {
		usual.directories = cdi->directories;
		usual.n = cdi->n_directories;
	}
	for (size_t i = 0; i < spec->n_names; i++) {
		other = find_override(cdi, spec, spec->names[i], &usual);
		if (!other)
			return NULL;
	}
	return other;
}

struct graft_judge_cdi graft_judge_cdi_of(const struct graft_judge *judge, const struct graft_health_engine *engine)
{
	const struct graft_health_cdi *cdi = &judge->health->cdi;
	const struct spec_reader by = reader_of(engine);
	struct graft_judge_cdi found = { .state = GRAFT_CDI_OFF,
					 .reader = by.reader,
					 .directory = by.n > 0 ? by.directories[0] : NULL };

	if (!is_cdi_on(engine, found.reader))
		return found;
	found.state = GRAFT_CDI_NO_SPEC;
	for (size_t i = 0; i < cdi->n_specs; i++) {
		const struct graft_health_spec *spec = &cdi->specs[i];
		enum graft_judge_cdi_state state = GRAFT_CDI_WORKS;

		if (spec->n_devices == 0 || strcmp(spec->kind, GPU_KIND) != 0 || find_overriding(cdi, spec, &by))
			continue;
		if (spec_place(spec->file, &by) == 0)
			state = GRAFT_CDI_ELSEWHERE;
		else if (!can_read(found.reader, spec->version))
			state = found.reader ? GRAFT_CDI_TOO_NEW : GRAFT_CDI_PERHAPS;
		else if (spec->stale)
			state = GRAFT_CDI_STALE;
		if (state > found.state) {
			found.state = state;
			found.spec = spec;
		}
	}
	return found;
}

/*
 * Reports an engine that reads specs and finds none that it can use. Podman has a check of its own.
 */
static void judge_need(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	struct graft_judge_cdi cdi = graft_judge_cdi_of(judge, engine);
	bool podman = engine->kind == GRAFT_ENGINE_PODMAN;
	/* Engines that read specs by default may not be used that way. */
	bool asked_for = engine->has_cdi && engine->cdi;

	switch (cdi.state) {
	case GRAFT_CDI_TOO_NEW:
		graft_judge_add(
		    judge, podman ? GRAFT_CHECK_PODMAN : GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_BROKEN, engine->name,
		    "%s reads CDI specs up to %s, and %s is %s: it is ignored (unresolvable CDI "
		    "devices " GPU_KIND "=all)",
		    graft_judge_version(judge, engine), cdi.reader->reads, cdi.spec->file, cdi.spec->version)
		    ->remedy = graft_judge_text(judge,
						"Run 'nvidia-ctk cdi generate --output=%s': it writes what every "
						"engine of this host reads.",
						cdi.spec->file);
		break;
	case GRAFT_CDI_NO_SPEC:
		if (!podman && asked_for)
			graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_WARNING, engine->name,
					"CDI is enabled, but no spec has devices of " GPU_KIND " (unresolvable CDI "
					"devices " GPU_KIND "=all)")
			    ->remedy = graft_judge_text(judge, "Run 'nvidia-ctk cdi generate --output=%s/nvidia.yaml'.",
							cdi.directory ? cdi.directory : "/etc/cdi");
		break;
	case GRAFT_CDI_ELSEWHERE:
		graft_judge_add(
		    judge, podman ? GRAFT_CHECK_PODMAN : GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_WARNING, engine->name,
		    "reads CDI specs in %s, and %s is not there (unresolvable CDI devices " GPU_KIND "=all)",
		    cdi.directory, cdi.spec->file)
		    ->remedy = graft_judge_text(judge, "Run 'nvidia-ctk cdi generate --output=%s/nvidia.yaml'.",
						cdi.directory);
		break;
	case GRAFT_CDI_OFF:
		if (asked_for && cdi.reader)
			graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_WARNING, engine->name,
					"CDI is enabled, but %s does not read CDI specs",
					graft_judge_version(judge, engine))
			    ->remedy = "Upgrade the engine; until then use '--gpus' or the runtime nvidia.";
		break;
	case GRAFT_CDI_PERHAPS:
	case GRAFT_CDI_STALE:
	case GRAFT_CDI_WORKS:
		break;
	}
}

/* --- the specs themselves --- */

/* Our runtime gives these hooks an environment; an engine that reads specs itself does not. */
static void judge_spec_hooks(struct graft_judge *judge)
{
	const struct graft_health_cdi *cdi = &judge->health->cdi;

	for (size_t i = 0; i < cdi->n_specs; i++) {
		const struct graft_health_spec *spec = &cdi->specs[i];

		if (!spec->open_hook)
			continue;
		graft_judge_add(
		    judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_WARNING, spec->file,
		    "has hooks without an environment (%s): an engine that reads the spec runs them with the "
		    "variables of the image, which can make a program load the image's code as root "
		    "(CVE-2025-23266)",
		    spec->open_hook)
		    ->remedy =
		    graft_starts_with(spec->kind, "nvidia.com/")
			? graft_judge_text(judge,
					   "Run 'nvidia-ctk cdi refresh', or 'nvidia-ctk cdi generate "
					   "--output=%s'.",
					   spec->file)
			: "Give each hook a list 'env' with at least one variable, or generate the spec again "
			  "with the tool of its vendor.";
	}
}

static void judge_specs(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const struct graft_health_cdi *cdi = &health->cdi;

	for (size_t i = 0; i < cdi->n_problems; i++)
		graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_BROKEN, cdi->problems[i].path,
				"cannot be used: %s", cdi->problems[i].problem)
		    ->remedy = graft_judge_text(
		    judge,
		    "Remove it, or generate it again: 'nvidia-ctk cdi generate --output=%s'. "
		    "'nvidia-ctk cdi validate' lists each fault with its line.",
		    cdi->problems[i].path);
	for (size_t i = 0; i < health->n_engines; i++)
		judge_need(judge, &health->engines[i]);
	judge_spec_hooks(judge);
	if (cdi->n_specs > 0)
		graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "%zu spec%s", cdi->n_specs, cdi->n_specs == 1 ? "" : "s"),
				"with %zu devices", cdi->n_devices);
	else if (cdi->n_problems == 0)
		graft_judge_add(judge, GRAFT_CHECK_CDI_SPECS, GRAFT_LEVEL_OK,
				cdi->n_directories > 0 ? cdi->directories[0] : "/etc/cdi",
				"has no specs, which only '--device " GPU_KIND "=...' needs");
}

/* The same for our runtime and each engine that reads the spec. */
static const struct graft_health_spec *find_overriding_for_all(const struct graft_judge *judge,
							       const struct graft_health_spec *spec)
{
	const struct graft_health_cdi *cdi = &judge->health->cdi;
	const struct spec_reader runtime = { .reads_all = true };
	const struct graft_health_spec *other = find_overriding(cdi, spec, &runtime);

	for (size_t i = 0; other && i < judge->health->n_engines; i++) {
		const struct spec_reader by = reader_of(&judge->health->engines[i]);

		if (is_cdi_on(&judge->health->engines[i], by.reader) && spec_place(spec->file, &by) > 0 &&
		    !find_overriding(cdi, spec, &by))
			return NULL;
	}
	return other;
}

static void judge_stale(struct graft_judge *judge)
{
	const struct graft_health_cdi *cdi = &judge->health->cdi;
	size_t n = 0;

	for (size_t i = 0; i < cdi->n_specs; i++) {
		const struct graft_health_spec *other;

		if (!cdi->specs[i].stale)
			continue;
		n++;
		other = find_overriding_for_all(judge, &cdi->specs[i]);
		if (other) {
			graft_judge_add(judge, GRAFT_CHECK_CDI_STALE, GRAFT_LEVEL_OK, cdi->specs[i].file,
					"is stale, but not used: %s has its devices", other->file);
			continue;
		}
		graft_judge_add(judge, GRAFT_CHECK_CDI_STALE, GRAFT_LEVEL_BROKEN, cdi->specs[i].file, "is stale: %s",
				cdi->specs[i].stale)
		    ->remedy = graft_starts_with(cdi->specs[i].kind, "nvidia.com/")
				   ? graft_judge_text(judge,
						      "Run 'nvidia-ctk cdi refresh', or 'nvidia-ctk cdi generate "
						      "--output=%s'.",
						      cdi->specs[i].file)
				   : "Generate it again with the tool of its vendor, or remove it.";
	}
	if (n == 0 && cdi->n_specs > 0)
		graft_judge_add(judge, GRAFT_CHECK_CDI_STALE, GRAFT_LEVEL_OK, "specs", "everything they name exists");
}

void graft_judge_specs(struct graft_judge *judge)
{
	judge_specs(judge);
	judge_stale(judge);
}
