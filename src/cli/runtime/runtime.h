/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime: nvidia-container-runtime, a shim in front of a low-level OCI runtime (SPEC
 * runtime-and-hook 3 to 10). On `create` it edits the bundle's config.json, then becomes runc or
 * crun. The edits themselves are in src/start, one file per mode.
 *
 *   main          arguments -> config.toml -> log -> low-level runtime -> (create: config.json -> container -> mode -> edits) -> execve
 *
 * If something has to wait until the container is created, this program calls the low-level runtime
 * instead of becoming it, and does the rest afterwards (start/after_create.h).
 *
 * A container that requests no GPU is recognised in one pass over config.json; the driver is not
 * examined.
 */
#ifndef GRAFT_CLI_RUNTIME_RUNTIME_H
#define GRAFT_CLI_RUNTIME_RUNTIME_H

/*
 * Runs the program. `mode` overrides the configured mode (nvidia-container-runtime.cdi, .legacy);
 * NULL = as configured. Returns the exit status if it does not become the low-level runtime.
 */
int runtime_main(const char *mode, int argc, char **argv);

#endif
