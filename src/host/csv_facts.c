/* SPDX-License-Identifier: Apache-2.0 */
/* csv_facts: asks NVML or libcuda, whichever the board has, one question. */
#include "host/csv.h"

#include <string.h>
#include <unistd.h>

#include "host/discover.h"
#include "host/nvml.h"

#define TIMEOUT_MS  30000
#define CUDA_SONAME "libcuda.so.1"

static const char *find_csv_cuda(const struct graft_csv_inventory *csv)
{
	for (size_t i = 0; i < csv->n_files; i++) {
		if (csv->files[i].soname && strcmp(csv->files[i].soname, CUDA_SONAME) == 0)
			return csv->files[i].source;
	}
	return NULL;
}

static void take_csv_facts(const struct graft_nvml_snapshot *snapshot, struct graft_arena *arena,
			   struct graft_csv_facts *ret_facts)
{
	if (snapshot->cuda_version > 0)
		ret_facts->cuda = graft_arena_printf(arena, "%u.%u", snapshot->cuda_version / 1000,
						     snapshot->cuda_version % 1000 / 10);
	if (snapshot->n_gpus > 0 && snapshot->gpus[0].has_arch)
		ret_facts->arch = graft_arena_printf(arena, "%u.%u", snapshot->gpus[0].arch_major,
						     snapshot->gpus[0].arch_minor);
	for (size_t i = 0; i < snapshot->n_gpus; i++) {
		if (snapshot->gpus[i].model && strstr(snapshot->gpus[i].model, "Orin (nvgpu)"))
			ret_facts->orin = true;
	}
}

int graft_csv_ask(const struct graft_inventory *inventory, const struct graft_csv_inventory *csv, bool want_arch,
		  const struct graft_log *log, struct graft_arena *arena, struct graft_csv_facts *ret_facts,
		  struct graft_error *err)
{
	const char *nvml = inventory ? inventory->nvml_library : NULL;
	struct graft_nvml_question question = {
		.root = csv->root,
		.library = nvml ? nvml : find_csv_cuda(csv),
		.cuda = !nvml,
		.facts = GRAFT_NVML_CUDA | GRAFT_NVML_MODEL | (want_arch ? (unsigned int)GRAFT_NVML_ARCH : 0),
		.uid = geteuid() == 0 ? graft_host_overflow_id(GRAFT_OVERFLOW_UID) : geteuid(),
		.gid = geteuid() == 0 ? graft_host_overflow_id(GRAFT_OVERFLOW_GID) : getegid(),
		.timeout_ms = TIMEOUT_MS,
		.log = log,
	};
	struct graft_nvml_snapshot snapshot;
	struct graft_error why = { .status = GRAFT_OK };
	char text[sizeof(why.msg) + sizeof(why.ctx)];

	*ret_facts = (struct graft_csv_facts){ .from_nvml = nvml != NULL };
	if (!question.library) {
		graft_warn(log,
			   "this board has neither NVML nor a libcuda in its CSV files: its CUDA version is not known");
		return 0;
	}
	if (graft_nvml_ask(&question, arena, &snapshot, &why) == 0)
		take_csv_facts(&snapshot, arena, ret_facts);
	else if (why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	else
		ret_facts->why = graft_arena_strdup(arena, graft_error_text(&why, text, sizeof(text)));
	if (ret_facts->why)
		graft_warn(log, "the driver does not state its CUDA version: %s", ret_facts->why);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
