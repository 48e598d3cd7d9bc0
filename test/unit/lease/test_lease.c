/* SPDX-License-Identifier: Apache-2.0 */
/* A lease as a file: what is accepted and what is not, durations, labels, the paths of cgroups. */
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "base/cleanup.h"
#include "lease/lease.h"
#include "lease/lease_holder.h"
#include "request/claim.h"

#define HEAD \
	"{\"id\": \"abcdefgh2345\", \"boot\": \"b-1\", \"claim\": \"any:1\", \"uid\": 0, \"since\": 5, \"date\": 7, "
#define SLOT "\"slots\": [{\"gpu\": \"GPU-1\"}], "
#define CGROUP \
	"\"cgroup_version\": 1, \"cgroup_mount\": \"/sys/fs/cgroup/devices\", \"cgroup\": \"/docker/1\", \"pid\": 12"

static void test_parse(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: believed */
	} rows[] = {
		{ HEAD SLOT "\"holder\": {\"kind\": \"process\", \"pid\": 3}}", NULL },
		{ HEAD SLOT "\"holder\": {\"kind\": \"cgroup\", " CGROUP "}}", NULL },
		{ HEAD SLOT "\"until\": 9, \"holder\": {\"kind\": \"token\"}}", NULL },
		{ HEAD SLOT "\"holder\": {\"kind\": \"pid-file\", \"pid\": 3, \"pid_file\": \"/run/x\"}}", NULL },
		{ HEAD SLOT "\"holder\": {\"kind\": \"process\"}}", "holder.pid: not valid in a lease" },
		{ HEAD SLOT "\"holder\": {\"kind\": \"process\", \"pid\": 4294967295}}",
		  "holder.pid: not valid in a lease" },
		{ HEAD SLOT "\"holder\": {\"kind\": \"token\"}}", "until: not valid in a lease" },
		{ HEAD SLOT "\"holder\": {\"kind\": \"pid-file\", \"pid\": 3}}",
		  "holder.pid_file: not valid in a lease" },
		{ HEAD SLOT "\"holder\": {\"kind\": \"pid-file\", \"pid\": 3, \"pid_file\": \"run/x\"}}",
		  "holder.pid_file: not valid in a lease" },
		{ HEAD SLOT
		  "\"holder\": {\"kind\": \"cgroup\", \"pid\": 3, \"cgroup_version\": 2, \"cgroup_mount\": \"/c\", "
		  "\"cgroup\": \"/\"}}",
		  "holder.cgroup: not valid in a lease" },
		{ HEAD SLOT
		  "\"holder\": {\"kind\": \"cgroup\", \"pid\": 3, \"cgroup_version\": 2, \"cgroup_mount\": \"/c\", "
		  "\"cgroup\": \"/a/../b\"}}",
		  "holder.cgroup: not valid in a lease" },
		{ HEAD SLOT
		  "\"holder\": {\"kind\": \"cgroup\", \"pid\": 3, \"cgroup_version\": 3, \"cgroup_mount\": \"/c\", "
		  "\"cgroup\": \"/a\"}}",
		  "holder.cgroup: not valid in a lease" },
		{ HEAD "\"holder\": {\"kind\": \"process\", \"pid\": 3}}", NULL }, /* a ticket */
		{ HEAD "\"until\": 9, \"holder\": {\"kind\": \"token\"}}", "slots: not valid in a lease" },
		{ HEAD "\"slots\": [{\"gpu\": \"a b\"}], \"holder\": {\"kind\": \"process\", \"pid\": 3}}",
		  "slots: not valid in a lease" },
		{ HEAD SLOT "\"of\": \"x\", \"holder\": {\"kind\": \"process\", \"pid\": 3}}",
		  "id: not valid in a lease" },
		{ HEAD SLOT "\"what\": \"\\u001b[31m\", \"holder\": {\"kind\": \"process\", \"pid\": 3}}",
		  "text: not valid in a lease" },
		{ HEAD SLOT "\"holder\": {\"kind\": \"process\", \"pid\": 3, \"container\": \"\\n\"}}",
		  "holder.container: not valid in a lease" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_buffer out = { .max = 0 };
		struct graft_lease lease, again;
		int rc = graft_lease_parse(rows[i].text, strlen(rows[i].text), arena, &lease, &err);

		print_message("# %s\n", rows[i].want ? rows[i].want : "believed");
		assert_string_equal(err.msg, rows[i].want ? rows[i].want : "");
		assert_int_equal(rc, rows[i].want ? -1 : 0);
		if (rc < 0)
			continue;
		graft_lease_write(&lease, &out);
		assert_int_equal(graft_lease_parse(out.bytes, out.length, arena, &again, &err), 0);
		assert_true(graft_record_equal(&graft_lease_record, &lease, &again, NULL, 0));
		graft_buffer_done(&out);
	}
}

static void test_lease_allocations(void **state)
{
	static const char text[] = HEAD SLOT "\"holder\": {\"kind\": \"cgroup\", " CGROUP "}}";
	struct graft_lease lease;

	assert_true(allocation_each(own, err, graft_lease_parse(text, strlen(text), own, &lease, &err)) > 0);
}

static void test_spans(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms; /* 0 with rc -1 */
		int rc;
	} rows[] = {
		{ "90s", 90000, 0 },   { "30m", 1800000, 0 },
		{ "8h", 28800000, 0 }, { "2d", 172800000, 0 },
		{ "0s", 0, 0 },        { "366d", 31622400000, 0 },
		{ "367d", 0, -1 },     { "", 0, -1 },
		{ "s", 0, -1 },        { "5", 0, -1 },
		{ "5 s", 0, -1 },      { "-5s", 0, -1 },
		{ "5ss", 0, -1 },      { "99999999999999999999999s", 0, -1 },
	};
	struct graft_buffer out = { .max = 0 };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		uint64_t ms = 0;

		print_message("# '%s'\n", rows[i].text);
		assert_int_equal(graft_claim_read_span(rows[i].text, &ms) ? 0 : -1, rows[i].rc);
		assert_int_equal(ms, rows[i].ms);
	}
	graft_lease_add_span(0, &out);
	graft_lease_add_span(59999, &out);
	graft_lease_add_span(60000, &out);
	graft_lease_add_span(7200000, &out);
	graft_lease_add_span(172800000, &out);
	assert_string_equal(graft_buffer_text(&out), "0 s59 s1 min2 h2 d");
	graft_buffer_done(&out);
}

static void test_labels(void **state)
{
	const char *id = graft_lease_new_id(arena);

	assert_null(graft_lease_label(NULL, arena));
	assert_string_equal(graft_lease_label("a\x1b[1m\xc3\xa4\n", arena), "a?[1m???");
	assert_int_equal(
	    strlen(graft_lease_label("0123456789012345678901234567890123456789012345678901234567890123456789", arena)),
	    64);
	assert_true(graft_lease_id_is_valid(id));
	assert_string_not_equal(id, graft_lease_new_id(arena));
}

static void test_cgroup_paths(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "/docker/3f", "/docker/3f" },
		{ "/docker//x/../3f/", "/docker/3f" },
		{ "/", NULL },
		{ "/..", NULL },
		{ "docker/3f", NULL },
		{ "", NULL },
		{ "system.slice:docker:3f", "/system.slice/docker-3f.scope" },
		{ ":docker:3f", "/system.slice/docker-3f.scope" },
		{ "-.slice:docker:3f", "/docker-3f.scope" },
		{ "user-1000-x.slice:libpod:3f", "/user.slice/user-1000.slice/user-1000-x.slice/libpod-3f.scope" },
		{ "system.slice::3f", "/system.slice/3f.scope" },
		{ "system.slice:docker:", NULL },
		{ "system.slice:docker", NULL },
		{ "a.slice:b:c:d", NULL },
		{ "a/b.slice:x:y", NULL },
		{ "nothing:x:y", NULL },
		{ "a.slice:x:y.slice", NULL },
		{ "..slice:x:y", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *path = graft_lease_cgroup_path(rows[i].text, arena);

		print_message("# %s\n", rows[i].text);
		if (rows[i].want)
			assert_string_equal(path ? path : "NULL", rows[i].want);
		else
			assert_null(path);
	}
}

#define ID "3f2a00000000000000000000000000000000000000000000000000000000beef"

static void test_containers(void **state)
{
	static const struct {
		const char *cgroup, *want;
	} rows[] = {
		{ "/docker/" ID, ID },
		{ "/system.slice/docker-" ID ".scope", ID },
		{ "/machine.slice/libpod-" ID ".scope/container", ID },
		{ "/kubepods/burstable/pod1-2/cri-containerd-" ID ".scope", ID },
		{ "/docker/" ID "/docker/0" ID, ID },
		{ "/default/train", "train" },
		{ "/system.slice/run-1.scope", "run-1.scope" },
		{ "/x" ID, "x3f2a00000000000000000000000000000000000000000000000000000000bee" },
		{ "/", "" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		assert_string_equal(graft_lease_container_of(rows[i].cgroup, arena), rows[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_parse, arena_setup, arena_teardown),
		cmocka_unit_test(test_lease_allocations),
		cmocka_unit_test(test_spans),
		cmocka_unit_test_setup_teardown(test_labels, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_cgroup_paths, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_containers, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
