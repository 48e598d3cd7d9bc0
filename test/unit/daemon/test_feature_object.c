/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "daemon/feature_object.h"
#include "formats/json/json_document.h"

static struct graft_kube_label some_labels[] = { { "nvidia.com/gpu.count", "8" },
						 { "nvidia.com/gpu.product", "A \"quoted\" one" } };
static const struct graft_kube_labels labels = { .items = some_labels, .n_items = GRAFT_COUNT(some_labels) };

static void read_text(struct feature_object *object, const char *text)
{
	auto_json_document struct graft_json_document *document = NULL;

	assert_int_equal(graft_json_document_parse("test", text, strlen(text), &document, NULL), 0);
	feature_object_read(object, graft_json_document_root(document));
}

static void read_pod(struct feature_owners *owners, const char *text, int result, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;

	assert_int_equal(graft_json_document_parse("test", text, strlen(text), &document, NULL), 0);
	assert_int_equal(feature_owners_of_pod(owners, graft_json_document_root(document), err), result);
}

/* What is written is what is read again. */
static void test_round(void **state)
{
	struct graft_buffer json = { .max = FEATURE_OBJECT_MAX }, wanted = { .max = FEATURE_OBJECT_MAX };
	struct feature_owners owners = { .n = 0 };
	struct feature_object object = { .there = false };
	const struct feature_content content = { .name = "nvidia-features-for-a",
						 .namespace_ = "gpu",
						 .node = "a",
						 .version = "17",
						 .owners = &owners,
						 .labels = &labels };

	read_pod(
	    &owners,
	    "{\"metadata\":{\"name\":\"p\",\"uid\":\"9\",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
	    "\"DaemonSet\",\"name\":\"d\",\"uid\":\"1\",\"controller\":true},{\"kind\":\"NoUid\"}]}}",
	    0, NULL);
	assert_int_equal(owners.n, 2);
	assert_string_equal(owners.items[0].kind, "DaemonSet");
	assert_string_equal(owners.items[1].name, "p");
	feature_object_write(&content, &json);
	read_text(&object, graft_buffer_text(&json));
	feature_object_describe(&labels, "a", &wanted);
	assert_true(object.there);
	assert_string_equal(object.version, "17");
	assert_string_equal(graft_buffer_text(&object.text), graft_buffer_text(&wanted));
	assert_true(feature_owners_equal(&object.owners, &owners));
	assert_true(object.owners.items[0].controller && !object.owners.items[1].controller);
	/* An object that is gone has nothing. */
	feature_object_read(&object, NULL);
	assert_false(object.there);
	assert_int_equal(object.owners.n, 0);
	assert_int_equal(object.text.length, 0);
	assert_false(feature_owners_equal(&object.owners, &owners));
	feature_object_done(&object);
	feature_owners_done(&owners);
	graft_buffer_done(&json);
	graft_buffer_done(&wanted);
}

/* Whatever a server says is read; it is just not what is wanted. */
static void test_strange(void **state)
{
	static const char *const texts[] = {
		"[]",
		"{}",
		"7",
		"{\"metadata\":[],\"spec\":7}",
		"{\"metadata\":{\"resourceVersion\":7,\"labels\":[],\"ownerReferences\":{}},\"spec\":{\"labels\":[1]}}",
		"{\"metadata\":{\"ownerReferences\":[7,{},{\"uid\":\"1\"},null]},\"spec\":{\"labels\":{\"a\":7}}}",
	};
	struct feature_object object = { .there = false };
	struct graft_buffer many = { .max = 0 };

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		read_text(&object, texts[i]);
		assert_true(object.there);
		assert_string_equal(object.version, "");
		assert_int_equal(object.owners.n, 0);
	}
	/* More owners than there is room for. */
	graft_buffer_string(&many, "{\"metadata\":{\"ownerReferences\":[");
	for (int i = 0; i < FEATURE_OBJECT_OWNERS + 5; i++)
		graft_buffer_printf(&many, "%s{\"kind\":\"k\",\"uid\":\"%d\"}", i > 0 ? "," : "", i);
	graft_buffer_string(&many, "]}}");
	read_text(&object, graft_buffer_text(&many));
	graft_buffer_done(&many);
	assert_int_equal(object.owners.n, FEATURE_OBJECT_OWNERS);
	feature_object_done(&object);
}

/* What is no pod changes nothing. */
static void test_no_pod(void **state)
{
	struct feature_owners owners = { .n = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	read_pod(&owners, "{\"metadata\":{\"name\":\"p\",\"uid\":\"9\"}}", 0, NULL);
	read_pod(&owners, "{\"metadata\":{\"name\":\"q\"}}", -1, &err);
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_string_equal(err.msg, "the pod has no metadata.uid");
	assert_int_equal(owners.n, 1);
	assert_string_equal(owners.items[0].name, "p");
	feature_owners_done(&owners);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_strange),
		cmocka_unit_test(test_no_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
