/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_messages: what nvidia-container-cli prints: results, errors with their hints, the note about
 * a simulated driver.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "cli/cli.h"

void cli_tell_simulated(const struct graft_inventory *inventory)
{
	if (inventory && inventory->simulated)
		(void)fputs(CLI_PROGRAM ": note: the driver is simulated: there is no real GPU\n", stderr);
}

/* The texts are those with which the existing library fails (SPEC libnvidia-container 2.3, 6.4). */
void cli_warn_of_ldcache(const struct cli *cli, const struct graft_inventory *inventory)
{
	for (size_t i = 0; cli->global.ldcache && inventory && i < inventory->n_omissions; i++) {
		const struct graft_omission *omission = &inventory->omissions[i];
		bool read = graft_starts_with(omission->why, "unsupported");

		if (!inventory->ldcache || strcmp(omission->what, inventory->ldcache) != 0)
			continue;
		(void)fprintf(stderr,
			      CLI_PROGRAM ": warning: %s%s%s%c%s; searching the usual directories for libraries\n",
			      read ? "" : "open failed: ", read ? "" : omission->what, read ? "" : ": ",
			      tolower((unsigned char)omission->why[0]), omission->why + (omission->why[0] != '\0'));
		return;
	}
}

/*
 * Well-known messages ("nvml error: driver/library version mismatch") have to follow the prefix
 * directly, where people and programs look for them. Their context, such as the versions, owner and
 * mode, or expression, goes into the hint; for all other errors it precedes the message.
 */
static bool has_known_words(const struct graft_error *err)
{
	static const char *const words[] = { "nvml error: ", "driver rpc error: ", "load library failed: ",
					     "invalid expression" };

	for (size_t i = 0; i < GRAFT_COUNT(words); i++) {
		if (strncmp(err->msg, words[i], strlen(words[i])) == 0)
			return true;
	}
	return false;
}

/*
 * An engine's arguments come from the container, so the reader of this hint can correct the
 * container, but not our command line.
 */
static const char *hint_for_caller(const struct cli *cli, const struct graft_error *err)
{
	return cli->one_line && err->status == GRAFT_INVALID
		   ? "Correct the NVIDIA_* variables of the container, or config.toml."
		   : graft_error_hint(err);
}

int cli_fail_in(const struct cli *cli, enum graft_step step, struct graft_error *err)
{
	(void)graft_in_step(err, step);
	return cli_fail(cli, err);
}

int cli_fail(const struct cli *cli, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx) + 128];
	const char *prefix = graft_error_step(err);
	const char *separator = prefix[0] != '\0' ? ": " : "";
	const char *hint = hint_for_caller(cli, err);
	const char *hint_separator = cli->one_line ? "; " : "\n" CLI_PROGRAM ": hint: ";
	/* A hint on a line of its own is a sentence. */
	char initial = (char)(cli->one_line ? err->ctx[0] : toupper((unsigned char)err->ctx[0]));
	struct graft_error first = *err;

	if (has_known_words(err))
		first.ctx[0] = '\0';
	(void)graft_error_text(&first, text, sizeof(text));
	graft_log_write(cli->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s%s%s [%s]", prefix, separator, text,
			graft_status_name(err->status));
	if (has_known_words(err) && err->ctx[0] != '\0')
		(void)fprintf(stderr, CLI_PROGRAM ": %s%s%s%s%c%s. %s\n", prefix, separator, text, hint_separator,
			      initial, err->ctx + 1, hint);
	else
		(void)fprintf(stderr, CLI_PROGRAM ": %s%s%s%s%s\n", prefix, separator, text,
			      hint[0] != '\0' ? hint_separator : "", hint);
	return 1;
}

int cli_print(const struct cli *cli, struct graft_buffer *out)
{
	struct graft_error err = { .status = GRAFT_OK };
	bool failed = graft_buffer_failed(out);
	int rc = failed ? 0 : graft_write_all(STDOUT_FILENO, graft_buffer_text(out), out->length);

	graft_buffer_done(out);
	if (failed)
		(void)graft_fail_memory(&err);
	else if (rc < 0)
		(void)graft_fail_errno(&err, -rc, "write failed: standard output");
	return err.status == GRAFT_OK ? 0 : cli_fail_in(cli, GRAFT_STEP_OUTPUT, &err);
}
