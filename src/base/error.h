/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error: how failures are reported.
 *
 * A fallible function returns 0, or a negative number, and takes a `struct graft_error *` as its
 * last parameter. The error is a value owned by the caller. It allocates nothing, so it works when
 * memory is exhausted and need not be released.
 *
 *	if (fd < 0)
 *		return graft_fail(err, GRAFT_NOT_FOUND, errno, "open failed: %s", path);
 *	...
 *	if (plan_device(plan, gpu, err) < 0)
 *		return graft_wrap(err, "device '%s'", gpu->uuid);
 *
 * Call graft_fail() where the thing that failed has a name, and graft_wrap() only where you can add
 * a noun that the user knows (a device, a file, an option). Library code never prints and never
 * exits.
 *
 * `err` may be NULL in every function of this header, for callers that do not need the reason.
 */
#ifndef GRAFT_BASE_ERROR_H
#define GRAFT_BASE_ERROR_H

#include <stddef.h>

/*
 * Every status: name, exit status of programs that are free to choose one, short text, and hint
 * ("what to do"). docs/ERRORS.md is generated from this table. Names and codes are stable: append
 * only.
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
	  "Reboot, or reload the kernel module, so that the module and the libraries have the same version.")        \
	X(PERMISSION, 77, "permission denied", "Run as root, or check the owner and mode of the named object.")      \
	X(NOT_FOUND, 72, "not found", "Check that the named object exists.")                                         \
	X(IO, 74, "input/output error", "See the system error; the kernel log may say more.")                        \
	X(FORMAT, 76, "malformed data", "The named file is damaged or of an unknown format; correct or remove it.")  \
	X(TOO_BIG, 78, "over a size limit", "The named object exceeds what Graft reads or creates.")                 \
	X(UNSAFE, 79, "unsafe path", "Remove the link or file, or mount elsewhere; Graft must not follow it.")       \
	X(READ_ONLY, 80, "read-only file system", "Make the container's root writable while it is being set up.")    \
	X(UNSUPPORTED, 81, "not supported here", "The kernel or the platform lacks the named feature.")              \
	X(MOUNT, 82, "mount failed", "Check the named path; the kernel log may say more.")                           \
	X(CGROUP, 83, "device cgroup failed", "Use --no-cgroups if the engine manages devices itself.")              \
	X(NVML, 84, "NVML failed", "Run 'nvidia-smi' on the host; the driver itself reports a problem.")             \
	X(TIMEOUT, 85, "timed out", "Raise the limit, or enable persistence mode so that GPUs start faster.")        \
	X(EXPRESSION, 66, "requirement not understood",                                                              \
	  "Write it like 'cuda>=12.0,brand=tesla', or set NVIDIA_DISABLE_REQUIRE=true in the container.")            \
	X(STALE, 86, "out of date",                                                                                  \
	  "Run 'nvidia-ctk cdi refresh' as root, or enable nvidia-cdi-refresh.path, which does it.")                 \
	X(PROGRAM, 87, "another program failed", "See its message, or run it by hand to find out more.")             \
	X(BUSY, 88, "not enough free GPUs", "Run 'nvidia-ctk lease list' to see who holds them, and try again.")     \
	X(LEASES, 89, "table of leases not usable", "Run 'nvidia-ctk lease doctor' as root.")

enum graft_status {
#define X(name, exit_status, text, hint) GRAFT_##name,
	GRAFT_STATUS_LIST(X)
#undef X
	    GRAFT_STATUS_MAX
};

/*
 * The steps of a container's start, by the text that comes before the error (SPEC
 * libnvidia-container 3.5).
 */
#define GRAFT_STEP_LIST(X)                        \
	X(NONE, "")                               \
	X(MEMORY, "memory allocation failed")     \
	X(INPUT, "input error")                   \
	X(PERMISSION, "permission error")         \
	X(INITIALIZATION, "initialization error") \
	X(DETECTION, "detection error")           \
	X(DEVICE, "device error")                 \
	X(MIG_CONFIG, "mig-config error")         \
	X(MIG_MONITOR, "mig-monitor error")       \
	X(REQUIREMENT, "requirement error")       \
	X(CONTAINER, "container error")           \
	X(MOUNT, "mount error")                   \
	X(LDCACHE, "ldcache error")               \
	X(OUTPUT, "output error")

enum graft_step {
#define X(name, text) GRAFT_STEP_##name,
	GRAFT_STEP_LIST(X)
#undef X
	    GRAFT_STEP_MAX
};

struct graft_error {
	enum graft_status status; /* stable: selects hint and exit status; GRAFT_OK when nothing failed */
	enum graft_step step;     /* in which it failed; GRAFT_STEP_NONE if not recorded */
	int sys;                  /* errno at the failure, or 0 */
	const char *hint;         /* what to do; borrowed; NULL: graft_status_hint() */
	char msg[512];            /* what failed, e.g. "open failed: /proc/driver/nvidia/version" */
	char ctx[256];            /* what was being done, outermost first, "a: b"; empty if nothing was added */
};

/* Sets `err`, replacing what it held, and returns -1. `sys` is an errno value or 0. */
__attribute__((format(printf, 4, 5))) int graft_fail(struct graft_error *err, enum graft_status status, int sys,
						     const char *format, ...);

/*
 * The same, with the status derived from `sys`: ENOMEM, EACCES/EPERM, ENOENT, EROFS, ELOOP/EXDEV,
 * EFBIG/ETIME, otherwise GRAFT_IO.
 */
__attribute__((format(printf, 3, 4))) int graft_fail_errno(struct graft_error *err, int sys, const char *format, ...);

/* Prepends a noun to the context of an error that is already set. Returns -1. */
__attribute__((format(printf, 2, 3))) int graft_wrap(struct graft_error *err, const char *format, ...);

/*
 * Records the step in which an error that is already set occurred, unless one is recorded. Returns
 * -1.
 */
int graft_in_step(struct graft_error *err, enum graft_step step);
/*
 * Sets the hint of an error that is already set, unless it has one. Returns -1. `hint` must outlive
 * the error.
 */
int graft_with_hint(struct graft_error *err, const char *hint);

/* Reports that memory is exhausted. Returns -1. */
int graft_fail_memory(struct graft_error *err);

/*
 * Records a failure caused by a lack of memory (ENOMEM) or descriptors (EMFILE, ENFILE). Such a
 * failure proves nothing about the object in question, so code that treats other failures as "not
 * there" must record it. `rc` is 0 or more, or -errno. *shortage is 0 or the first errno recorded.
 */
void graft_note_shortage(int *shortage, int rc);

/*
 * Reports the shortage: GRAFT_NO_MEMORY, or GRAFT_IO with a message that `what` cannot be examined.
 * Returns -1.
 */
int graft_fail_shortage(struct graft_error *err, int shortage, const char *what);

/*
 * Put the constant result where the caller's compiler and the static analysers, which see one file
 * at a time, can see it. Otherwise they take a failure for a possible success.
 */
#define graft_fail(...)          ((void)(graft_fail)(__VA_ARGS__), -1)
#define graft_fail_errno(...)    ((void)(graft_fail_errno)(__VA_ARGS__), -1)
#define graft_wrap(...)          ((void)(graft_wrap)(__VA_ARGS__), -1)
#define graft_in_step(...)       ((void)(graft_in_step)(__VA_ARGS__), -1)
#define graft_with_hint(...)     ((void)(graft_with_hint)(__VA_ARGS__), -1)
#define graft_fail_memory(err)   ((void)(graft_fail_memory)(err), -1)
#define graft_fail_shortage(...) ((void)(graft_fail_shortage)(__VA_ARGS__), -1)

/* Resets the error to GRAFT_OK. */
void graft_error_clear(struct graft_error *err);

/*
 * Writes "ctx: msg: reason" to `buffer` (always terminated, cut if too long) and returns `buffer`.
 * The reason is strerror(sys), for ETIME that the image takes too long; omitted if sys is 0. As
 * callers of the existing stack expect, the text is cut at the first newline and, if there is a
 * reason, everything after the last colon is in lower case (SPEC libnvidia-container 2.3).
 */
const char *graft_error_text(const struct graft_error *err, char *buffer, size_t size);
/* The same, in a buffer that lives as long as the block around it. */
#define GRAFT_ERROR_TEXT(err)                                                          \
	graft_error_text((err), (char[sizeof((err)->msg) + sizeof((err)->ctx)]){ "" }, \
			 sizeof((err)->msg) + sizeof((err)->ctx))

/*
 * Makes a text a single line, in place: replaces every control character by '?'. SECURITY: messages
 * contain text from images, which must not start a line of its own in a log or send escape
 * sequences to a terminal.
 */
void graft_error_flatten(char *text);

/* The text of an error's step; "" for none. Never NULL. */
const char *graft_error_step(const struct graft_error *err);
/*
 * What to do about an error: its own hint, else that of a full disk or of its status. Never NULL.
 */
const char *graft_error_hint(const struct graft_error *err);

/* Return the stable name ("NO_DRIVER"), hint and exit status of a status. Never NULL. */
const char *graft_status_name(enum graft_status status);
const char *graft_status_hint(enum graft_status status);
int graft_status_exit(enum graft_status status);

#endif
