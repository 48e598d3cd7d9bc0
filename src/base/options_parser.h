/* SPDX-License-Identifier: Apache-2.0 */
/* options_parser: the state of a parse, shared by the two styles. Internal to base. */
#ifndef GRAFT_BASE_OPTIONS_PARSER_H
#define GRAFT_BASE_OPTIONS_PARSER_H

#include <stdint.h>

#include "base/options.h"

#define GRAFT_OPTIONS_GIVEN_MAX 64 /* bits of `given` */

/*
 * argv[1..first) are options, argv[first..next) positional arguments, the rest has not been seen
 * yet.
 */
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

/* Fails because the arguments do not match the table; what follows the parser is the message. */
#define graft_options_fail(parser, ...) \
	((parser)->result = GRAFT_PARSE_WRONG, graft_fail((parser)->err, GRAFT_INVALID, 0, __VA_ARGS__))
/* Takes the next argument as part of the current option. Returns NULL if there is none. */
char *graft_options_take_word(struct graft_options_parser *parser, int *n_words);
/*
 * options_go.c: parses one argument that begins with a dash; and, after the last argument, reads
 * the variables of the options that were not given.
 */
int graft_options_parse_go(struct graft_options_parser *parser, const char *word, int *n_words);
int graft_options_read_environment(struct graft_options_parser *parser);

#endif
