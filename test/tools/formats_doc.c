/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats_doc: docs/FORMATS.md, from the tables that write and read the JSON forms.
 *
 *	formats_doc             prints the document: formats_doc >docs/FORMATS.md
 *	formats_doc FILE        as a test: whether FILE is current
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "doctor/judge.h"
#include "host/inventory.h"
#include "lease/lease.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "request/request.h"

static const char introduction[] =
    "# Formats\n"
    "\n"
    "Made by `test/tools/formats_doc` from the tables that also write and read these texts. Edit those, not this.\n"
    "\n"
    "The stages pass plain values to each other: an inventory (what this host has), a request (what the container\n"
    "asks for), a policy (choices of the caller and facts of the image) and a plan (what will be done, in order,\n"
    "and why). `nvidia-container-cli plan --show=inventory` prints the first; `--show=request` and `--show=image`\n"
    "(that part of the policy) print the next two, and `--json` the plan.\n"
    "\n"
    "Writing is deterministic: the same value gives the same bytes. Empty members (no text, an empty list, 0,\n"
    "false) are left out, unless the table says that they are always there, and read back as empty. Reading is\n"
    "strict: an unknown member, a wrong type, a number out of range or a missing member is an error that names\n"
    "its place (`gpus[2].minor`).\n"
    "\n"
    "Inventory, request and plan have a `version`, which changes when a reader of the old form would misread the\n"
    "new one.\n"
    "Permission bits are decimal numbers, as JSON has no octal ones.\n"
    "\n";

static const struct {
	const char *title, *about;
	const struct graft_record *record;
} values[] = {
	{ "Inventory", "What this host has, and where each fact was read.", &graft_inventory_record },
	{ "Request", "What a container asks for, before it is known what this host has.", &graft_request_record },
	{ "Policy", "What else the planner needs to know: the caller's choices and facts of the image.",
	  &graft_policy_record },
	{ "Plan", "The ordered edits that give one container its GPUs; each says why.", &graft_plan_record },
	{ "Lease",
	  "Who holds which GPUs: a file of the table ([leases.md](leases.md)), and in `nvidia-ctk lease list --json`.",
	  &graft_lease_record },
	{ "Diagnosis", "What it means: `nvidia-ctk doctor --json`.", &graft_diagnosis_record },
};

static void make_document(struct graft_buffer *out)
{
	graft_buffer_string(out, introduction);
	for (size_t i = 0; i < GRAFT_COUNT(values); i++) {
		graft_buffer_printf(out, "## %s\n\n%s\n\n", values[i].title, values[i].about);
		graft_record_document(values[i].record, out);
	}
	/* No empty line at the end of the file. */
	while (out->length > 1 && out->bytes[out->length - 2] == '\n')
		out->bytes[--out->length] = '\0';
}

static bool is_current(const char *path, const struct graft_buffer *document)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *bytes = NULL;
	size_t length = 0;
	bool current = arena && fd >= 0 && graft_read_fd(fd, (size_t)1 << 19, arena, &bytes, &length) == 0 &&
		       length == document->length && memcmp(bytes, document->bytes, length) == 0;

	(void)graft_arena_free(arena);
	return current;
}

int main(int argc, char **argv)
{
	struct graft_buffer document = { 0 };
	int status = 0;

	make_document(&document);
	if (graft_buffer_failed(&document))
		return 71;
	if (argc < 2)
		(void)fputs(document.bytes, stdout);
	else if (is_current(argv[1], &document))
		(void)puts("1..1\nok 1 - docs/FORMATS.md is current");
	else {
		(void)puts(
		    "1..1\nnot ok 1 - docs/FORMATS.md is current\n# run BUILD/test/tools/formats_doc >docs/FORMATS.md");
		status = 1;
	}
	graft_buffer_done(&document);
	return status;
}
