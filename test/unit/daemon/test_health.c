/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/health.h"

#define GPU_A "00000000:3b:00.0"
#define GPU_B "00000000:5e:00.0"

struct ward {
	struct graft_loop loop;
	struct health health;
	struct graft_inventory *inventory;
	struct graft_xid_rules rules;
	char directory[64], log[96], place[160], state[160];
	int log_fd, n_changes;
};

static void note_change(void *arg)
{
	((struct ward *)arg)->n_changes++;
}

static void add_gpu(struct ward *ward, const char *bus_id, const char *procfs_path)
{
	struct graft_gpu *gpu = graft_arena_push(ward->inventory->arena, &ward->inventory->gpus,
						 &ward->inventory->n_gpus, sizeof(*gpu));

	assert_non_null(gpu);
	gpu->bus_id = bus_id;
	gpu->procfs_path = procfs_path;
}

static void begin_health(struct ward *ward)
{
	const struct health_options options = { .loop = &ward->loop,
						.kernel_log = ward->log,
						.state_folder = ward->state,
						.sys_root = ward->directory,
						.changed = note_change,
						.arg = ward };

	health_begin(&ward->health, &options);
	health_configure(&ward->health, &ward->rules, ward->inventory);
}

static void open_ward(struct ward *ward, bool fifo, const char *earlier)
{
	*ward = (struct ward){ .directory = "/tmp/graft-health-XXXXXX" };
	assert_non_null(mkdtemp(ward->directory));
	(void)snprintf(ward->log, sizeof(ward->log), "%s/kmsg", ward->directory);
	(void)snprintf(ward->place, sizeof(ward->place), "%s/gpu", ward->directory);
	(void)snprintf(ward->state, sizeof(ward->state), "%s/state", ward->directory);
	assert_int_equal(mkdir(ward->place, 0700), 0);
	if (fifo)
		assert_int_equal(mkfifo(ward->log, 0600), 0);
	ward->log_fd = open(ward->log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(ward->log_fd >= 0);
	assert_int_equal(write(ward->log_fd, earlier, strlen(earlier)), strlen(earlier));
	ward->inventory = graft_inventory_new();
	assert_non_null(ward->inventory);
	ward->inventory->proc_root = ward->directory;
	add_gpu(ward, GPU_A, "/gpu");
	add_gpu(ward, GPU_B, NULL);
	ward->rules = graft_xid_rules_make("", "");
	begin_health(ward);
}

static void remove_all(const char *path)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "rm -rf -- '%s'", path);
	assert_int_equal(system(command), 0);
}

static void close_ward(struct ward *ward)
{
	health_done(&ward->health);
	graft_loop_done(&ward->loop);
	(void)graft_inventory_free(ward->inventory);
	(void)close(ward->log_fd);
	remove_all(ward->directory);
}

/* The plugin ends, and another one begins. */
static void restart(struct ward *ward)
{
	health_done(&ward->health);
	begin_health(ward);
}

static void report(struct ward *ward, const char *line)
{
	int before = ward->n_changes;
	int64_t end = graft_clock_ms() + 300;

	assert_int_equal(write(ward->log_fd, line, strlen(line)), strlen(line));
	while (ward->n_changes == before && graft_clock_ms() < end)
		assert_int_equal(graft_loop_turn(&ward->loop, 50, NULL), 0);
}

static bool is_healthy(const struct ward *ward, const char *bus_id)
{
	return health_find(&ward->health, bus_id, false, 0, 0) == NULL;
}

static void check_course(bool fifo)
{
	struct ward ward;

	open_ward(&ward, fifo, "NVRM: Xid (PCI:0000:5e:00): 48, pid=1, before the plugin\n");
	assert_false(is_healthy(&ward, GPU_B));
	assert_true(is_healthy(&ward, GPU_A));
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 13, pid=1, of an application\n");
	assert_true(is_healthy(&ward, GPU_A));
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\nNVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	assert_false(is_healthy(&ward, GPU_A));
	assert_int_equal(health_find(&ward.health, GPU_A, false, 0, 0)->line.number, 79);
	/* Half a line does not count yet. */
	report(&ward, "NVRM: Xid (PCI:0000:5e:00): 154, GPU recovery action changed from 0x1 (x) ");
	assert_false(is_healthy(&ward, GPU_B));
	report(&ward, "to 0x0 (None)\n");
	assert_true(is_healthy(&ward, GPU_B));
	report(&ward, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14\n");
	assert_true(is_healthy(&ward, GPU_A));
	assert_int_equal(ward.n_changes, 4);
	assert_int_equal(ward.health.n_xids, 4);
	assert_null(ward.loop.timers ? ward.loop.timers->next : NULL);
	close_ward(&ward);
}

static void test_file(void **state)
{
	check_course(false);
}

static void test_fifo(void **state)
{
	check_course(true);
}

/* A fault of a MIG device is its own, and that of a GPU which is used whole. */
static void test_mig(void **state)
{
	struct ward ward;

	open_ward(&ward, false, "");
	report(&ward, "NVRM: Xid (PCI:0000:3b:00 GPU-I:02 GPU-CI:00): 94, pid=1, contained\n");
	assert_non_null(health_find(&ward.health, GPU_A, true, 2, 0));
	assert_null(health_find(&ward.health, GPU_A, true, 1, 0));
	assert_null(health_find(&ward.health, GPU_A, true, 2, 1));
	assert_non_null(health_find(&ward.health, GPU_A, false, 0, 0));
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	assert_non_null(health_find(&ward.health, GPU_A, true, 1, 0));
	assert_int_equal(ward.health.n_faults, 2);
	close_ward(&ward);
}

/*
 * The GPU's directory in procfs is another one: the driver was loaded again, or the GPU was removed
 * for a while.
 */
static void test_place(void **state)
{
	struct ward ward;
	char other[170];
	int64_t end;

	open_ward(&ward, false, "");
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	(void)snprintf(other, sizeof(other), "%s.new", ward.place);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(rename(other, ward.place), 0);
	end = graft_clock_ms() + 10000;
	while (!is_healthy(&ward, GPU_A) && graft_clock_ms() < end)
		assert_int_equal(graft_loop_turn(&ward.loop, 100, NULL), 0);
	assert_true(is_healthy(&ward, GPU_A));
	assert_int_equal(ward.n_changes, 2);
	assert_null(ward.loop.timers);
	close_ward(&ward);
}

/* What is not checked any more is no fault any more. */
static void test_configure(void **state)
{
	struct ward ward;

	open_ward(&ward, false, "");
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	report(&ward, "NVRM: Xid (PCI:0000:5e:00): 48, pid=1\n");
	ward.rules = graft_xid_rules_make("79", "");
	health_configure(&ward.health, &ward.rules, ward.inventory);
	assert_true(is_healthy(&ward, GPU_A));
	assert_false(is_healthy(&ward, GPU_B));
	close_ward(&ward);
}

/* More GPUs than fit: then all of them count as failed. Lines of any length do no harm. */
static void test_bounds(void **state)
{
	struct ward ward;
	char line[3000];

	open_ward(&ward, false, "");
	for (unsigned int i = 0; i <= HEALTH_MAX_FAULTS; i++) {
		assert_true(is_healthy(&ward, GPU_B));
		(void)snprintf(line, sizeof(line), "NVRM: Xid (PCI:%04x:%02x:00): 79, pid=1\n", 1 + i / 256, i % 256);
		report(&ward, line);
	}
	assert_int_equal(ward.health.n_faults, HEALTH_MAX_FAULTS);
	assert_int_equal(health_find(&ward.health, GPU_B, false, 0, 0)->cause, HEALTH_TABLE);
	assert_null(health_find(&ward.health, NULL, false, 0, 0));
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	report(&ward, line);
	report(&ward, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14\n");
	assert_int_equal(ward.health.n_faults, 0);
	assert_true(is_healthy(&ward, GPU_B));
	close_ward(&ward);
}

/* More MIG devices than fit: they become one fault of their GPU, and other GPUs stay as they are. */
static void test_many_instances(void **state)
{
	struct ward ward;
	char line[100];

	open_ward(&ward, false, "");
	for (unsigned int i = 0; i <= HEALTH_MAX_FAULTS; i++) {
		(void)snprintf(line, sizeof(line), "NVRM: Xid (PCI:0000:3b:00 GPU-I:%02x GPU-CI:%02x): 94, pid=1\n",
			       i / 16, i % 16);
		report(&ward, line);
	}
	assert_int_equal(ward.health.n_faults, 2);
	assert_non_null(health_find(&ward.health, GPU_A, true, 200, 0));
	assert_true(is_healthy(&ward, GPU_B));
	close_ward(&ward);
}

/* A recovery and a new fault in one read: one report, of the last state; both are counted. */
static void test_one_read(void **state)
{
	struct ward ward;

	open_ward(&ward, false, "NVRM: Xid (PCI:0000:5e:00): 48, pid=1, before the plugin\n");
	assert_int_equal(ward.n_changes, 1);
	report(&ward, "NVRM: Xid (PCI:0000:5e:00): 154, GPU recovery action changed from 0x1 (x) to 0x0 (None)\n"
		      "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	assert_int_equal(ward.n_changes, 2);
	assert_true(is_healthy(&ward, GPU_B));
	assert_false(is_healthy(&ward, GPU_A));
	assert_int_equal(ward.health.n_began[HEALTH_XID], 2);
	assert_int_equal(ward.health.n_ended[HEALTH_RESET], 1);
	close_ward(&ward);
}

/* A driver that does not say 154 says that a GPU was reset. */
static void test_reset_line(void **state)
{
	struct ward ward;

	open_ward(&ward, false, "NVRM: Xid (PCI:0000:5e:00): 48, pid=1\nNVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	report(&ward, "NVRM: GPU 0000:5e:00.0: GPU reset\n");
	assert_true(is_healthy(&ward, GPU_B));
	assert_false(is_healthy(&ward, GPU_A));
	assert_int_equal(ward.health.n_ended[HEALTH_RESET], 1);
	report(&ward, "NVRM: Xid (PCI:0000:5e:00): 48, pid=1\n");
	assert_false(is_healthy(&ward, GPU_B));
	close_ward(&ward);
}

static void test_found(void **state)
{
	struct ward ward;

	open_ward(&ward, false,
		  "pci 0000:3b:00.0: [10de:2330] type 00 class 0x030200\n"
		  "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	assert_false(is_healthy(&ward, GPU_A));
	report(&ward, "pci 0000:3b:00.0: [10de:2330] type 00 class 0x030200\n");
	assert_true(is_healthy(&ward, GPU_A));
	assert_int_equal(ward.health.n_ended[HEALTH_FOUND], 1);
	close_ward(&ward);
}

/* --- restarts --- */

static void write_text(const char *directory, const char *name, const char *text)
{
	char path[300];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* The GPU's directory in procfs is made anew, under another number. */
static void replace_place(const struct ward *ward)
{
	char other[170];

	(void)snprintf(other, sizeof(other), "%s.new", ward->place);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(rename(other, ward->place), 0);
}

/* What was seen of a recovery, which the log does not say, outlives the plugin; a later fault does, too. */
static void test_recovery_outlives(void **state)
{
	struct ward ward;

	open_ward(&ward, false, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	replace_place(&ward);
	health_look(&ward.health);
	assert_true(is_healthy(&ward, GPU_A));
	assert_int_equal(ward.health.n_ended[HEALTH_BOUND], 1);
	restart(&ward);
	assert_true(is_healthy(&ward, GPU_A));
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	assert_false(is_healthy(&ward, GPU_A));
	restart(&ward);
	assert_false(is_healthy(&ward, GPU_A));
	close_ward(&ward);
}

/* The driver has the GPU anew while no plugin runs. */
static void test_recovery_meanwhile(void **state)
{
	struct ward ward;

	open_ward(&ward, false, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	health_done(&ward.health);
	replace_place(&ward);
	begin_health(&ward);
	assert_true(is_healthy(&ward, GPU_A));
	restart(&ward);
	assert_true(is_healthy(&ward, GPU_A));
	close_ward(&ward);
}

/* A file of another boot, or a damaged one, says nothing: what the log says counts. */
static void test_other_files(void **state)
{
	struct ward ward;
	char path[200];

	open_ward(&ward, false, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	(void)snprintf(path, sizeof(path), "%s/health.json", ward.state);
	assert_int_equal(access(path, F_OK), 0);
	write_text(ward.state, "health.json", "{\"boot_id\": \"1\", \"marks\": [{\"bus\": 59, \"sequence\": 99}]}");
	restart(&ward);
	assert_false(is_healthy(&ward, GPU_A));
	write_text(ward.state, "health.json", "{\"boot_id\": ");
	restart(&ward);
	assert_false(is_healthy(&ward, GPU_A));
	close_ward(&ward);
}

static void test_clear(void **state)
{
	struct ward ward;

	open_ward(&ward, false, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\nNVRM: Xid (PCI:0000:5e:00): 48, pid=1\n");
	assert_true(health_clear(&ward.health, GPU_A));
	assert_false(health_clear(&ward.health, GPU_A));
	assert_true(is_healthy(&ward, GPU_A));
	assert_false(is_healthy(&ward, GPU_B));
	restart(&ward);
	assert_true(is_healthy(&ward, GPU_A));
	assert_false(is_healthy(&ward, GPU_B));
	assert_true(health_clear(&ward.health, NULL));
	assert_true(is_healthy(&ward, GPU_B));
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	assert_false(is_healthy(&ward, GPU_A));
	close_ward(&ward);
}

/* What a FIFO has said it does not say again, and nothing of it is kept. */
static void test_fifo_is_not_kept(void **state)
{
	struct ward ward;

	open_ward(&ward, true, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	assert_true(health_clear(&ward.health, NULL));
	restart(&ward);
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	assert_false(is_healthy(&ward, GPU_A));
	assert_int_equal(access(ward.state, F_OK), -1);
	close_ward(&ward);
}

/* --- what is there --- */

#define SYSFS "sys/bus/pci/devices/0000:3b:00.0"

/* GPU_A with all that a GPU has. */
static void furnish(struct ward *ward)
{
	char command[600];

	(void)snprintf(command, sizeof(command),
		       "cd '%s' && mkdir -p " SYSFS "/power dev && ln -s ../drivers/nvidia " SYSFS
		       "/driver && ln -s /dev/null dev/nvidia0 && printf 'active\\n' >" SYSFS
		       "/power/runtime_status && printf '\\336\\020\\060\\043' >" SYSFS "/config",
		       ward->directory);
	assert_int_equal(system(command), 0);
	ward->inventory->dev_root = ward->directory;
	ward->inventory->gpus[0].node.path = "/dev/nvidia0";
	health_configure(&ward->health, &ward->rules, ward->inventory);
	assert_true(is_healthy(ward, GPU_A));
}

static void in_ward(struct ward *ward, const char *what)
{
	char command[600];

	(void)snprintf(command, sizeof(command), "cd '%s' && { %s; }", ward->directory, what);
	assert_int_equal(system(command), 0);
	health_look(&ward->health);
}

static const struct {
	const char *gone, *back;
	enum health_cause cause;
	bool anew; /* what the log has said is over then */
} absences[] = {
	{ "mv dev/nvidia0 dev/n", "mv dev/n dev/nvidia0", HEALTH_NODE, false },
	{ "mv gpu g", "mv g gpu", HEALTH_DRIVER, true },
	{ "mv sys s", "mv s sys", HEALTH_PCI, true },
	{ "printf '\\377\\377\\377\\377' >" SYSFS "/config", "printf '\\336\\020\\060\\043' >" SYSFS "/config",
	  HEALTH_PCI, true },
};

static void test_absences(void **state)
{
	struct ward ward;

	open_ward(&ward, false, "");
	furnish(&ward);
	for (size_t i = 0; i < GRAFT_COUNT(absences); i++) {
		int before = ward.n_changes;

		print_message("# %s\n", absences[i].gone);
		report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
		in_ward(&ward, absences[i].gone);
		in_ward(&ward, absences[i].gone[0] == 'p' ? ":" : "true");
		assert_int_equal(ward.n_changes, before + 2);
		assert_int_equal(ward.health.n_faults, 2);
		assert_int_equal(ward.health.faults[1].cause, absences[i].cause);
		/* A new configuration does not take that for how it was. */
		health_configure(&ward.health, &ward.rules, ward.inventory);
		assert_int_equal(ward.health.n_faults, 2);
		in_ward(&ward, absences[i].back);
		assert_int_equal(ward.n_changes, before + 3);
		assert_int_equal(is_healthy(&ward, GPU_A), absences[i].anew);
		(void)health_clear(&ward.health, NULL);
	}
	assert_int_equal(ward.health.n_ended[HEALTH_RETURNED], GRAFT_COUNT(absences));
	/* The driver has given it up, and has it anew. */
	report(&ward, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	in_ward(&ward, "ln -sfn ../drivers/other " SYSFS "/d && mv -T " SYSFS "/d " SYSFS "/driver");
	assert_true(is_healthy(&ward, GPU_A));
	/* To ask a GPU that sleeps whether it answers would wake it. */
	in_ward(&ward, "printf 'suspended\n' >" SYSFS "/power/runtime_status && printf '\\377\\377\\377\\377' >" SYSFS
		       "/config");
	assert_true(is_healthy(&ward, GPU_A));
	/* With checks off, nothing is missed. */
	ward.rules = graft_xid_rules_make("all", "79");
	health_configure(&ward.health, &ward.rules, ward.inventory);
	in_ward(&ward, "rm -r dev/nvidia0 gpu sys");
	assert_true(is_healthy(&ward, GPU_A));
	close_ward(&ward);
}

static void test_no_log(void **state)
{
	auto_loop struct graft_loop loop = { 0 };
	const struct graft_xid_rules rules = graft_xid_rules_make("", "");
	struct health health;
	const struct health_options options = {
		.loop = &loop, .kernel_log = "/tmp/graft-no-such-log", .sys_root = "", .changed = note_change
	};

	health_begin(&health, &options);
	health_configure(&health, &rules, NULL);
	assert_int_equal(loop.n_watches, 0);
	assert_null(health_find(&health, GPU_A, false, 0, 0));
	health_done(&health);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_mig),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_configure),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_many_instances),
		cmocka_unit_test(test_one_read),
		cmocka_unit_test(test_reset_line),
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_recovery_outlives),
		cmocka_unit_test(test_recovery_meanwhile),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_fifo_is_not_kept),
		cmocka_unit_test(test_absences),
		cmocka_unit_test(test_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
