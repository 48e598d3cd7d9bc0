/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: programs, firmware, sockets and other files of the driver (SPEC libnvidia-container 9.4
 * steps 3, 8, 9). Libraries have a separate file.
 */
#include <string.h>

#include "base/cleanup.h"
#include "plan/dispensable.h"
#include "plan/rules.h"

/*
 * SPEC libnvidia-container 2.4: `video` selects the compute libraries, but not the compute
 * programs.
 */
unsigned int graft_plan_binary_capabilities(enum graft_class class_)
{
	return class_ == GRAFT_CLASS_COMPUTE ? GRAFT_CAP_COMPUTE : graft_class_capabilities(class_);
}

static struct graft_edit *add_bind(struct graft_planner *planner, const char *path, const char *target,
				   const char *rule, const char *why)
{
	struct graft_edit *edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, rule, "%s", why);

	edit->source = graft_plan_on_host(planner, planner->inventory->root, path);
	edit->target = target;
	edit->flags = GRAFT_FLAGS_FILE;
	edit->mode = 0644;
	edit->dispensable = graft_is_dispensable(target);
	return edit;
}

/*
 * Style OCI: the host's directory, unless it is one where programs are not searched for (NixOS,
 * driver stores of WSL2); SPEC runtime-and-hook 7.5 uses the host's path in any case.
 */
static const char *binary_target(struct graft_planner *planner, const struct graft_binary *binary)
{
	static const char *const usual[] = { "/usr/bin", "/usr/sbin",      "/bin",
					     "/sbin",    "/usr/local/bin", "/usr/local/sbin" };

	for (size_t i = 0; planner->oci && i < GRAFT_COUNT(usual); i++) {
		if (strcmp(binary->source, usual[i]) == 0)
			return graft_plan_join(planner, binary->source, binary->name);
	}
	return graft_plan_join(planner, planner->oci ? "/usr/bin" : planner->bins_dir, binary->name);
}

static const char *binary_why(enum graft_class class_)
{
	if (class_ == GRAFT_CLASS_COMPUTE)
		return "program of the driver for compute";
	return class_ == GRAFT_CLASS_GRAPHICS ? "program of the driver for the X server"
					      : "program of the driver that manages GPUs";
}

void graft_rule_binaries(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	size_t left_out[GRAFT_CLASS_MAX] = { 0 };

	for (size_t i = 0; i < inventory->n_binaries; i++) {
		const struct graft_binary *binary = &inventory->binaries[i];

		if (!graft_plan_has(planner, graft_plan_binary_capabilities(binary->class_))) {
			left_out[binary->class_]++;
			continue;
		}
		add_bind(planner, binary->path, binary_target(planner, binary), "binary", binary_why(binary->class_))
		    ->mode = 0755;
	}
	for (unsigned int i = 0; i < GRAFT_CLASS_MAX; i++)
		graft_plan_refuse_class(planner, "programs", (enum graft_class)i, left_out[i],
					graft_plan_binary_capabilities((enum graft_class)i));
}

/* The driver store of WSL2 goes with any GPU; everything else goes with its capabilities. */
static bool takes_extra(const struct graft_planner *planner, const struct graft_extra_file *file)
{
	if (file->class_ == GRAFT_CLASS_WSL)
		return planner->wants_gpu || planner->policy->shared;
	return graft_plan_has(planner, graft_class_capabilities(file->class_));
}

void graft_rule_extra_files(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	size_t left_out[GRAFT_CLASS_MAX] = { 0 };

	for (size_t i = 0; i < inventory->n_extra_files; i++) {
		const struct graft_extra_file *file = &inventory->extra_files[i];
		bool wsl = file->class_ == GRAFT_CLASS_WSL;
		struct graft_edit *edit;

		if (!takes_extra(planner, file)) {
			left_out[file->class_]++;
			continue;
		}
		edit = add_bind(planner, file->path, graft_plan_copy(planner, file->target ? file->target : file->path),
				wsl ? "driver-store" : "extra-file",
				wsl ? "component of the driver of WSL2, loaded from exactly this path"
				    : "programs look for it at this path");
		edit->mode = wsl ? 0555 : 0644;
	}
	if (left_out[GRAFT_CLASS_WSL] > 0)
		graft_plan_refuse(planner, "no GPU was selected", "driver store: %zu files", left_out[GRAFT_CLASS_WSL]);
	for (unsigned int i = 0; i < GRAFT_CLASS_MAX; i++) {
		if (i != GRAFT_CLASS_WSL)
			graft_plan_refuse_class(planner, "other files", (enum graft_class)i, left_out[i],
						graft_class_capabilities((enum graft_class)i));
	}
}

void graft_rule_firmware(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;

	for (size_t i = 0; i < inventory->n_firmwares; i++) {
		const char *path = inventory->firmwares[i];

		if (planner->request->no_gsp_firmware)
			graft_plan_refuse(planner, "excluded by the request", "firmware %s", path);
		else
			(void)add_bind(planner, path, graft_plan_copy(planner, path), "firmware",
				       "firmware of the GPU system processor, for tools that ask for it");
	}
}

/* Daemons whose socket a request can exclude. */
static const struct {
	const char *directory; /* a component of the socket's path */
	size_t excluded_by;    /* bool in struct graft_request */
} daemons[] = {
	{ "/nvidia-persistenced/", offsetof(struct graft_request, no_persistenced) },
	{ "/nvidia-fabricmanager/", offsetof(struct graft_request, no_fabricmanager) },
};

static bool is_ipc_excluded(const struct graft_request *request, const struct graft_ipc *ipc)
{
	if ((request->no_mps || request->mps_pipe) && ipc->class_ == GRAFT_CLASS_COMPUTE)
		return true;
	for (size_t i = 0; i < GRAFT_COUNT(daemons); i++) {
		bool excluded;

		memcpy(&excluded, (const char *)request + daemons[i].excluded_by, sizeof(excluded));
		if (excluded && strstr(ipc->path, daemons[i].directory))
			return true;
	}
	return false;
}

/* Files of a shared GPU's MPS daemon, where programs look for those of one. */
static void bind_mps_daemon(struct graft_planner *planner)
{
	const struct graft_request *request = planner->request;
	const char *const sources[] = { request->mps_pipe, request->mps_shm };
	static const char *const targets[] = { "/tmp/nvidia-mps", "/dev/shm" };

	for (size_t i = 0; i < GRAFT_COUNT(sources); i++) {
		struct graft_edit *edit;

		if (!sources[i])
			continue;
		edit = graft_plan_edit(planner, GRAFT_EDIT_BIND, "ipc", "%s",
				       i == 0 ? "pipes of the MPS daemon that serves the GPU"
					      : "shared memory of the MPS daemon that serves the GPU");
		edit->source = graft_plan_copy(planner, sources[i]);
		edit->target = targets[i];
		edit->type = GRAFT_SOURCE_DIRECTORY;
		edit->mode = 0755;
		edit->flags = GRAFT_FLAGS_SOCKET;
	}
}

void graft_rule_ipcs(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;

	bind_mps_daemon(planner);

	for (size_t i = 0; i < inventory->n_ipcs; i++) {
		const struct graft_ipc *ipc = &inventory->ipcs[i];
		struct graft_edit *edit;

		if (is_ipc_excluded(planner->request, ipc)) {
			graft_plan_refuse(planner, "excluded by the request", "socket %s", ipc->path);
			continue;
		}
		/* SPEC libnvidia-container 6.8: MPS is for compute, not for video. */
		if (!graft_plan_has(planner, graft_plan_binary_capabilities(ipc->class_))) {
			graft_plan_refuse(planner, "the capability was not asked for", "socket %s (needs %s)",
					  ipc->path, graft_class_names[ipc->class_]);
			continue;
		}
		edit = add_bind(planner, ipc->path, graft_plan_copy(planner, ipc->path), "ipc",
				"socket of a daemon of the driver on the host");
		edit->type = ipc->directory ? GRAFT_SOURCE_DIRECTORY : GRAFT_SOURCE_SOCKET;
		edit->mode = ipc->directory ? 0755 : 0644;
		edit->flags = GRAFT_FLAGS_SOCKET;
		edit->optional = true; /* daemons come and go */
	}
}
