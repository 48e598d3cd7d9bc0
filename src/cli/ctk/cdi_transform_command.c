/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_transform_command: nvidia-ctk cdi transform root (SPEC ctk-and-cdi 1.3): adapts a spec to a
 * driver that has moved since the spec was made.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/option_rows.h"
#include "cli/ctk/cdi_file.h"
#include "formats/cdi/cdi_transform.h"
#include "plan/spec_hooks.h"

struct transform_options {
	struct ctk_base base;
	const char *from, *to, *input, *output, *relative_to;
};

/* clang-format off */
#define AT(member) .offset = offsetof(struct transform_options, member)
static const struct graft_option options[] = {
	{ .name = "from", TEXT, AT(from), .value_name = "ROOT", .help = "Directory to replace (default /)" },
	{ .name = "to", TEXT, AT(to), .value_name = "ROOT",
	  .help = "Directory to put in its place (default /)" },
	{ .name = "input", TEXT, AT(input), .value_name = "FILE",
	  .help = "Spec to change; - is standard input (default -)" },
	{ .name = "output", TEXT, AT(output), .value_name = "FILE",
	  .help = "Output file, .json or .yaml (default standard output, in YAML)" },
	{ .name = "relative-to", TEXT, AT(relative_to), .value_name = "SIDE", WORDS("host", "container"),
	  .help = "Which paths to change: host or container (default host)" },
};
/* clang-format on */

static int transform(void *target, struct graft_error *err)
{
	const struct transform_options *given = target;
	struct ctk *ctk = given->base.ctk;
	const struct graft_cdi_root_change change = { .from = given->from,
						      .to = given->to,
						      .in_container = strcmp(given->relative_to, "container") == 0 };
	struct graft_cdi_spec spec, changed;

	if (!change.in_container && strcmp(given->relative_to, "host") != 0)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid --relative-to value: %s", given->relative_to);
	if (ctk_cdi_read(ctk, given->input, &spec, err) < 0)
		return ctk_fail(ctk, err, "failed to load CDI specification");
	if (graft_cdi_spec_change_root(&spec, &change, ctk->arena, &changed, err) < 0)
		return ctk_fail(ctk, err, "failed to transform CDI specification");
	/* SECURITY: a rewritten specification has no hook that an image's variables reach. */
	if (graft_spec_hooks_mend_all(NULL, ctk->arena, &changed, err) < 0)
		return ctk_fail(ctk, err, "failed to transform CDI specification");
	if (ctk_cdi_save(ctk, &changed, given->output, err) < 0)
		return ctk_fail(ctk, err, "failed to save CDI specification");
	return 0;
}

const struct graft_command ctk_cdi_transform_root = {
	CTK_COMMAND,
	.name = "root",
	.summary = "Change the root of the paths in a CDI spec",
	.description = "Replaces a directory at the beginning of paths with another: for a driver in a container, "
		       "whose files have different paths in the container and on the host.\n\nOnly whole components "
		       "match: --from /root changes /root/lib, but not /rootfs.",
	GRAFT_OPTIONS(options),
	.bundled = true,
	CTK_WORK(transform, struct transform_options, .input = "-", .relative_to = "host"),
};
