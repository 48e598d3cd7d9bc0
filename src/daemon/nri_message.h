/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_message: converts NRI messages into the data of a decision, and its edits into messages (SPEC
 * installer-and-nri 13). Pure.
 */
#ifndef GRAFT_DAEMON_NRI_MESSAGE_H
#define GRAFT_DAEMON_NRI_MESSAGE_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi/cdi.h"
#include "kubernetes/nri_container.h"

/*
 * Views a PodSandbox and a Container; either may be NULL. Strings are those of the messages.
 * Returns -1 with GRAFT_NO_MEMORY.
 */
int nri_message_view(const ProtobufCMessage *pod, const ProtobufCMessage *container, struct graft_arena *arena,
		     struct graft_nri_container *ret_container, struct graft_error *err);

/*
 * Makes a ContainerAdjustment of edits; its parts are in the arena, its strings belong to the
 * edits. Omits devices that the edits do not allow to be used, since the engine would allow them.
 * Returns NULL with GRAFT_NO_MEMORY, or GRAFT_UNSUPPORTED for edits that NRI cannot express.
 */
const ProtobufCMessage *nri_message_adjust(const struct graft_cdi_edits *edits, struct graft_arena *arena,
					   struct graft_error *err);

#endif
