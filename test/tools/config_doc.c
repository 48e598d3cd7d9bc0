/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_doc: the tables of keys in docs/config.md, from the table of src/request/config.c.
 *
 *	config_doc              prints the tables that belong between <!-- keys --> and <!-- end of keys -->
 *	config_doc FILE         as a test: whether FILE has exactly these tables
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "request/config.h"

#define BEGIN "<!-- keys -->\n"
#define END   "<!-- end of keys -->\n"

static bool is_current(const char *path, const struct graft_buffer *tables)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *bytes = NULL, *begin = NULL;
	size_t length = 0;
	bool current = false;

	if (arena && fd >= 0 && graft_read_fd(fd, (size_t)1 << 19, arena, &bytes, &length) == 0)
		begin = strstr(bytes, BEGIN);
	if (begin) {
		begin += strlen(BEGIN);
		current = strncmp(begin, tables->bytes, tables->length) == 0 &&
			  strncmp(begin + tables->length, END, strlen(END)) == 0;
	}
	(void)graft_arena_free(arena);
	return current;
}

int main(int argc, char **argv)
{
	struct graft_buffer tables = { 0 };
	bool current = true;

	graft_config_document(&tables);
	if (graft_buffer_failed(&tables))
		return 71;
	if (argc < 2) {
		(void)fputs(tables.bytes, stdout);
	} else {
		current = is_current(argv[1], &tables);
		(void)printf("1..1\n%sok 1 - the keys of docs/config.md are current\n", current ? "" : "not ");
		if (!current)
			(void)puts("# put what BUILD/test/tools/config_doc prints between the marks in docs/config.md");
	}
	graft_buffer_done(&tables);
	return current ? 0 : 1;
}
