/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curl_library: libcurl, loaded at run time. A program that is not configured to speak to a cluster
 * never loads it, nor the thirty libraries that it brings.
 */
#ifndef GRAFT_CLUSTER_CURL_LIBRARY_H
#define GRAFT_CLUSTER_CURL_LIBRARY_H

#include <curl/curl.h>

#include "base/error.h"

/* The functions that are used; the name follows "curl_". */
#define GRAFT_CURL_FUNCTIONS(X) \
	X(global_init)          \
	X(global_cleanup)       \
	X(easy_init)            \
	X(easy_cleanup)         \
	X(easy_setopt)          \
	X(easy_getinfo)         \
	X(easy_strerror)        \
	X(multi_init)           \
	X(multi_cleanup)        \
	X(multi_setopt)         \
	X(multi_add_handle)     \
	X(multi_remove_handle)  \
	X(multi_socket_action)  \
	X(multi_info_read)      \
	X(multi_assign)         \
	X(slist_append)         \
	X(slist_free_all)

struct graft_curl {
#define X(name) __typeof__(curl_##name) *name;
	GRAFT_CURL_FUNCTIONS(X)
#undef X
};

/*
 * Loads the first of `libraries` (NULL-terminated names or paths; NULL: those of distributions)
 * that exists. It stays loaded until the process ends. Returns 0, or -1 with GRAFT_NOT_FOUND, or
 * with GRAFT_UNSUPPORTED if a function is missing in it.
 */
int graft_curl_load(const char *const *libraries, struct graft_curl *ret_curl, struct graft_error *err);
/* Ends its use. */
void graft_curl_unload(struct graft_curl *curl);

#endif
