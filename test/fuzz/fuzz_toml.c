/* SPDX-License-Identifier: Apache-2.0 */
/* Any TOML text, and edits of it that must leave a document; a table of it, carried to another document, must mean the same there. */
#include "formats/toml/toml.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = { "a", "a.b", "a.b.c", "x.\"y\"" };
	struct graft_error err = { 0 };
	struct graft_toml *toml = NULL, *other = NULL;

	if (size > ((size_t)64 << 10) || graft_toml_parse("fuzz", (const char *)data, size, &toml, NULL) < 0)
		return 0;
	if (graft_toml_parse("other", "a.z = 1", 7, &other, NULL) < 0)
		return 0;
	if (graft_toml_assign(other, "a", toml, "a", &err) < 0 || !graft_toml_is_same(toml, other, "a"))
		__builtin_trap();
	if (graft_toml_append_string(toml, "a", "x", &err) == 0 && graft_toml_remove_string(toml, "a", "x", &err) < 0)
		__builtin_trap();
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (graft_toml_set_integer(toml, paths[i], 1234567, &err) < 0 && err.status == GRAFT_FORMAT)
			__builtin_trap(); /* the edit made a text that is no TOML */
		if (graft_toml_remove(toml, paths[i], &err) < 0 || graft_toml_has(toml, paths[i]))
			__builtin_trap();
	}
	graft_toml_free(toml);
	graft_toml_free(other);
	return 0;
}
