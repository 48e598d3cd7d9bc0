/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_options: the options that describe a container's request: all of configure and plan,
 * some of list. The parsers write to a struct cli_container_options, which must be the first member
 * of each command's options.
 */
#ifndef GRAFT_CLI_CONTAINER_OPTIONS_H
#define GRAFT_CLI_CONTAINER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/options.h"
#include "request/request.h"

struct cli_container_options {
	struct graft_request *request; /* set before parsing; borrowed */
	bool device_given;             /* --device was given, with any value */
	bool imex_given;
	pid_t pid;            /* 0 = standalone */
	const char *ldconfig; /* accepted but unused: nothing is run */
	bool force_cgroups;
};

/* Parsers of these options: each adds one value to the request (struct graft_option). */
int cli_option_device(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int cli_option_require(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int cli_option_mig(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int cli_option_imex(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int cli_option_capability(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int cli_option_request_flag(void *target, const struct graft_option *option, const char *value,
			    struct graft_error *err);
int cli_option_compat_mode(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int cli_option_no_compat(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
int cli_option_pid(void *target, const struct graft_option *option, const char *value, struct graft_error *err);

extern const uint32_t cli_capability_bits[GRAFT_CAP_BITS];
extern const char *const cli_compat_modes[], *const cli_all_word[];

/* clang-format off */

/* Rows for configure, plan and list. */
#define CLI_SELECTION_OPTIONS                                                                                          \
	{ .name = "device", .letter = 'd', .argument = GRAFT_OPTION_REQUIRED, .value_name = "ID",                      \
	  .help = "Device UUID(s), index(es), bus id(s) or MIG device(s), separated by commas, or 'all'",              \
	  .parse = cli_option_device },                                                                                \
	{ .name = "mig-config", .argument = GRAFT_OPTION_REQUIRED, .value_name = "ID",                                 \
	  .help = "MIG devices that the container may configure ('all')", .parse = cli_option_mig,                     \
	  .offset = offsetof(struct graft_request, mig_config), .values = cli_all_word },                              \
	{ .name = "mig-monitor", .argument = GRAFT_OPTION_REQUIRED, .value_name = "ID",                                \
	  .help = "MIG devices that the container may monitor ('all')", .parse = cli_option_mig,                       \
	  .offset = offsetof(struct graft_request, mig_monitor), .values = cli_all_word },                             \
	{ .name = "imex-channel", .argument = GRAFT_OPTION_REQUIRED, .value_name = "CHANNEL",                          \
	  .help = "IMEX channel(s), separated by commas", .parse = cli_option_imex }
/* `gsp`: the parser of --no-gsp-firmware. */
#define CLI_DRIVER_OPTIONS(gsp)                                                                                        \
	{ .name = "no-persistenced", .help = "Leave out the socket of nvidia-persistenced",                            \
	  .parse = cli_option_request_flag, .offset = offsetof(struct graft_request, no_persistenced) },               \
	{ .name = "no-fabricmanager", .help = "Leave out the socket of nvidia-fabricmanager",                          \
	  .parse = cli_option_request_flag, .offset = offsetof(struct graft_request, no_fabricmanager) },              \
	{ .name = "no-gsp-firmware", .help = "Leave out the GSP firmware files",                                       \
	  .parse = gsp, .offset = offsetof(struct graft_request, no_gsp_firmware) }
/*
 * Options for the capabilities. `hide` is for list, which does not document them; there they
 * restrict the list.
 */
#define CLI_CAPABILITY_OPTION(NAME, word, letter_, help_, hide)                                                        \
	{ .name = word, .letter = letter_, .help = help_, .hidden = hide, .parse = cli_option_capability,              \
	  .extra = &cli_capability_bits[GRAFT_CAP_BIT_##NAME] }
#define CLI_CAPABILITY_OPTIONS(hide)                                                                                   \
	CLI_CAPABILITY_OPTION(COMPUTE, "compute", 'c', "Enable CUDA and OpenCL", hide),                                \
	CLI_CAPABILITY_OPTION(UTILITY, "utility", 'u', "Enable nvidia-smi and NVML", hide),                            \
	CLI_CAPABILITY_OPTION(VIDEO, "video", 'v', "Enable video encoding and decoding", hide),                        \
	CLI_CAPABILITY_OPTION(GRAPHICS, "graphics", 'g', "Enable OpenGL and Vulkan", hide),                            \
	CLI_CAPABILITY_OPTION(DISPLAY, "display", 'D', "Enable X11 display", hide),                                    \
	CLI_CAPABILITY_OPTION(NGX, "ngx", 'n', "Enable NGX", hide)
#define CLI_COMPAT32_OPTION CLI_CAPABILITY_OPTION(COMPAT32, "compat32", 0, "Include the 32-bit libraries", false)

/* Rows for configure and plan. */
#define CLI_CONTAINER_OPTIONS                                                                                          \
	CLI_SELECTION_OPTIONS, CLI_CAPABILITY_OPTIONS(false), CLI_COMPAT32_OPTION,                                     \
	CLI_DRIVER_OPTIONS(cli_option_request_flag),                                                                   \
	{ .name = "require", .letter = 'r', .argument = GRAFT_OPTION_REQUIRED, .value_name = "EXPR",                   \
	  .help = "Check a requirement, for example 'cuda>=12.4 brand=tesla,driver>=535'",                             \
	  .parse = cli_option_require },                                                                               \
	{ .name = "pid", .letter = 'p', .argument = GRAFT_OPTION_REQUIRED, .value_name = "PID",                        \
	  .help = "Process of the container (default: use the caller's own namespaces)",                         \
	  .parse = cli_option_pid },                                                                                   \
	{ .name = "ldconfig", .letter = 'l', .argument = GRAFT_OPTION_REQUIRED, .value_name = "PATH",                  \
	  .help = "Accepted for compatibility: no program is run to update the loader's cache",                        \
	  .parse = graft_option_set_string, .offset = offsetof(struct cli_container_options, ldconfig) },              \
	{ .name = "no-cgroups", .help = "Do not touch the device cgroup", .parse = cli_option_request_flag,            \
	  .offset = offsetof(struct graft_request, no_cgroups) },                                                      \
	{ .name = "force-cgroups", .help = "Fail if the device cgroup cannot be changed, instead of continuing",         \
	  .parse = graft_option_set_true, .offset = offsetof(struct cli_container_options, force_cgroups) },           \
	{ .name = "no-devbind", .help = "Do not bind-mount device nodes", .parse = cli_option_request_flag,            \
	  .offset = offsetof(struct graft_request, no_devbind) },                                                      \
	{ .name = "cuda-compat-mode", .argument = GRAFT_OPTION_REQUIRED, .value_name = "MODE",                         \
	  .help = "What to do with CUDA compatibility libraries of the image: mount, ldconfig, disabled",              \
	  .parse = cli_option_compat_mode, .values = cli_compat_modes },                                               \
	{ .name = "no-cntlibs", .help = "The same as --cuda-compat-mode=disabled", .parse = cli_option_no_compat }

/* clang-format on */

#endif
