/* SPDX-License-Identifier: Apache-2.0 */
/* curl_library: libcurl through dlopen. Does not know what it is used for. */
#include "cluster/curl_library.h"

#include <dlfcn.h>

/* The soname, and that of Debian's build with GnuTLS. */
static const char *const usual_libraries[] = { "libcurl.so.4", "libcurl-gnutls.so.4", NULL };

/* Looks up all functions. Returns the name of the first one that the library lacks, or NULL. */
static const char *find_curl_functions(void *library, struct graft_curl *curl)
{
#define X(name)                                                \
	*(void **)&curl->name = dlsym(library, "curl_" #name); \
	if (!curl->name)                                       \
		return "curl_" #name;
	GRAFT_CURL_FUNCTIONS(X)
#undef X
	return NULL;
}

int graft_curl_load(const char *const *libraries, struct graft_curl *ret_curl, struct graft_error *err)
{
	const char *const *name = libraries ? libraries : usual_libraries;
	const char *missing;
	void *library = NULL;

	for (; *name && !library; name++)
		library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "cannot load libcurl, which speaks to the API server: %s",
				 dlerror());
		return graft_with_hint(err, "Install the package libcurl4 (Debian, Ubuntu) or libcurl (Fedora, RHEL).");
	}
	missing = find_curl_functions(library, ret_curl);
	if (missing)
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "libcurl lacks %s", missing);
	if (ret_curl->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "libcurl cannot be initialised");
	return 0;
}

void graft_curl_unload(struct graft_curl *curl)
{
	if (curl->global_cleanup)
		curl->global_cleanup();
	curl->global_cleanup = NULL;
}
