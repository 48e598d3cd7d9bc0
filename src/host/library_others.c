/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_others: libraries that a driver ships and the catalog does not know (SPEC
 * runtime-and-hook 7.5: every library of the driver's version), and which libraries have a
 * development link. For containers that get the driver exactly as the host has it.
 */
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/strings.h"
#include "host/library_search.h"

#define NAME_MAX_LENGTH 256

/*
 * SPEC runtime-and-hook 7.5: every library of the driver. Nothing specifies which capability an
 * unknown library is for, so it takes all of them.
 */
bool graft_library_wants_others(const struct graft_survey *survey)
{
	const unsigned int all = GRAFT_CAP_ALL & ~(unsigned int)GRAFT_CAP_COMPAT32;

	return (survey->needs & GRAFT_NEED_EVERY_LIBRARY) && survey->inventory->platform == GRAFT_PLATFORM_NATIVE &&
	       (survey->options->capabilities & all) == all;
}

/* strstr() prepares a search that is longer than these names. */
static bool has_vendor(const char *soname)
{
	while ((soname = strchr(soname, 'n')))
		if (graft_starts_with(soname++, "nvidia"))
			return true;
	return false;
}

/*
 * Returns whether the record may be for a library of the driver that no row knows, before its file
 * is examined.
 */
static bool may_be_other(const struct search *search, const char *soname)
{
	const char *version = search->survey->inventory->driver_version.value;

	return search->wants_others && version && (has_vendor(soname) || graft_library_has_version(soname, version)) &&
	       !graft_library_is_known(search, soname);
}

static struct other *find_other(struct search *search, const char *path)
{
	for (size_t i = 0; i < search->n_others; i++) {
		if (strcmp(search->others[i].path, path) == 0)
			return &search->others[i];
	}
	return NULL;
}

static void take_other(struct search *search, const char *path, const char *soname, const char *source)
{
	struct other *other = graft_arena_push(search->survey->scratch, &search->others, &search->n_others,
					       sizeof(*other));

	if (other)
		*other = (struct other){ path, soname, source };
	graft_info(search->survey->log, "selecting %s", path);
}

bool graft_library_consider_other(struct search *search, const struct graft_ldcache_record *record)
{
	struct graft_survey *survey = search->survey;
	struct other *other;
	const char *path;
	struct stat st;

	if (!may_be_other(search, record->soname) || graft_lookup_path(&survey->lookup, record->path, &path, &st) < 0 ||
	    !S_ISREG(st.st_mode) ||
	    !graft_library_has_version(graft_path_name(path), survey->inventory->driver_version.value))
		return false;
	other = find_other(search, path);
	if (!other)
		take_other(search, path, record->soname, survey->inventory->ldcache);
	else if (strlen(record->soname) > strlen(other->soname))
		other->soname = record->soname;
	return true;
}

void graft_library_scan_others(struct search *search, const char *path)
{
	struct graft_survey *survey = search->survey;
	const struct graft_lookup_directory *directory = graft_lookup_directory(&survey->lookup, path, strlen(path));
	const char **names, *version = survey->inventory->driver_version.value;
	size_t n;

	if (!directory || directory->fd < 0 || !search->wants_others || !version ||
	    graft_survey_list(survey, &survey->root, path, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const char *found;
		struct graft_error err;
		struct graft_elf elf;
		struct stat st;

		if (!graft_starts_with(names[i], "lib") || graft_library_prefix_length(names[i]) == 0 ||
		    !graft_library_has_version(names[i], version) || graft_library_is_known(search, names[i]) ||
		    graft_lookup_file(&survey->lookup, directory, names[i], &found, &st) < 0 || !S_ISREG(st.st_mode) ||
		    find_other(search, found) || graft_library_read(search, found, &elf, &err) < 0 ||
		    elf.abi_flags != search->abi_flags)
			continue;
		take_other(search, found, elf.soname ? elf.soname : names[i], GRAFT_LIBRARY_SCAN);
	}
}

bool graft_library_has_development_link(struct search *search, const struct graft_library *library)
{
	struct graft_lookup *lookup = &search->survey->lookup;
	size_t length = graft_library_prefix_length(library->soname), path_length;
	const struct graft_lookup_directory *directory;
	char name[NAME_MAX_LENGTH], content[2];

	if (length == 0 || length >= sizeof(name) || library->soname[length] == '\0')
		return false;
	path_length = (size_t)(graft_path_name(library->path) - library->path);
	directory = graft_lookup_directory(lookup, library->path, path_length > 1 ? path_length - 1 : 1);
	if (!directory || directory->fd < 0)
		return false;
	memcpy(name, library->soname, length);
	name[length] = '\0';
	return readlinkat(directory->fd, name, content, sizeof(content)) > 0;
}
