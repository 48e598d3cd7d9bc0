/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error: how a failure travels.
 *
 * A fallible function returns 0, or a negative number, and takes a `struct graft_error *` last. The error is a
 * value that the caller owns: it allocates nothing, so it works when memory is exhausted, and needs no release.
 *
 *	if (fd < 0)
 *		return graft_fail(err, GRAFT_NOT_FOUND, errno, "open failed: %s", path);
 *	...
 *	if (plan_device(plan, gpu, err) < 0)
 *		return graft_wrap(err, "device '%s'", gpu->uuid);
 *
 * graft_fail() is called where the failing thing has a name; graft_wrap() only where a noun that the user knows
 * (a device, a file, an option) can be added. Library code never prints and never exits.
 *
 * `err` may be NULL in every function of this header (the caller does not care why).
 */
#ifndef GRAFT_BASE_ERROR_H
#define GRAFT_BASE_ERROR_H

#include <stddef.h>

/*
 * Every status: name, exit status of programs that are free to choose one, short text, hint ("what to do").
 * docs/ERRORS.md is generated from this table. Names and codes are stable: append only.
 */
#define GRAFT_STATUS_LIST(X)                                                                                         \
	X(OK, 0, "success", "")                                                                                      \
	X(INTERNAL, 70, "internal error", "This is a defect in Graft; please report it with the debug log.")         \
	X(NO_MEMORY, 71, "out of memory", "Free some memory or raise the limit of the calling service.")             \
	X(INVALID, 64, "input not understood", "Run the command with --help to see what it accepts.")                \
	X(UNKNOWN_DEVICE, 65, "no such device", "Run 'nvidia-container-cli info' to list the devices of this host.") \
	X(REQUIREMENT, 66, "requirement not met", "Update the driver, or use an image made for this driver.")        \
	X(NO_DRIVER, 67, "kernel driver not loaded", "Load it with 'modprobe nvidia' and check the kernel log.")     \
	X(NO_LIBRARY, 68, "driver library missing",                                                                  \
	  "Install the driver, with user-space libraries of the same version as its kernel module.")                 \
	X(MISMATCH, 69, "driver and library versions differ",                                                        \
	  "Reboot, or reload the kernel module, so that module and libraries have the same version.")                \
	X(PERMISSION, 77, "permission denied", "Run as root, or check owner and mode of the object that is named.")  \
	X(NOT_FOUND, 72, "not found", "Check that the named object exists.")                                         \
	X(IO, 74, "input/output error", "See the system error; the kernel log may say more.")                        \
	X(FORMAT, 76, "malformed data", "The named file is damaged or of an unknown format; recreate it.")           \
	X(TOO_BIG, 78, "over a size limit", "The named object exceeds what Graft reads or creates.")                 \
	X(UNSAFE, 79, "unsafe path", "The image puts something at a path where Graft must not follow it.")           \
	X(READ_ONLY, 80, "read-only file system", "Make the container's root writable while it is being set up.")    \
	X(UNSUPPORTED, 81, "not supported here", "The kernel or the platform lacks the named feature.")              \
	X(MOUNT, 82, "mount failed", "See the system error for the path that is named.")                             \
	X(CGROUP, 83, "device cgroup failed", "Use --no-cgroups where the engine manages devices itself.")           \
	X(NVML, 84, "NVML failed", "Run 'nvidia-smi' on the host; the driver itself reports a problem.")             \
	X(TIMEOUT, 85, "timed out", "Raise the limit, or enable persistence mode so that GPUs start faster.")        \
	X(EXPRESSION, 66, "requirement not understood",                                                              \
	  "Write it like 'cuda>=12.0,brand=tesla', or set NVIDIA_DISABLE_REQUIRE=true in the container.")            \
	X(STALE, 86, "out of date",                                                                                  \
	  "Run 'nvidia-ctk cdi refresh' as root; nvidia-cdi-refresh.path does it by itself.")                        \
	X(PROGRAM, 87, "another program failed", "See what it says, and run it by hand to find out more.")

enum graft_status {
#define X(name, exit_status, text, hint) GRAFT_##name,
	GRAFT_STATUS_LIST(X)
#undef X
	    GRAFT_STATUS_MAX
};

struct graft_error {
	enum graft_status status; /* stable: selects hint and exit status; GRAFT_OK when nothing failed */
	int sys;                  /* errno at the failure, or 0 */
	char msg[512];            /* what failed, e.g. "open failed: /proc/driver/nvidia/version" */
	char ctx[256];            /* while doing what, outermost first, "a: b"; empty if nothing was added */
};

/* Sets `err` and returns -1. `sys` is an errno value or 0. Replaces what `err` held. */
__attribute__((format(printf, 4, 5))) int graft_fail(struct graft_error *err, enum graft_status status, int sys,
						     const char *format, ...);

/* The same, with the status chosen from `sys`: ENOMEM, EACCES/EPERM, ENOENT, EROFS, ELOOP/EXDEV, else GRAFT_IO. */
__attribute__((format(printf, 3, 4))) int graft_fail_errno(struct graft_error *err, int sys, const char *format, ...);

/* Puts a noun in front of the context of an error that is already set, and returns -1. */
__attribute__((format(printf, 2, 3))) int graft_wrap(struct graft_error *err, const char *format, ...);

/* Shorthand for the one failure that has no object. Returns -1. */
int graft_fail_memory(struct graft_error *err);

/*
 * Notes a failure for want of what everything needs: memory (ENOMEM) or descriptors (EMFILE, ENFILE). It says nothing of what was asked for, so whoever takes
 * other failures for "not there" notes it. `rc` is 0 or more, or -errno; *shortage is 0, or the first errno that was noted.
 */
void graft_note_shortage(int *shortage, int rc);

/* The failure for it: GRAFT_NO_MEMORY, or GRAFT_IO that names `what` could not be looked at. Returns -1. */
int graft_fail_shortage(struct graft_error *err, int shortage, const char *what);

/*
 * The constant result is written where the caller's compiler and the analysers, which see one file at a time, can see
 * it: without it each of them takes a failure for a possible success.
 */
#define graft_fail(...)          ((void)(graft_fail)(__VA_ARGS__), -1)
#define graft_fail_errno(...)    ((void)(graft_fail_errno)(__VA_ARGS__), -1)
#define graft_wrap(...)          ((void)(graft_wrap)(__VA_ARGS__), -1)
#define graft_fail_memory(err)   ((void)(graft_fail_memory)(err), -1)
#define graft_fail_shortage(...) ((void)(graft_fail_shortage)(__VA_ARGS__), -1)

/* Forgets the error. */
void graft_error_clear(struct graft_error *err);

/*
 * Writes "ctx: msg: reason" to `buffer` (always terminated, cut if too long) and returns `buffer`. The reason is
 * strerror(sys) and left out when sys is 0. As callers of the existing stack expect: cut at the first newline and,
 * when there is a reason, everything after the last colon in lower case (SPEC libnvidia-container 2.3).
 */
const char *graft_error_text(const struct graft_error *err, char *buffer, size_t size);

/*
 * Makes one line of a text in place: every control character is a '?' then. SECURITY: what an image says is in messages; it shall neither begin a
 * line of its own in a log nor speak to a person's terminal.
 */
void graft_error_flatten(char *text);

/* Stable name ("NO_DRIVER"), short text, hint and exit status of a status. Never NULL. */
const char *graft_status_name(enum graft_status status);
const char *graft_status_text(enum graft_status status);
const char *graft_status_hint(enum graft_status status);
int graft_status_exit(enum graft_status status);

#endif
