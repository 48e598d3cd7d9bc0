/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_versions: versions of installed engines, from the text databases of dpkg and apk. No program
 * is run to ask for its version. RPM's database is binary and is not read: on its hosts, and for
 * engines without a package, the program itself says which CDI library it was built with. Debian's
 * programs lack that information.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "doctor/look.h"
#include "engine/cdi_versions.h"
#include "formats/loader/go_build.h"

#define DATABASE_MAX ((off_t)64 << 20)

/* Records are separated by empty lines and have one field per line, the name before the others. */
struct package_database {
	const char *path, *name, *version;
	const char *state; /* line of packages that are installed; NULL = all are */
};

static const struct package_database databases[] = {
	{ "/var/lib/dpkg/status", "Package: ", "\nVersion: ", "\nStatus: install ok installed\n" },
	{ "/lib/apk/db/installed", "P:", "\nV:", NULL },
};

/* The first installed one counts. */
static const struct {
	enum graft_health_engine_kind kind;
	const char *name;
} packages[] = {
	{ GRAFT_ENGINE_DOCKER, "docker-ce" },
	{ GRAFT_ENGINE_DOCKER, "docker.io" },
	{ GRAFT_ENGINE_DOCKER, "docker" },
	{ GRAFT_ENGINE_CONTAINERD, "containerd" },
	{ GRAFT_ENGINE_CONTAINERD, "containerd.io" },
	{ GRAFT_ENGINE_CRIO, "cri-o" },
	{ GRAFT_ENGINE_PODMAN, "podman" },
};

/* "5:27.3.1-1": what precedes the colon orders packages only. */
static const char *copy_version(struct graft_health_look *look, const char *version, const char *end)
{
	const char *newline = memchr(version, '\n', (size_t)(end - version)), *colon;

	end = newline ? newline : end;
	colon = memchr(version, ':', (size_t)(end - version));
	version = colon ? colon + 1 : version;
	return graft_arena_strndup(look->arena, version, (size_t)(end - version));
}

/* Takes the version of the package `i` from the rest of its record, which begins after its name. */
static void read_package(struct graft_health_look *look, const struct package_database *database, const char *at,
			 const char *end, size_t i)
{
	const char *stop = memmem(at, (size_t)(end - at), "\n\n", 2);
	size_t size = (size_t)((stop ? stop + 1 : end) - at);
	const char *version = memmem(at, size, database->version, strlen(database->version));

	if (version && !look->package_versions[i] &&
	    (!database->state || memmem(at, size, database->state, strlen(database->state))))
		look->package_versions[i] = copy_version(look, version + strlen(database->version), at + size);
}

static void read_packages(struct graft_health_look *look, const struct package_database *database, const char *text,
			  const char *end)
{
	for (const char *at = text; (at = memmem(at, (size_t)(end - at), database->name, strlen(database->name)));) {
		bool starts_line = at == text || at[-1] == '\n';
		const char *newline;

		at += strlen(database->name);
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!starts_line || !newline)
			continue;
		for (size_t i = 0; i < GRAFT_COUNT(packages); i++) {
			if ((size_t)(newline - at) == strlen(packages[i].name) &&
			    memcmp(at, packages[i].name, (size_t)(newline - at)) == 0)
				read_package(look, database, newline, end, i);
		}
		at = newline;
	}
}

/*
 * The database is mapped, not copied: it is the longest file that is read here, and package
 * managers replace it instead of changing it.
 */
static void read_database(struct graft_health_look *look, const struct package_database *database)
{
	auto_close int fd = graft_root_openat(look->host, database->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > DATABASE_MAX)
		return;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return;
	read_packages(look, database, text, text + st.st_size);
	(void)munmap(text, (size_t)st.st_size);
}

/* The library has moved: the second name is the older one. */
static void read_cdi_library(struct graft_health_look *look, struct graft_health_engine *engine)
{
	static const char *const modules[] = { "tags.cncf.io/container-device-interface",
					       "github.com/container-orchestrated-devices/container-device-interface" };
	auto_close int fd = graft_root_openat(look->host, engine->program, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	for (size_t i = 0; i < GRAFT_COUNT(modules) && fd >= 0 && !engine->cdi_library; i++)
		engine->cdi_library = graft_arena_strdup(look->arena,
							 graft_go_build_read(fd, modules[i], look->scratch));
}

void graft_health_look_version(struct graft_health_look *look, struct graft_health_engine *engine)
{
	if (!look->package_versions) {
		look->package_versions = graft_arena_alloc(look->scratch,
							   GRAFT_COUNT(packages) * sizeof(*look->package_versions));
		for (size_t i = 0; i < GRAFT_COUNT(databases) && look->package_versions; i++)
			read_database(look, &databases[i]);
	}
	for (size_t i = 0; i < GRAFT_COUNT(packages) && look->package_versions && !engine->version; i++) {
		if (packages[i].kind == engine->kind)
			engine->version = look->package_versions[i];
	}
	if (!engine->version && engine->program)
		read_cdi_library(look, engine);
}

bool graft_health_wants_config(const struct graft_health_look *look, const struct graft_health_engine *engine)
{
	const struct graft_cdi_reader *reader;

	if (!look->versions_only)
		return true;
	reader = graft_cdi_reader_find(graft_health_engine_names[engine->kind], engine->version, engine->cdi_library);
	return reader && !reader->newest && !reader->enabled && reader->reads[0] != '\0';
}
