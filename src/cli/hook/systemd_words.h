/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_words: the protocol between the statically linked hook and graft-systemd, which can load
 * libsystemd. Arguments: the process ID that identifies the scope, then one MAJOR:MINOR:ACCESS for
 * each device. The answer is the exit status, and lines on standard output: a letter followed by a
 * message for the log.
 */
#ifndef GRAFT_CLI_HOOK_SYSTEMD_WORDS_H
#define GRAFT_CLI_HOOK_SYSTEMD_WORDS_H

#define HOOK_SYSTEMD_PROGRAM "graft-systemd"

/* Exit statuses. The first three are the results of graft_systemd_scope_allow(). */
#define HOOK_SYSTEMD_SILENT 0
#define HOOK_SYSTEMD_TOLD   1
#define HOOK_SYSTEMD_FAILED 2 /* a line HOOK_SYSTEMD_ERROR has the reason */
#define HOOK_SYSTEMD_WRONG  64

#define HOOK_SYSTEMD_ERROR 'E'
#define HOOK_SYSTEMD_INFO  'I'
#define HOOK_SYSTEMD_DEBUG 'D'

#endif
