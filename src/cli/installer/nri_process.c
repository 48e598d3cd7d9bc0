/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_process: the program that serves NRI, next to this one. It is not part of this one: it is
 * linked to libraries, and stays in memory for every start of a container.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cli/installer/installer.h"
#include "start/find_program.h"
#include "start/installed.h"

#define NRI_PROGRAM "nvidia-nri-plugin"
#define MAX_WORDS   14
#define KUBELET     "/var/lib/kubelet"

struct words {
	struct graft_arena *arena;
	char *items[MAX_WORDS + 1];
	size_t n;
};

static void add_word(struct words *words, const char *option, const char *value)
{
	if (words->n < MAX_WORDS)
		words->items[words->n++] = graft_arena_printf(words->arena, "%s%s", option, value);
}

static const char *join_namespaces(const struct installer_options *o)
{
	const char *names = "";

	for (size_t i = 0; names && i < o->nri_namespaces.n; i++)
		names = graft_arena_printf(o->base.ctk->arena, "%s%s%s", names, i > 0 ? "," : "",
					   o->nri_namespaces.items[i]);
	return names ? names : "";
}

/*
 * Where this process finds a directory of the kubelet that is not at its usual path: below the
 * node's root, since the GPU Operator mounts nothing of the kubelet. NULL: the usual path will do.
 */
static const char *find_kubelet_directory(const struct installer_options *o, const char *path)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *there;
	struct stat st;

	if (stat(path, &st) == 0 || o->host_root[0] == '\0')
		return NULL;
	if (graft_root_open(&root, o->host_root, NULL) < 0 ||
	    graft_root_resolve_directory(&root, path, o->base.ctk->arena, &there, NULL) < 0)
		return NULL;
	return installer_host_path(o, there);
}

/* Without the kubelet's answer, pods whose image asks for GPUs are refused. */
static void add_kubelet(const struct installer_options *o, struct words *words)
{
	const char *pods = find_kubelet_directory(o, KUBELET "/pod-resources");
	const char *plugins = find_kubelet_directory(o, KUBELET "/device-plugins");

	if (pods && !secure_getenv("POD_RESOURCES_SOCKET"))
		add_word(words, "--pod-resources-socket=", graft_arena_printf(words->arena, "%s/kubelet.sock", pods));
	if (plugins && !secure_getenv("KUBELET_CHECKPOINT"))
		add_word(words, "--kubelet-checkpoint=",
			 graft_arena_printf(words->arena, "%s/kubelet_internal_checkpoint", plugins));
}

/* The toolkit's configuration and hook apply, whatever else the node has. */
static void list_words(const struct installer_options *o, struct words *words)
{
	add_word(words, NRI_PROGRAM, "");
	add_word(words, "--nri-socket=", o->nri_socket);
	add_word(words, "--nri-plugin-index=", o->nri_index);
	add_word(words, "--nri-namespace=", o->nri_namespace);
	if (o->nri_namespaces.n > 0)
		add_word(words, "--nri-management-cdi-device-namespaces=", join_namespaces(o));
	add_word(words, "--cdi-kind=", o->cdi_kind);
	add_word(words, "--driver-root=", o->driver_root);
	add_word(words, "--driver-root-ctr-path=", o->driver_root_ctr);
	add_word(words, "--config=", graft_arena_printf(words->arena, "%s/" GRAFT_OWN_CONFIG, o->toolkit));
	add_kubelet(o, words);
	add_word(words, "--nvidia-cdi-hook-path=", graft_arena_printf(words->arena, "%s/nvidia-cdi-hook", o->toolkit));
}

/* It ends with this process. */
_Noreturn static void become_nri(const char *path, char *const *words, pid_t parent)
{
	installer_become_child(parent, SIGTERM);
	(void)execv(path, words);
	_exit(127);
}

int installer_nri_start(const struct installer_options *o, struct graft_error *err)
{
	struct words words = { .arena = o->base.ctk->arena };
	char directory[PATH_MAX];
	pid_t parent = getpid(), pid;
	const char *path;
	struct stat st;

	if (stat(o->nri_socket, &st) < 0)
		return graft_fail_errno(err, errno, "unable to connect to the NRI socket %s", o->nri_socket);
	path = graft_own_directory(directory) ? graft_arena_printf(words.arena, "%s/" NRI_PROGRAM, directory) : NULL;
	list_words(o, &words);
	if (graft_arena_failed(words.arena))
		return graft_fail_memory(err);
	if (!path || !graft_is_program(path, &st))
		return graft_fail(err, GRAFT_NOT_FOUND, 0, "there is no program %s",
				  path ? path : "/usr/bin/" NRI_PROGRAM);
	pid = fork();
	if (pid < 0)
		return graft_fail_errno(err, errno, "%s cannot be run", path);
	if (pid == 0)
		become_nri(path, words.items, parent);
	graft_info(&o->base.ctk->log, "Serving NRI on %s by %s (PID %d)", o->nri_socket, path, (int)pid);
	return pid;
}
