/* SPDX-License-Identifier: Apache-2.0 */
/*
 * creation: the input of a mode of nvidia-container-runtime for one `create`, with its own document
 * and a log that is recorded.
 */
#ifndef GRAFT_TEST_RUNTIME_CREATION_H
#define GRAFT_TEST_RUNTIME_CREATION_H

#include "base/buffer.h"
#include "start/start.h"
#include "world.h"

struct creation {
	struct graft_start create;
	struct graft_config config;
	struct graft_container container;
	struct graft_oci_spec spec;
	struct graft_buffer lines; /* of the log, as "W text" */
	struct graft_log log;
};

static inline void creation_write_line(void *arg, enum graft_log_level level, const char *file, int line,
				       const char *message)
{
	static const char letters[] = "EWID";

	(void)file, (void)line;
	graft_buffer_printf(arg, "%c %s\n", letters[level], message);
}

/* The document is an empty object, everything else is zero. `creation` must not be moved. */
static inline void creation_init(struct creation *creation, struct graft_arena *arena)
{
	static const char text[] = "{}";

	*creation = (struct creation){ .log = { .write = creation_write_line, .max = GRAFT_LOG_DEBUG } };
	creation->log.arg = &creation->lines;
	creation->create = (struct graft_start){ .config = &creation->config,
						 .spec = &creation->spec,
						 .container = &creation->container,
						 .cdi_hook_path = "/opt/nvidia-cdi-hook",
						 .log = &creation->log,
						 .arena = arena };
	assert_int_equal(
	    graft_json_document_parse("config.json", text, sizeof(text) - 1, &creation->create.document, NULL), 0);
}

static inline void creation_done(struct creation *creation)
{
	graft_json_document_free(creation->create.document);
	graft_buffer_done(&creation->lines);
}

/* The text of the document after the edits; in the arena. */
static inline const char *creation_text(const struct creation *creation)
{
	struct graft_buffer out = { .max = 0 };
	const char *text;

	assert_int_equal(graft_json_document_write(creation->create.document, &out, NULL), 0);
	text = graft_arena_strdup(creation->create.arena, graft_buffer_text(&out));
	graft_buffer_done(&out);
	return text;
}

#endif
