/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_config: where the API server of the cluster is, how it is authenticated, and this
 * program's identity there: from a kubeconfig file or a pod's service account.
 */
#ifndef GRAFT_CLUSTER_CLUSTER_CONFIG_H
#define GRAFT_CLUSTER_CLUSTER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* A file, or its content. Both are NULL if there is none. */
struct graft_cluster_file {
	const char *path;
	const char *data;
	size_t length; /* of data */
};

/* All memory belongs to the caller's arena. NULL: not set. */
struct graft_cluster_config {
	const char *server; /* "https://10.96.0.1:443", without a slash at the end */
	const char *proxy;
	struct graft_cluster_file ca;               /* certificates for checking the server's */
	struct graft_cluster_file certificate, key; /* of the client, in PEM */
	const char *token, *token_file;             /* the file is read for each request, and beats the token */
	bool insecure;                              /* the server's certificate is not checked */
};

#define GRAFT_CLUSTER_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/*
 * Makes the configuration from the file `kubeconfig` or, if that is empty, from the pod's variables
 * KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT and the files of its service account in
 * `account`. `variable` returns the value of a variable, or NULL. Returns 0, or -1: GRAFT_NOT_FOUND
 * outside of a pod, the error of reading, or those of graft_kubeconfig_parse().
 */
int graft_cluster_config_read(const char *kubeconfig, const char *account, const char *(*variable)(const char *name),
			      struct graft_arena *arena, struct graft_cluster_config *ret_config,
			      struct graft_error *err);

/*
 * Parses a kubeconfig file, YAML or JSON; `file` is its path, to which paths in it are relative.
 * The entries that its current-context names apply. Returns 0, or -1: GRAFT_FORMAT "FILE: line 1,
 * column 2: ..."; GRAFT_UNSUPPORTED for ways to log in that would run a program (exec,
 * auth-provider) or send a password; GRAFT_INVALID for missing or inconsistent entries;
 * GRAFT_TOO_BIG; GRAFT_NO_MEMORY.
 */
int graft_kubeconfig_parse(const char *file, const char *text, size_t length, struct graft_arena *arena,
			   struct graft_cluster_config *ret_config, struct graft_error *err);

/*
 * Checks a token, and removes trailing blanks and line ends. SECURITY: it becomes a line of a
 * request. Returns the token in the arena, or NULL if it is empty or not printable ASCII.
 */
const char *graft_cluster_clean_token(const char *bytes, size_t length, struct graft_arena *arena);

#endif
