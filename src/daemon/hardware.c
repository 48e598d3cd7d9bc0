/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware: a netlink socket and an inotify watch. Does not parse the events: each only causes a
 * check.
 */
#include "daemon/hardware.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define KERNEL_GROUP     1u /* of NETLINK_KOBJECT_UEVENT */
#define WORD(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/*
 * Accepts "ACTION@/devices/..." of devices that are not virtual, and "ACTION@/module/nv...": each
 * start of a container causes events of network and loop devices, which should not wake a process.
 * The path begins after 4, 5 or 7 letters: add@, bind@ and move@, remove@, change@ and unbind@.
 */
static const struct sock_filter filter[] = {
	/* 0 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 3),
	/* 1 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, '@', 4, 0), /* to 6 */
	/* 2 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 4),
	/* 3 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, '@', 4, 0), /* to 8 */
	/* 4 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
	/* 5 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, '@', 4, 8), /* to 10, or none */
	/* 6 */ BPF_STMT(BPF_LDX | BPF_IMM, 4),
	/* 7 */ BPF_STMT(BPF_JMP | BPF_JA, 3), /* to 11 */
	/* 8 */ BPF_STMT(BPF_LDX | BPF_IMM, 5),
	/* 9 */ BPF_STMT(BPF_JMP | BPF_JA, 1), /* to 11 */
	/* 10 */ BPF_STMT(BPF_LDX | BPF_IMM, 7),
	/* 11 */ BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0),
	/* 12 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WORD('/', 'd', 'e', 'v'), 2, 0), /* to 15 */
	/* 13 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WORD('/', 'm', 'o', 'd'), 3, 0), /* to 17 */
	/* 14 */ BPF_STMT(BPF_RET | BPF_K, 0),
	/* 15 */ BPF_STMT(BPF_LD | BPF_W | BPF_IND, 8),
	/* 16 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WORD('/', 'v', 'i', 'r'), 2, 3), /* none, or all of it */
	/* 17 */ BPF_STMT(BPF_LD | BPF_W | BPF_IND, 6),
	/* 18 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WORD('e', '/', 'n', 'v'), 1, 0), /* to 20, or none */
	/* 19 */ BPF_STMT(BPF_RET | BPF_K, 0),
	/* 20 */ BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
};

enum drained { NOTHING, SOMETHING, OF_DRIVER };

/*
 * Reads the pending events. Those of the driver have its name, as its nodes do, or concern a PCI
 * device; starts of containers cause others, about their networks and volumes. A lost or long event
 * may be anything.
 */
static enum drained drain(int fd)
{
	enum drained drained = NOTHING;
	char bytes[8192];
	ssize_t n;

	/* ENOBUFS: some were lost, which needs a check as well. */
	while ((n = read(fd, bytes, sizeof(bytes))) > 0 || errno == ENOBUFS || errno == EINTR) {
		if (n < 0 || (size_t)n > sizeof(bytes) / 2 || memmem(bytes, (size_t)n, "nvidia", 6) ||
		    memmem(bytes, (size_t)n, "SUBSYSTEM=pci", 13))
			drained = OF_DRIVER;
		else if (drained == NOTHING)
			drained = SOMETHING;
	}
	return drained;
}

/* A steady stream of events does not delay the check. */
void hardware_look_soon(struct hardware *hardware)
{
	if (!hardware->settle.link)
		graft_loop_set_timer(hardware->loop, &hardware->settle, HARDWARE_SETTLE_MS);
}

static void take_events(struct hardware *hardware, int fd)
{
	enum drained drained = drain(fd);

	if (drained == OF_DRIVER && hardware->noticed)
		hardware->noticed(hardware->arg);
	if (drained != NOTHING)
		hardware_look_soon(hardware);
}

void hardware_catch_up(struct hardware *hardware)
{
	take_events(hardware, hardware->events.fd);
	take_events(hardware, hardware->nodes.fd);
}

static void event_came(void *arg, short events)
{
	(void)events;
	hardware_catch_up(arg);
}

static void settled(void *arg)
{
	struct hardware *hardware = arg;

	hardware->changed(hardware->arg);
}

/* Checks what no event reports. */
static void poll_hardware(void *arg)
{
	struct hardware *hardware = arg;

	graft_loop_set_timer(hardware->loop, &hardware->poll, HARDWARE_POLL_MS);
	hardware->changed(hardware->arg);
}

static int listen_to_kernel(void)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
	struct sock_filter instructions[GRAFT_COUNT(filter)];
	const struct sock_fprog program = { .len = GRAFT_COUNT(filter), .filter = instructions };
	auto_close int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	memcpy(instructions, filter, sizeof(filter));
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int watch_nodes(const char *dev_folder)
{
	auto_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd < 0 ||
	    inotify_add_watch(fd, dev_folder, IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static void begin_watch(struct hardware *hardware, struct graft_loop_watch *watch, int fd,
			void (*ready)(void *arg, short events), const char *what, const struct graft_log *log)
{
	*watch = (struct graft_loop_watch){ .fd = fd, .events = POLLIN, .ready = ready, .arg = hardware };
	if (fd >= 0 && graft_loop_watch(hardware->loop, watch, NULL) == 0)
		return;
	graft_warn(log, "%s: %s", what, fd < 0 ? strerror(-fd) : "out of memory");
	if (fd >= 0)
		(void)close(fd);
	watch->fd = -1;
	if (!hardware->poll.link)
		graft_loop_set_timer(hardware->loop, &hardware->poll, HARDWARE_POLL_MS);
}

void hardware_begin(struct hardware *hardware, struct graft_loop *loop, const char *dev_folder,
		    const struct graft_log *log, void (*changed)(void *arg), void *arg)
{
	*hardware = (struct hardware){ .loop = loop, .changed = changed, .arg = arg };
	hardware->settle = (struct graft_loop_timer){ .due = settled, .arg = hardware };
	hardware->poll = (struct graft_loop_timer){ .due = poll_hardware, .arg = hardware };
	begin_watch(hardware, &hardware->events, listen_to_kernel(), event_came,
		    "cannot watch PCI devices, checking every ten seconds", log);
	begin_watch(hardware, &hardware->nodes, watch_nodes(dev_folder), event_came,
		    "cannot watch device nodes, checking every ten seconds", log);
}

void hardware_done(struct hardware *hardware)
{
	if (!hardware->loop)
		return;
	graft_loop_clear_timer(&hardware->settle);
	graft_loop_clear_timer(&hardware->poll);
	graft_loop_close(hardware->loop, &hardware->events);
	graft_loop_close(hardware->loop, &hardware->nodes);
	hardware->loop = NULL;
}
