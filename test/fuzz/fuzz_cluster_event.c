/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of a watch: an event that is accepted has an object, and one that is not an error has its
 * version.
 */
#include "cluster/cluster_watch.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_json_document *document = NULL;
	struct graft_cluster_event event;

	if (graft_cluster_event_parse((const char *)data, size, &document, &event, NULL) == 0) {
		if (!event.object || (event.change == GRAFT_CLUSTER_ERROR) != (event.version[0] == '\0') ||
		    event.status < 0 || event.status > 999)
			__builtin_trap();
	}
	graft_json_document_free(document);
	return 0;
}
