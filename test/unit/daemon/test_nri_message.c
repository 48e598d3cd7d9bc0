/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "daemon/nri_message.h"
#include <nri.pb-c.h>

typedef Nri__Pkg__Api__V1alpha1__ContainerAdjustment adjustment_t;

static char *words(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* What is missing is "" or none; entries without '=' are no variables. */
static void test_view(void **state)
{
	struct graft_nri_container view;
	Nri__Pkg__Api__V1alpha1__PodSandbox pod;
	Nri__Pkg__Api__V1alpha1__Container container;
	Nri__Pkg__Api__V1alpha1__KeyValue annotation, *annotations[] = { &annotation };
	Nri__Pkg__Api__V1alpha1__Mount mount, *mounts[] = { &mount };
	Nri__Pkg__Api__V1alpha1__LinuxContainer part;
	Nri__Pkg__Api__V1alpha1__LinuxDevice node, *nodes[] = { &node };
	Nri__Pkg__Api__V1alpha1__CDIDevice named, *names[] = { &named };
	char *env[] = { words("A=1"), words("broken"), words("B=") };

	assert_int_equal(nri_message_view(NULL, NULL, arena, &view, NULL), 0);
	assert_string_equal(view.namespace_, "");
	assert_string_equal(view.name, "");
	assert_string_equal(view.handler, "");
	assert_int_equal(view.n_env + view.n_mounts + view.n_pod_annotations, 0);

	nri__pkg__api__v1alpha1__pod_sandbox__init(&pod);
	nri__pkg__api__v1alpha1__container__init(&container);
	nri__pkg__api__v1alpha1__key_value__init(&annotation);
	nri__pkg__api__v1alpha1__mount__init(&mount);
	pod.namespace_ = words("default");
	pod.runtime_handler = words("nvidia");
	annotation.key = words("key");
	annotation.value = words("value");
	pod.n_annotations = 1;
	pod.annotations = annotations;
	container.env = env;
	container.n_env = GRAFT_COUNT(env);
	mount.destination = words("/there");
	mount.source = words("/here");
	container.mounts = mounts;
	container.n_mounts = 1;
	nri__pkg__api__v1alpha1__linux_container__init(&part);
	nri__pkg__api__v1alpha1__linux_device__init(&node);
	nri__pkg__api__v1alpha1__cdidevice__init(&named);
	node.path = words("/dev/nvidia0");
	named.name = words("nvidia.com/gpu=0");
	part.devices = nodes;
	part.n_devices = 1;
	container.linux_part = &part;
	container.cdi_devices = names;
	container.n_cdi_devices = 1;
	assert_int_equal(nri_message_view(&pod.base, &container.base, arena, &view, NULL), 0);
	assert_string_equal(view.namespace_, "default");
	assert_string_equal(view.handler, "nvidia");
	assert_string_equal(view.pod_annotations[0].value, "value");
	assert_int_equal(view.n_env, 2);
	assert_string_equal(view.env[1], "B=");
	assert_string_equal(view.mounts[0].source, "/here");
	assert_string_equal(view.nodes.items[0], "/dev/nvidia0");
	assert_string_equal(view.cdi_names.items[0], "nvidia.com/gpu=0");
}

static const adjustment_t *adjust(const struct graft_cdi_edits *edits, struct graft_error *err)
{
	graft_error_clear(err);
	return (const adjustment_t *)(const void *)nri_message_adjust(edits, arena, err);
}

static void test_edits(void **state)
{
	struct graft_cdi_node nodes[] = {
		{ .path = "/dev/a", .type = "c", .major = 195, .minor = 1, .permissions = "rwm" },
		{ .path = "/dev/seen", .type = "c", .major = 195, .minor = 2, .permissions = "" },
		{ .path = "/dev/b",
		  .has_mode = true,
		  .mode = 0600,
		  .has_uid = true,
		  .uid = 7,
		  .has_gid = true,
		  .gid = 8 },
	};
	const char *options[] = { "ro", "nosuid" }, *args[] = { "hook", "x" }, *env[] = { "A=1=2", "B" };
	struct graft_cdi_mount mounts[] = {
		{ .host_path = "/h", .container_path = "/c" },
		{ .host_path = "/h2", .container_path = "/c2", .type = "tmpfs", .options = options, .n_options = 2 },
	};
	struct graft_cdi_hook hook = { .stage = "createContainer",
				       .path = "/usr/bin/nvidia-cdi-hook",
				       .args = args,
				       .n_args = 2,
				       .has_timeout = true,
				       .timeout = 5 };
	const struct graft_cdi_edits edits = { .env = env,
					       .n_env = 2,
					       .nodes = nodes,
					       .n_nodes = 3,
					       .mounts = mounts,
					       .n_mounts = 2,
					       .hooks = &hook,
					       .n_hooks = 1 };
	struct graft_error err = { .status = GRAFT_OK };
	const adjustment_t *a = adjust(&edits, &err);

	assert_non_null(a);
	/* The engine would allow the use of what may only be seen. */
	assert_int_equal(a->linux_part->n_devices, 2);
	assert_int_equal(a->linux_part->devices[0]->major, 195);
	assert_null(a->linux_part->devices[0]->file_mode);
	assert_string_equal(a->linux_part->devices[1]->type, "c");
	assert_int_equal(a->linux_part->devices[1]->file_mode->value, 0600);
	assert_int_equal(a->linux_part->devices[1]->uid->value, 7);
	assert_int_equal(a->linux_part->devices[1]->gid->value, 8);
	assert_string_equal(a->mounts[0]->type, "bind");
	assert_int_equal(a->mounts[0]->n_options, 2);
	assert_string_equal(a->mounts[0]->options[0], "rbind");
	assert_string_equal(a->mounts[1]->type, "tmpfs");
	assert_string_equal(a->mounts[1]->options[1], "nosuid");
	assert_string_equal(a->env[0]->key, "A");
	assert_string_equal(a->env[0]->value, "1=2");
	assert_string_equal(a->env[1]->value, "");
	assert_int_equal(a->hooks->n_create_container, 1);
	/* No hook has the environment of the low-level runtime. */
	assert_int_equal(a->hooks->create_container[0]->n_env, 1);
	assert_int_equal(a->hooks->create_container[0]->timeout->value, 5);
	assert_non_null(adjust(&(struct graft_cdi_edits){ .n_env = 0 }, &err));
}

static void test_what_nri_lacks(void **state)
{
	const char *env[] = { "A=\xff" };
	struct graft_cdi_mount mount = { .host_path = "/usr/lib/\xc3", .container_path = "/c" };
	struct graft_cdi_node node = { .path = "/dev/\xe4", .type = "c" };
	struct graft_cdi_hook hooks[] = { { .stage = "later", .path = "/x" }, { .stage = "poststop", .path = "x" } };
	const struct {
		struct graft_cdi_edits edits;
		const char *why;
	} rows[] = {
		{ { .n_net_devices = 1 }, "NRI cannot express network devices of a CDI specification" },
		{ { .hooks = &hooks[0], .n_hooks = 1 }, "NRI cannot add a hook of stage 'later' (program '/x')" },
		{ { .hooks = &hooks[1], .n_hooks = 1 }, "NRI cannot add a hook of stage 'poststop' (program 'x')" },
		{ { .env = env, .n_env = 1 },
		  "NRI cannot express a path or a value that is not UTF-8; the driver's files or a CDI specification "
		  "have one" },
		{ { .mounts = &mount, .n_mounts = 1 },
		  "NRI cannot express a path or a value that is not UTF-8; the driver's files or a CDI specification "
		  "have one" },
		{ { .nodes = &node, .n_nodes = 1 },
		  "NRI cannot express a path or a value that is not UTF-8; the driver's files or a CDI specification "
		  "have one" },
	};
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_null(adjust(&rows[i].edits, &err));
		assert_int_equal(err.status, GRAFT_UNSUPPORTED);
		assert_string_equal(err.msg, rows[i].why);
	}
}

/* Each lack of memory is an error, and nothing is half there. */
static void test_memory(void **state)
{
	struct graft_cdi_node node = { .path = "/dev/a", .has_mode = true, .has_uid = true, .has_gid = true };
	struct graft_cdi_hook hook = { .stage = "poststop", .path = "/x", .has_timeout = true };
	struct graft_cdi_mount mount = { .host_path = "/h", .container_path = "/c" };
	const char *env[] = { "A=1" };
	const struct graft_cdi_edits edits = { .env = env,
					       .n_env = 1,
					       .nodes = &node,
					       .n_nodes = 1,
					       .mounts = &mount,
					       .n_mounts = 1,
					       .hooks = &hook,
					       .n_hooks = 1 };
	bool made = false;

	for (size_t max = 64; !made; max += 16) {
		struct graft_arena *small = graft_arena_new(max);
		struct graft_error err = { .status = GRAFT_OK };

		assert_true(max < 65536);
		made = small && nri_message_adjust(&edits, small, &err);
		if (small && !made)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		(void)graft_arena_free(small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_view, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_edits, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_what_nri_lacks, arena_setup, arena_teardown),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
