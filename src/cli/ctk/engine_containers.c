/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_containers: reads the command lines of containerd's shims and of conmon. Knows nothing
 * about runtimes.
 */
#include "cli/ctk/engine_containers.h"

#include "base/cleanup.h"
#include "base/root.h"
#include "doctor/engine_processes.h"

#define FILE_MAX ((size_t)64 << 10)

/* Returns the value of an option that has a short and a long name. */
static const char *find_either(const struct graft_command_line *line, const char *letter, const char *name)
{
	const char *value = graft_procfs_option(line, letter);

	return value ? value : graft_procfs_option(line, name);
}

/*
 * A shim runs in the directory of its container, where the file "runtime" names the program that it
 * calls.
 */
static const char *read_runtime_of_shim(const struct graft_root *host, const struct graft_engine_process *process,
					struct graft_arena *arena)
{
	bool denied = false;
	const char *directory = graft_engine_process_directory(host, process, arena, &denied), *text;
	const char *path = directory ? graft_arena_printf(arena, "%s/runtime", directory) : NULL;
	size_t length;

	return path && graft_root_read_foreign(host, path, FILE_MAX, arena, &text, &length) == 0 ? text : NULL;
}

/* Returns the runtime and the id of the process's container; NULL if it has none. */
static const char *find_runtime(const struct graft_root *host, const struct graft_engine_process *process,
				struct graft_arena *arena, const char **ret_id)
{
	switch (process->program) {
	case GRAFT_ENGINE_SHIM:
		*ret_id = find_either(&process->line, "-id", "--id");
		return *ret_id ? read_runtime_of_shim(host, process, arena) : NULL;
	case GRAFT_ENGINE_CONMON:
		*ret_id = find_either(&process->line, "-c", "--cid");
		return *ret_id ? find_either(&process->line, "-r", "--runtime") : NULL;
	case GRAFT_ENGINE_DOCKERD:
		break;
	}
	return NULL;
}

int ctk_engine_containers(struct ctk *ctk, bool (*is_wanted)(const char *path), struct graft_strings *ret_ids,
			  struct graft_error *err)
{
	auto_root struct graft_root host = GRAFT_ROOT_INIT;
	struct graft_engine_process *processes;
	const char *runtime, *id;
	bool denied = false;
	size_t n;

	*ret_ids = (struct graft_strings){ .n = 0 };
	if (graft_root_open(&host, "/", err) < 0)
		return -1;
	graft_engine_processes(&host, ctk->arena, &processes, &n, &denied);
	for (size_t i = 0; i < n; i++) {
		/* SECURITY: the directory of another user's process may be inside a container. */
		runtime = processes[i].root ? find_runtime(&host, &processes[i], ctk->arena, &id) : NULL;
		if (runtime && is_wanted(runtime))
			(void)graft_arena_push_string(ctk->arena, &ret_ids->items, &ret_ids->n, id);
	}
	return graft_arena_failed(ctk->arena) ? graft_fail_memory(err) : 0;
}
