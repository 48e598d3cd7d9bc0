/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden: what each container would get on each host, compared with the bytes that are kept. A case is data: a host is a directory of hosts/ with
 * its inventory.json (or detection-error.txt: such a host gets no further), a request is a file of requests/ (asked of every host) or of
 * hosts/HOST/requests/ (asked of that one). REQUEST.policy.json beside a request replaces policy.json. The answer is in
 * plans/HOST/REQUEST.plan; for the request oci-gpu0 what becomes of the configuration of `runc spec` is beside it, in REQUEST.config.
 *
 *	golden DIRECTORY            compare; one TAP line a case
 *	golden DIRECTORY --update   write the answers and bring all JSON into its standard form
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/oci/to_oci.h"
#include "apply/to_text.h"
#include "base/cleanup.h"
#include "host/discover.h"
#include "plan/planner.h"

#define NAMES_MAX 256

struct golden {
	const char *directory;
	bool update;
	unsigned int n_cases, n_failed;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("Bail out! ", stdout);
	(void)vprintf(format, args);
	(void)fputs("\n", stdout);
	va_end(args);
	exit(99);
}

static void die_of(const char *path, const struct graft_error *err)
{
	char text[1024];

	die("%s: %s", path, graft_error_text(err, text, sizeof(text)));
}

/* The whole file in `out`; false when there is none. */
static bool read_file(const char *path, struct graft_buffer *out)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[16384];
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return false;
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		graft_buffer_add(out, bytes, (size_t)n);
	if (n < 0 || graft_buffer_failed(out))
		die("%s: cannot be read", path);
	return true;
}

static void write_file(const char *path, const struct graft_buffer *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, graft_buffer_text(text), text->length) != (ssize_t)text->length)
		die("%s: %s", path, strerror(errno));
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), suffix_length = strlen(suffix);

	return length > suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

static int compare_names(const void *a, const void *b)
{
	const char *x, *y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return strcmp(x, y);
}

/* Names in a directory without those that start with a dot, sorted; the count. */
static size_t list(const char *path, char *names[NAMES_MAX])
{
	auto_dir DIR *dir = opendir(path);
	const struct dirent *entry;
	size_t n = 0;

	while (dir && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (n == NAMES_MAX)
			die("%s: more than %d names", path, NAMES_MAX);
		names[n++] = strdup(entry->d_name);
	}
	qsort(names, n, sizeof(names[0]), compare_names);
	return n;
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
}

/*
 * Reads a JSON file of `record` and checks that it is as the writer would write it, which is how they are kept: a diff between two
 * of them then shows facts only.
 */
static void read_record(struct golden *golden, const char *path, const struct graft_record *record,
			struct graft_arena *arena, void *object)
{
	struct graft_buffer text = { 0 }, again = { 0 };
	struct graft_error err = { 0 };

	if (!read_file(path, &text))
		die("%s: not found", path);
	if (graft_record_read(record, graft_buffer_text(&text), text.length, arena, object, &err) < 0)
		die_of(path, &err);
	graft_record_write(record, object, &again);
	if (strcmp(graft_buffer_text(&text), graft_buffer_text(&again)) != 0) {
		if (golden->update)
			write_file(path, &again);
		else
			die("%s: not in standard form; run test/golden/update", path);
	}
	graft_buffer_done(&text);
	graft_buffer_done(&again);
}

static void add_needs(unsigned int facts, struct graft_buffer *out)
{
	static const char *const names[] = { "uuid", "model", "brand", "arch", "cuda", "mig" };

	graft_buffer_string(out, "needs from NVML:");
	for (unsigned int i = 0; i < GRAFT_COUNT(names); i++) {
		if ((facts & 1u << i) != 0)
			graft_buffer_printf(out, " %s", names[i]);
	}
	graft_buffer_char(out, '\n');
}

static void add_error(const struct graft_error *err, struct graft_buffer *out)
{
	char text[1024];

	graft_buffer_printf(out, "%s: %s\n[%s] %s\n", graft_error_step(err), graft_error_text(err, text, sizeof(text)),
			    graft_status_name(err->status), graft_status_hint(err->status));
}

/* The plan as text; it must be the same the second time, and after a trip through JSON. */
static void add_plan(const struct graft_plan *plan, struct graft_buffer *out)
{
	struct graft_buffer json = { 0 }, text = { 0 };
	struct graft_plan *again = NULL;
	struct graft_error err = { 0 };

	graft_plan_to_text(plan, out);
	graft_plan_write(plan, &json);
	if (graft_plan_read(graft_buffer_text(&json), json.length, &again, &err) < 0)
		die_of("plan", &err);
	graft_plan_to_text(again, &text);
	if (strcmp(graft_buffer_text(&text), graft_buffer_text(out)) != 0)
		die("a plan is another one after a trip through JSON");
	again = graft_plan_free(again);
	graft_buffer_done(&json);
	graft_buffer_done(&text);
}

/* JSON with a line for each value down to the second level: one for each mount. */
static void add_lines(const char *json, struct graft_buffer *out)
{
	enum { LINES = 2 };
	bool in_string = false;
	int depth = 0;

	for (const char *c = json; *c != '\0'; c++) {
		bool opens = !in_string && strchr("[{", *c), closes = !in_string && strchr("]}", *c);

		if (!in_string && strchr(" \n\t", *c))
			continue;
		depth -= closes;
		if (closes && depth < LINES && c[-1] != '[' && c[-1] != '{')
			graft_buffer_printf(out, "\n%*s", 2 * depth, "");
		graft_buffer_char(out, *c);
		if (in_string && *c == '\\')
			graft_buffer_char(out, *++c);
		else if (*c == '"')
			in_string = !in_string;
		depth += opens;
		if (((opens && c[1] != ']' && c[1] != '}') || (!in_string && *c == ',')) && depth <= LINES)
			graft_buffer_printf(out, "\n%*s", 2 * depth, "");
	}
	graft_buffer_char(out, '\n');
}

/* What becomes of a container's configuration when its root cannot be reached yet, so that nothing is opened. */
static void add_configuration(const char *directory, const struct graft_plan *plan, struct graft_buffer *out)
{
	const struct graft_oci_options options = { .hook_path = "/usr/bin/nvidia-cdi-hook", .no_root_work = true };
	struct graft_json_document *document = NULL;
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_buffer text = { 0 };
	struct graft_oci_spec spec;
	struct graft_error err = { 0 };
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/oci/runc-spec.json", directory);
	if (!read_file(path, &text))
		die("%s: %s", path, strerror(errno));
	if (graft_json_document_parse(path, graft_buffer_text(&text), text.length, &document, &err) < 0 ||
	    graft_oci_spec_read(document, arena, &spec, &err) < 0 ||
	    graft_apply_to_oci(plan, "/bundle", &spec, &options, document, &err) < 0)
		die_of(path, &err);
	graft_buffer_done(&text);
	if (graft_json_document_write(document, &text, &err) < 0)
		die_of(path, &err);
	add_lines(graft_buffer_text(&text), out);
	graft_json_document_free(document);
	graft_buffer_done(&text);
	(void)graft_arena_free(arena);
}

/* What configure would say and do, up to the point where something is done. `directory` is NULL unless the configuration is wanted too. */
static void answer(const struct graft_inventory *inventory, const struct graft_request *request,
		   const struct graft_policy *policy, struct graft_buffer *out, const char *directory,
		   struct graft_buffer *configuration)
{
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_selection selection = { 0 };
	struct graft_error err = { 0 };
	struct graft_plan *plan = NULL;
	unsigned int missing = graft_select_missing_facts(inventory, request);
	int result = 1;

	if (missing == 0) {
		result = graft_select(inventory, request, arena, &selection, &err);
		if (result == 0) {
			result = graft_plan_check_requirements(inventory, request, &selection, &missing, &err);
			if (result < 0)
				(void)graft_in_step(&err, GRAFT_STEP_REQUIREMENT);
		}
	}
	if (result == 0) {
		result = graft_plan_make(inventory, request, policy, &selection, &plan, &err);
		if (result < 0)
			(void)graft_in_step(&err, GRAFT_STEP_MOUNT);
	}
	if (result > 0)
		add_needs(missing, out);
	else if (result < 0)
		add_error(&err, out);
	else
		add_plan(plan, out);
	if (result == 0 && directory)
		add_configuration(directory, plan, configuration);
	(void)graft_plan_free(plan);
	(void)graft_arena_free(arena);
}

/* The first line that differs, with the two before it. */
static void show_difference(const char *wanted, const char *got)
{
	const char *starts[3] = { wanted, wanted, wanted };
	unsigned int line = 1;

	while (*wanted != '\0' && *got != '\0') {
		size_t length = strcspn(wanted, "\n"), got_length = strcspn(got, "\n");

		if (length != got_length || memcmp(wanted, got, length) != 0)
			break;
		starts[0] = starts[1];
		starts[1] = wanted;
		wanted += length + (wanted[length] == '\n');
		got += got_length + (got[got_length] == '\n');
		line++;
	}
	printf("# first difference in line %u:\n", line);
	for (unsigned int i = 0; i < 2; i++) {
		if (starts[i] < wanted && (i == 0 || starts[i] > starts[i - 1]))
			printf("#   %.*s\n", (int)strcspn(starts[i], "\n"), starts[i]);
	}
	printf("# - %.*s\n# + %.*s\n", (int)strcspn(wanted, "\n"), wanted, (int)strcspn(got, "\n"), got);
}

static void compare(struct golden *golden, const char *host, const char *request, const char *suffix,
		    const struct graft_buffer *got)
{
	struct graft_buffer wanted = { 0 };
	char path[1024];
	bool same;

	golden->n_cases++;
	(void)snprintf(path, sizeof(path), "%s/plans/%s/%s.%s", golden->directory, host, request, suffix);
	if (golden->update) {
		write_file(path, got);
		return;
	}
	same = read_file(path, &wanted) && strcmp(graft_buffer_text(&wanted), graft_buffer_text(got)) == 0;
	printf("%sok %u %s/%s.%s\n", same ? "" : "not ", golden->n_cases, host, request, suffix);
	if (!same) {
		golden->n_failed++;
		show_difference(graft_buffer_text(&wanted), graft_buffer_text(got));
	}
	graft_buffer_done(&wanted);
}

/* Everything about one host, read once. */
struct host {
	const char *name;
	struct graft_arena *arena;
	struct graft_inventory inventory;
	struct graft_buffer detection_error;
};

static void run_case(struct golden *golden, struct host *host, const char *requests, const char *name)
{
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_request request = { 0 };
	struct graft_policy policy = { 0 };
	struct graft_buffer text = { 0 }, again = { 0 }, configuration = { 0 };
	const char *directory = strcmp(name, "oci-gpu0") == 0 ? golden->directory : NULL;
	char path[1024], policy_path[1024];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s.json", requests, name);
	read_record(golden, path, &graft_request_record, arena, &request);
	(void)snprintf(policy_path, sizeof(policy_path), "%s/%s.policy.json", requests, name);
	if (stat(policy_path, &st) < 0)
		(void)snprintf(policy_path, sizeof(policy_path), "%s/policy%s.json", golden->directory,
			       strncmp(name, "oci-", strlen("oci-")) == 0 ? "-oci" : "");
	read_record(golden, policy_path, &graft_policy_record, arena, &policy);
	if (host->detection_error.length > 0) {
		graft_buffer_printf(&text, "detection error: %s", graft_buffer_text(&host->detection_error));
	} else {
		answer(&host->inventory, &request, &policy, &text, directory, &configuration);
		answer(&host->inventory, &request, &policy, &again, NULL, NULL);
		if (strcmp(graft_buffer_text(&text), graft_buffer_text(&again)) != 0)
			die("%s/%s: the same values give two plans", host->name, name);
	}
	compare(golden, host->name, name, "plan", &text);
	if (configuration.length > 0)
		compare(golden, host->name, name, "config", &configuration);
	graft_buffer_done(&configuration);
	graft_buffer_done(&text);
	graft_buffer_done(&again);
	(void)graft_arena_free(arena);
}

static void run_requests(struct golden *golden, struct host *host, const char *requests)
{
	char *names[NAMES_MAX];
	size_t n = list(requests, names);

	for (size_t i = 0; i < n; i++) {
		if (!has_suffix(names[i], ".json") || has_suffix(names[i], ".policy.json"))
			continue;
		names[i][strlen(names[i]) - strlen(".json")] = '\0';
		run_case(golden, host, requests, names[i]);
	}
	free_names(names, n);
}

static void run_host(struct golden *golden, const char *name)
{
	struct host host = { .name = name, .arena = graft_arena_new((size_t)16 << 20) };
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/plans/%s", golden->directory, name);
	if (golden->update && mkdir(path, 0755) < 0 && errno != EEXIST)
		die("%s: %s", path, strerror(errno));
	(void)snprintf(path, sizeof(path), "%s/hosts/%s/detection-error.txt", golden->directory, name);
	if (!read_file(path, &host.detection_error)) {
		(void)snprintf(path, sizeof(path), "%s/hosts/%s/inventory.json", golden->directory, name);
		read_record(golden, path, &graft_inventory_record, host.arena, &host.inventory);
	}
	(void)snprintf(path, sizeof(path), "%s/requests", golden->directory);
	run_requests(golden, &host, path);
	(void)snprintf(path, sizeof(path), "%s/hosts/%s/requests", golden->directory, name);
	run_requests(golden, &host, path);
	graft_buffer_done(&host.detection_error);
	(void)graft_arena_free(host.arena);
}

/* A plan without a case is a leftover. */
static unsigned int count_plans(const char *directory)
{
	char *hosts[NAMES_MAX], *plans[NAMES_MAX], path[1024];
	unsigned int count = 0;
	size_t n_hosts, n;

	(void)snprintf(path, sizeof(path), "%s/plans", directory);
	n_hosts = list(path, hosts);
	for (size_t i = 0; i < n_hosts; i++) {
		(void)snprintf(path, sizeof(path), "%s/plans/%s", directory, hosts[i]);
		n = list(path, plans);
		count += (unsigned int)n;
		free_names(plans, n);
	}
	free_names(hosts, n_hosts);
	return count;
}

int main(int argc, char **argv)
{
	struct golden golden = { 0 };
	char *hosts[NAMES_MAX], path[1024];
	unsigned int n_plans;
	size_t n;

	if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "--update") != 0))
		die("usage: golden DIRECTORY [--update]");
	golden.directory = argv[1];
	golden.update = argc == 3;
	(void)snprintf(path, sizeof(path), "%s/hosts", golden.directory);
	n = list(path, hosts);
	for (size_t i = 0; i < n; i++)
		run_host(&golden, hosts[i]);
	free_names(hosts, n);

	n_plans = count_plans(golden.directory);
	printf("%sok %u every kept plan has its case\n", n_plans == golden.n_cases ? "" : "not ", golden.n_cases + 1);
	if (n_plans != golden.n_cases)
		printf("# %u plans, %u cases; run test/golden/update\n", n_plans, golden.n_cases);
	printf("1..%u\n", golden.n_cases + 1);
	return golden.n_failed > 0 || n_plans != golden.n_cases || golden.n_cases == 0;
}
