/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: whether output may be coloured. */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

bool cli_has_colours(int fd)
{
	const char *no_color = secure_getenv("NO_COLOR"), *term = secure_getenv("TERM");

	return isatty(fd) && (!no_color || no_color[0] == '\0') && (!term || strcmp(term, "dumb") != 0);
}

bool cli_has_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		const char *locale = secure_getenv(names[i]);

		if (locale && locale[0] != '\0')
			return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
	}
	return false;
}
