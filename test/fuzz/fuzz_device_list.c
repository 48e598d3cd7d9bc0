/* SPDX-License-Identifier: Apache-2.0 */
/* A device list, as --device and NVIDIA_VISIBLE_DEVICES have it. */
#include "fuzz.h"
#include "request/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_request *request = size <= 4096 ? graft_request_new() : NULL;
	const char *text = request ? graft_arena_strndup(request->arena, (const char *)data, size) : NULL;
	bool is_void;

	if (text && graft_request_devices(request, text, NULL) == 0)
		(void)graft_request_visible_devices(request, text, &is_void, NULL);
	(void)graft_request_free(request);
	return 0;
}
