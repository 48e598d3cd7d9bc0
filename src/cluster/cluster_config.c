/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_config: finds out how to reach the API server. Does not connect to it. */
#include "cluster/cluster_config.h"

#include <string.h>

#include "base/read.h"

#define KUBECONFIG_MAX ((size_t)1024 * 1024)

static int read_kubeconfig(const char *path, struct graft_arena *arena, struct graft_cluster_config *ret_config,
			   struct graft_error *err)
{
	const char *text;
	size_t length;
	int rc = graft_read_input(path, KUBECONFIG_MAX, arena, &text, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "unable to read kubeconfig %s", path);
	return graft_kubeconfig_parse(path, text, length, arena, ret_config, err);
}

static const char *account_file(const char *account, const char *name, struct graft_arena *arena)
{
	return graft_arena_join(arena, account, strlen(account), name);
}

static int read_account(const char *account, const char *(*variable)(const char *name), struct graft_arena *arena,
			struct graft_cluster_config *ret_config, struct graft_error *err)
{
	const char *host = variable("KUBERNETES_SERVICE_HOST"), *port = variable("KUBERNETES_SERVICE_PORT");
	bool bare = host && strchr(host, ':') && host[0] != '[';

	if (!host || host[0] == '\0' || !port || port[0] == '\0') {
		(void)graft_fail(err, GRAFT_NOT_FOUND, 0,
				 "cannot find the API server: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
				 "not set, as they are in a pod, and no kubeconfig is given");
		return graft_with_hint(err, "Outside of a pod, give --kubeconfig=FILE.");
	}
	ret_config->server = graft_arena_printf(arena, "https://%s%s%s:%s", bare ? "[" : "", host, bare ? "]" : "",
						port);
	ret_config->ca.path = account_file(account, "ca.crt", arena);
	ret_config->token_file = account_file(account, "token", arena);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

int graft_cluster_config_read(const char *kubeconfig, const char *account, const char *(*variable)(const char *name),
			      struct graft_arena *arena, struct graft_cluster_config *ret_config,
			      struct graft_error *err)
{
	*ret_config = (struct graft_cluster_config){ .server = NULL };
	if (kubeconfig[0] != '\0')
		return read_kubeconfig(kubeconfig, arena, ret_config, err);
	return read_account(account, variable, arena, ret_config, err);
}

const char *graft_cluster_clean_token(const char *bytes, size_t length, struct graft_arena *arena)
{
	while (length > 0 && strchr(" \t\r\n", bytes[length - 1]) && bytes[length - 1] != '\0')
		length--;
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] <= ' ' || bytes[i] > '~')
			return NULL;
	}
	return length > 0 ? graft_arena_strndup(arena, bytes, length) : NULL;
}
