/* SPDX-License-Identifier: Apache-2.0 */
/* options_parser: what the two styles of parsing share: the state of one parse. Internal to base. */
#ifndef GRAFT_BASE_OPTIONS_PARSER_H
#define GRAFT_BASE_OPTIONS_PARSER_H

#include <stdint.h>

#include "base/options.h"

#define GRAFT_OPTIONS_GIVEN_MAX 64 /* bits of `given` */

/* argv[1..first) are options, argv[first..next) positional arguments, the rest unseen. */
struct graft_options_parser {
	const struct graft_command *command;
	const struct graft_options_scope *scope;
	int argc;
	char **argv;
	void *target;
	int first, next;
	uint64_t given; /* one bit for each of the command's own options, in Go's style */
	enum graft_parse_result result;
	struct graft_error *err;
};

/* The words do not fit the table; the error is set. Returns -1. */
int graft_options_wrong(struct graft_options_parser *parser);
/* The word after the current one, or NULL. Makes it part of the option. */
char *graft_options_take_word(struct graft_options_parser *parser, int *n_words);
/* options_go.c: one word that begins with a dash; and, behind all words, the variables of options that were not given. */
int graft_options_parse_go(struct graft_options_parser *parser, const char *word, int *n_words);
int graft_options_read_environment(struct graft_options_parser *parser);

#endif
