/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: what the files of `nvidia-ctk doctor` share. */
#ifndef GRAFT_CLI_CTK_DOCTOR_H
#define GRAFT_CLI_CTK_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/ctk/ctk.h"
#include "doctor/facts.h"
#include "doctor/judge.h"
#include "request/config.h"

/* Returns the columns of the terminal, or the usual number where there is none. */
size_t ctk_doctor_width(void);
/*
 * Appends text, wrapped at the width, and indents the lines after the first. `column` is where the
 * text begins. The text may be untrusted: it is made visible (graft_buffer_visible()).
 */
void ctk_doctor_add_wrapped(struct graft_buffer *out, const char *foreign, size_t column, size_t indent, size_t width);
/* Appends the name of a level, as a column. */
void ctk_doctor_add_level(struct graft_buffer *out, enum graft_level level, bool colours);
/* Returns the exit status for a verdict. */
int ctk_doctor_status(enum graft_level verdict);

/*
 * Examines the container that `word` names and prints its case. `health` is that of the host;
 * `config` was loaded from config.toml, or is zeroed if that cannot be used. Returns the exit
 * status.
 */
int ctk_doctor_container(struct ctk *ctk, const char *word, bool json, const struct graft_health *health,
			 const struct graft_config *config);

#endif
