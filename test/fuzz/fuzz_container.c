/* SPDX-License-Identifier: Apache-2.0 */
/* config.json with environment, mounts and annotations: what the container asks for, by every way and with every word. */
#include "fuzz.h"
#include "request/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_json_document struct graft_json_document *document = NULL;
	const char *prefix = "cdi.k8s.io/";
	const struct graft_config config = { .swarm_resource = "X,Y",
					     .accept_envvar_unprivileged = true,
					     .accept_volume_mounts = size % 2 == 0,
					     .runtime.cdi_annotation_prefixes = { &prefix, 1 } };
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	struct graft_container container;
	struct graft_oci_spec spec;
	unsigned int capabilities;

	if (arena && graft_json_document_parse("fuzz", (const char *)data, size, &document, NULL) == 0 &&
	    graft_oci_spec_read(document, arena, &spec, NULL) == 0 &&
	    graft_container_read(&spec, &config, true, NULL, arena, &container, NULL) == 0) {
		(void)graft_container_capabilities(&container, "compute,utility,video", &capabilities, NULL);
		(void)graft_container_legacy_requirement(&spec, arena, &container, NULL);
	}
	(void)graft_arena_free(arena);
	return 0;
}
