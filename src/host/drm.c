/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drm: the display and render nodes of a GPU, as sysfs lists them below its PCI function, and the
 * links to them that udev makes (SPEC runtime-and-hook 7.4). Looked up only for the GPUs that are
 * needed, not for all GPUs of a host.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/procfs.h"
#include "host/survey.h"

#define DRM_MAJOR 226u
#define DRM_DIR   "/dev/dri"

/* Accepts "card1" and "renderD129". Connectors ("card1-DP-1") have no nodes. */
static bool is_node_name(const char *name)
{
	size_t letters = strcspn(name, "0123456789");

	return letters > 0 && name[letters] != '\0' && name[letters + strspn(name + letters, "0123456789")] == '\0';
}

/* Returns whether a by-path link points to the node; udev writes "../card1". */
static bool leads_to(const char *content, const char *name)
{
	return graft_starts_with(content, "../") && strcmp(content + strlen("../"), name) == 0;
}

static void look_at_drm_link(struct graft_survey *survey, const char *pci, const char *name, struct graft_drm_node *drm)
{
	const char *kind = graft_starts_with(name, "render") ? "render" : "card";
	const char *path = graft_arena_printf(survey->arena, DRM_DIR "/by-path/pci-%s-%s", pci, kind);
	char content[PATH_MAX];
	ssize_t length;

	if (!path)
		return;
	length = readlinkat(survey->dev_fd, path + strlen("/dev/"), content, sizeof(content) - 1);
	if (length < 0)
		return;
	content[length] = '\0';
	if (!leads_to(content, name)) {
		graft_survey_omit(survey, "skipping", path, "it leads to %s, not to %s", content, name);
		return;
	}
	drm->by_path = path;
	drm->by_path_content = graft_arena_strdup(survey->arena, content);
}

static void add_drm_node(struct graft_survey *survey, struct graft_gpu *gpu, const char *pci, const char *name,
			 const char *source)
{
	struct graft_drm_node drm = { .node = { .path = graft_arena_printf(survey->arena, DRM_DIR "/%s", name),
						.source = source } };
	struct graft_drm_node *slot;
	int rc = drm.node.path ? graft_survey_node_as_is(survey, &drm.node) : -ENOMEM;

	/* SECURITY: a node of that name with another major is not the GPU's. */
	if (rc == 0 && drm.node.major != DRM_MAJOR)
		rc = -ENODEV;
	if (rc < 0) {
		if (drm.node.path)
			graft_survey_omit(survey, "missing device", drm.node.path, "%s",
					  rc == -ENODEV ? "it is not a DRM node" : strerror(-rc));
		return;
	}
	look_at_drm_link(survey, pci, name, &drm);
	slot = graft_arena_push(survey->arena, &gpu->drm_nodes, &gpu->n_drm_nodes, sizeof(*slot));
	if (slot)
		*slot = drm;
	graft_info(survey->log, "listing device %s", drm.node.path);
}

void graft_survey_drm(struct graft_survey *survey, struct graft_gpu *gpu)
{
	const char *pci = gpu->bus_id ? graft_pci_sysfs_name(gpu->bus_id, survey->scratch) : NULL;
	const char *directory = pci ? graft_arena_printf(survey->arena, "/sys/bus/pci/devices/%s/drm", pci) : NULL;
	const char **names;
	size_t n;

	gpu->drm_nodes = NULL;
	gpu->n_drm_nodes = 0;
	/* Without nvidia-drm there are none; such a host is for computing. */
	if (!directory || graft_survey_list_sys(survey, directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (is_node_name(names[i]))
			add_drm_node(survey, gpu, pci, names[i], directory);
	}
}

int graft_host_look_at_gpus(const struct graft_host_options *options, struct graft_inventory *inventory,
			    const size_t *places, size_t n_places, struct graft_error *err)
{
	auto_survey struct graft_survey survey = GRAFT_SURVEY_INIT;
	int rc = graft_survey_attach(&survey, options, inventory, err);

	for (size_t i = 0; i < n_places && rc == 0; i++)
		graft_survey_drm(&survey, &inventory->gpus[places[i]]);
	if (rc == 0)
		rc = graft_survey_check(&survey, "the driver of this host", err);
	(void)graft_survey_detach(&survey);
	return rc;
}
