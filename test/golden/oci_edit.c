/* SPDX-License-Identifier: Apache-2.0 */
/* oci_edit: puts one fixed set of container edits, of every kind, into the config.json of the bundle that it is given. oci.py looks at the result. */
#include <stdio.h>

#include "apply/oci/oci_edits.h"
#include "apply/oci/oci_file.h"
#include "base/cleanup.h"

#define OPTIONS .options = (const char *[]){ "ro", "nosuid", "nodev", "rbind", "rprivate" }, .n_options = 5

static struct graft_cdi_node nodes[] = {
	{ .path = "/dev/nvidia0",
	  .type = "c",
	  .major = 195,
	  .minor = 0,
	  .has_numbers = true,
	  .has_mode = true,
	  .mode = 0666,
	  .permissions = "rw" },
	{ .path = "/dev/nvidiactl",
	  .type = "c",
	  .major = 195,
	  .minor = 255,
	  .has_numbers = true,
	  .has_mode = true,
	  .mode = 0666,
	  .permissions = "rw" },
	{ .path = "/dev/zero",
	  .type = "c",
	  .major = 1,
	  .minor = 5,
	  .has_numbers = true,
	  .has_mode = true,
	  .mode = 0666 },
};

static struct graft_cdi_mount mounts[] = {
	{ "/usr/lib/libcuda.so.550.54.15", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", NULL, OPTIONS },
	{ "/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi", NULL, OPTIONS },
	{ "/run/nvidia-persistenced/socket", "/run/nvidia-persistenced/socket", "bind", OPTIONS },
};

static struct graft_cdi_hook hooks[] = { {
    .stage = "createContainer",
    .path = "/usr/bin/nvidia-cdi-hook",
    .args = (const char *[]){ "nvidia-cdi-hook", "apply" },
    .n_args = 2,
    .env = (const char *[]){ "NVIDIA_CTK_DEBUG=false" },
    .n_env = 1,
} };

static const struct graft_cdi_edits edits = {
	.env = (const char *[]){ "NVIDIA_VISIBLE_DEVICES=void", "GRAFT=\xc3\xa4 <&> \"quoted\"" },
	.n_env = 2,
	.nodes = nodes,
	.n_nodes = GRAFT_COUNT(nodes),
	.net_devices = (struct graft_cdi_net_device[]){ { "ib0", "mlx0" } },
	.n_net_devices = 1,
	.mounts = mounts,
	.n_mounts = GRAFT_COUNT(mounts),
	.hooks = hooks,
	.n_hooks = GRAFT_COUNT(hooks),
	.gids = (uint32_t[]){ 0, 44, 226 },
	.n_gids = 3,
	.rdt = &(struct graft_cdi_rdt){ .clos_id = "gpu", .l3_cache_schema = "L3:0=ff" },
};

int main(int argc, char **argv)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_error err = { 0 };
	char text[800];

	if (argc == 2 && graft_oci_file_read(argv[1], &document, &err) == 0 &&
	    graft_oci_remove_runtime_hook(document, &err) >= 0 && graft_oci_apply_edits(document, &edits, &err) == 0 &&
	    graft_oci_file_write(argv[1], document, &err) == 0)
		return 0;
	(void)fprintf(stderr, "oci_edit BUNDLE: %s\n", graft_error_text(&err, text, sizeof(text)));
	return 1;
}
