/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture: a host made of files in a temporary directory, for the tests of src/host. Two trees: `root` is the driver
 * root, `host` stands for the host's own /proc, /sys and /dev when the root has none (empty unless a test fills it).
 * Functions fail the test when they cannot do their work; device nodes need root (fixture_has_nodes()).
 */
#ifndef GRAFT_TEST_HOST_FIXTURE_H
#define GRAFT_TEST_HOST_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../folder.h"
#include "../machine.h"
#include "host/discover.h"

#define FIXTURE_LIBDIR   "/usr/lib/" MACHINE_TRIPLET
#define FIXTURE_LIBDIR32 "/usr/lib/" MACHINE_32
#define FIXTURE_VERSION  "550.54.14"

struct fixture_record {
	char soname[64], path[512];
	uint32_t flags;
};

struct fixture {
	char top[64], root[80], host[80];
	struct fixture_record records[256]; /* of the cache that fixture_cache() writes */
	size_t n_records;
	char log[65536]; /* what was logged, one line each */
	struct graft_log logger;
	struct graft_host_options options;       /* root, host_root, log and all capabilities are set */
	struct graft_inventory *inventories[64]; /* of fixture_discover(); freed at the end */
	size_t n_inventories;
};

/* What an ELF stub says. */
struct fixture_elf {
	const char *soname; /* NULL = none */
	bool bits32;
	const char *needed; /* one DT_NEEDED, or NULL */
	bool note;          /* an ABI note with this kernel */
	uint32_t kernel[3];
};

void fixture_init(struct fixture *fixture);
void fixture_done(struct fixture *fixture);
/* The same for a test, with the fixture as its state. */
int fixture_set_up(void **state);
int fixture_tear_down(void **state);

/* Paths are below the root; parents are made. */
void fixture_write(struct fixture *fixture, const char *path, const char *text);
void fixture_write_bytes(struct fixture *fixture, const char *path, const void *bytes, size_t length);
void fixture_write_host(struct fixture *fixture, const char *path, const char *text);
void fixture_directory(struct fixture *fixture, const char *path);
void fixture_link(struct fixture *fixture, const char *target, const char *path);
void fixture_remove(struct fixture *fixture, const char *path);
void fixture_mode(struct fixture *fixture, const char *path, mode_t mode);
void fixture_owner(struct fixture *fixture, const char *path, uid_t uid); /* a link itself */
void fixture_node(struct fixture *fixture, const char *path, unsigned int major, unsigned int minor, unsigned int mode);
bool fixture_has_nodes(void);
void fixture_elf(struct fixture *fixture, const char *path, const struct fixture_elf *elf);

/* A library file DIR/PREFIX.VERSION with a link named by the soname, and their cache record. */
void fixture_library(struct fixture *fixture, const char *dir, const char *prefix, const char *version,
		     const char *soname, uint32_t flags);
void fixture_record(struct fixture *fixture, const char *soname, const char *path, uint32_t flags);
void fixture_cache(struct fixture *fixture);

/* One GPU in /proc/driver/nvidia/gpus, with its node when nodes can be made. */
void fixture_gpu(struct fixture *fixture, const char *bus_id, unsigned int minor, const char *uuid, const char *model);
/* The kernel's side of a driver: version, params, /proc/devices, nodes. */
void fixture_kernel(struct fixture *fixture, const char *version);
/* The usual libraries in `dir`, with the cache written. */
void fixture_libraries(struct fixture *fixture, const char *dir, const char *version);

/* The inventory of the host, which is the fixture's. No descriptor stays open. */
struct graft_inventory *fixture_discover(struct fixture *fixture, unsigned int needs);

/* Lookups in an inventory; NULL when there is none. */
const struct graft_library *fixture_find_library(const struct graft_library *list, size_t n, const char *soname);
const char *fixture_find_omission(const struct graft_inventory *inventory, const char *what);

#endif
