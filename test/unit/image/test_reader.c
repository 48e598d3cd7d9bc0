/* SPDX-License-Identifier: Apache-2.0 */
/* reader: its answers, what a child that an image has taken over can do, and what it costs. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../image_root.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys.h"
#include "image/inspect.h"
#include "image/loader_names.h"
#include "image/reader.h"

struct answer {
	const char *text;
	uint32_t number;
};
static const struct graft_field fields[] = {
	GRAFT_F_STRING(struct answer, text, false, "a text"),
	GRAFT_F_U32(struct answer, number, false, "a number"),
};
static const struct graft_record record = { "answer", sizeof(struct answer), fields, GRAFT_COUNT(fields) };

typedef int read_function(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
			  struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err);

struct fixture {
	char top[64];
	struct graft_image_root root;
	struct graft_arena *arena;
	char lines[512];
	size_t n_lines;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];

	if (!f)
		return -1;
	(void)snprintf(f->top, sizeof(f->top), "/tmp/graft-reader.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	(void)snprintf(path, sizeof(path), "%s/file", f->top);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "content", 7), 7);
	assert_int_equal(test_image_root_open(&f->root, f->top), 0);
	f->arena = graft_arena_new((size_t)32 << 20);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/file", f->top);
	(void)unlink(path);
	assert_int_equal(rmdir(f->top), 0);
	test_image_root_close(&f->root);
	graft_arena_free(f->arena);
	free(f);
	return 0;
}

static void write_line(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct fixture *f = arg;
	size_t used = strlen(f->lines);

	f->n_lines++;
	(void)snprintf(f->lines + used, sizeof(f->lines) - used, "%d %s %s\n", (int)level, file, message);
}

/* What was asked is always a number. */
static int ask(struct fixture *f, read_function *read, uint32_t arg, struct answer *answer, struct graft_error *err)
{
	const struct graft_log log = { .write = write_line, .arg = f, .max = GRAFT_LOG_INFO };
	const struct graft_reader_question question = {
		.root = &f->root, .record = &record, .read = read, .arg = &arg, .arg_length = sizeof(arg), .log = &log
	};

	*answer = (struct answer){ .text = NULL };
	return graft_reader_ask(&question, f->arena, answer, NULL, NULL, err);
}

/* ---- what comes back ---- */

static int read_file(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		     struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	struct answer *a = answer;
	size_t length;
	int rc = graft_image_root_read(root, "/file", 100, arena, &a->text, &length);

	a->number = *(const uint32_t *)arg;
	graft_info(log, "reading\nit");
	graft_debug(log, "not wanted");
	graft_buffer_add(bytes, "a\0b", 3);
	return rc < 0 ? graft_fail_errno(err, -rc, "cannot read /file") : 0;
}

static void test_answer(void **state)
{
	struct fixture *f = *state;
	const struct graft_log log = { .write = write_line, .arg = f, .max = GRAFT_LOG_INFO };
	uint32_t number = 4711;
	const struct graft_reader_question question = { .root = &f->root,
							.record = &record,
							.read = read_file,
							.arg = &number,
							.arg_length = sizeof(number),
							.log = &log };
	struct answer answer;
	const char *bytes;
	size_t n;

	assert_int_equal(graft_reader_ask(&question, f->arena, &answer, &bytes, &n, NULL), 0);
	assert_string_equal(answer.text, "content");
	assert_int_equal(answer.number, 4711);
	assert_int_equal(n, 3);
	assert_memory_equal(bytes, "a\0b", 3);
	assert_string_equal(f->lines, "2 test_reader.c reading?it\n");
}

static int give_up(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		   struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_FORMAT, ENOEXEC, "bad bytes: /file");
	return graft_wrap(err, "the loader's cache");
}

static void test_error(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct answer answer;

	assert_int_equal(ask(*state, give_up, 0, &answer, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_int_equal(err.sys, ENOEXEC);
	assert_string_equal(err.msg, "bad bytes: /file");
	assert_string_equal(err.ctx, "the loader's cache");
}

/* ---- one after the other ---- */

static int crash(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		 struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	_exit(0);
}

static int who(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
	       struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	((struct answer *)answer)->number = (uint32_t)getpid();
	return 0;
}

static uint32_t ask_who(struct fixture *f)
{
	struct answer answer;

	assert_int_equal(ask(f, who, 0, &answer, NULL), 0);
	return answer.number;
}

/* One child answers all that is asked of one root, until it is dismissed, fails to answer, or there is another root. */
static void test_same_child(void **state)
{
	struct fixture *f = *state;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_image_root other;
	struct answer answer;
	uint32_t first = ask_who(f);

	assert_int_equal(ask(f, give_up, 0, &answer, &err), -1);
	assert_int_equal(ask(f, read_file, 4711, &answer, NULL), 0);
	assert_int_equal(answer.number, 4711);
	if (f->root.mount_id != 0)
		assert_int_equal(ask_who(f), first);
	assert_int_equal(ask(f, crash, 0, &answer, &err), -1);
	assert_int_not_equal(ask_who(f), first);
	first = ask_who(f);
	graft_budget_dismiss_child(f->root.budget);
	assert_int_not_equal(ask_who(f), first);
	first = ask_who(f);
	graft_image_root_take(&other, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), f->root.budget);
	{
		const struct graft_reader_question question = { .root = &other, .record = &record, .read = who };

		assert_int_equal(graft_reader_ask(&question, f->arena, &answer, NULL, NULL, NULL), 0);
		assert_int_not_equal(answer.number, first);
	}
	graft_image_root_close(&other);
}

/*
 * After its last answer a child gives up the image while we go on. It is dismissed, so the next
 * question is for another one, and its time is known although it may not have ended yet.
 */
static void test_last(void **state)
{
	struct fixture *f = *state;
	const struct graft_reader_question question = {
		.root = &f->root, .record = &record, .read = who, .is_last = true
	};
	const uint32_t first = ask_who(f);
	struct answer answer;

	if (f->root.mount_id == 0)
		skip();
	assert_int_equal(graft_reader_ask(&question, f->arena, &answer, NULL, NULL, NULL), 0);
	assert_int_equal(answer.number, first);
	assert_null(graft_budget_child(f->root.budget));
	assert_false(graft_budget_end_child(f->root.budget));
	assert_int_not_equal(ask_who(f), first);
}

/* A late answer is not taken for the answer to the next question. */
static void test_dropped(void **state)
{
	struct fixture *f = *state;
	const uint32_t number = 1;
	const struct graft_reader_question question = {
		.root = &f->root, .record = &record, .read = read_file, .arg = &number, .arg_length = sizeof(number)
	};
	struct answer answer;

	{
		auto_reader struct graft_reader reader = GRAFT_READER_INIT;

		assert_int_equal(graft_reader_start(&question, &reader, NULL), 0);
	}
	assert_int_equal(ask(f, read_file, 2, &answer, NULL), 0);
	assert_int_equal(answer.number, 2);
}

static bool is_odd(const void *answer, size_t n_bytes)
{
	return n_bytes == 3 && ((const struct answer *)answer)->number % 2 == 1;
}

static void test_not_sound(void **state)
{
	struct fixture *f = *state;
	struct graft_error err = { .status = GRAFT_OK };
	uint32_t number = 1;
	const struct graft_reader_question question = { .root = &f->root,
							.record = &record,
							.read = read_file,
							.arg = &number,
							.arg_length = sizeof(number),
							.is_sound = is_odd };
	struct answer answer;

	assert_int_equal(graft_reader_ask(&question, f->arena, &answer, NULL, NULL, &err), 0);
	number = 2;
	assert_int_equal(graft_reader_ask(&question, f->arena, &answer, NULL, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_string_equal(err.msg, "the answer of the process that reads the image is malformed: answer");
}

/* ---- what it cannot do ---- */

/* Bits of what could be done all the same. */
enum {
	WROTE = 1,
	MADE = 2,
	REMOVED = 4,
	SAW_HOST = 8,
	RAN = 16,
	TALKED = 32,
	SIGNALLED = 64,
	EXECUTABLE = 128,
	TRUNCATED = 256
};

static bool has_seccomp(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return false;
#else
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
#endif
}

static int try_all(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		   struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	char program[] = "/bin/true";
	char *const argv[] = { program, NULL };
	struct answer *a = answer;
	int host_fd = (int)*(const uint32_t *)arg;
	char byte;

	if (openat(root->fd, "file", O_WRONLY | O_CLOEXEC) >= 0)
		a->number |= WROTE;
	if (openat(root->fd, "file", O_RDONLY | O_TRUNC | O_CLOEXEC) >= 0 ||
	    graft_openat2(root->fd, "file", O_RDONLY | O_TRUNC | O_CLOEXEC, 0, 0) >= 0)
		a->number |= TRUNCATED;
	if (openat(root->fd, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 || mkdirat(root->fd, "dir", 0700) == 0 ||
	    symlinkat("x", root->fd, "link") == 0)
		a->number |= MADE;
	if (unlinkat(root->fd, "file", 0) == 0)
		a->number |= REMOVED;
	if (read(host_fd, &byte, 1) >= 0 || openat(AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
		a->number |= SAW_HOST;
	if ((has_seccomp() && fork() >= 0) || execve(argv[0], argv, NULL) == 0)
		a->number |= RAN;
	if (socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0)
		a->number |= TALKED;
	if (root->self_fd >= 0 && (openat(root->self_fd, "../status", O_RDONLY | O_CLOEXEC) >= 0 ||
				   openat(root->self_fd, "../../1/status", O_RDONLY | O_CLOEXEC) >= 0))
		a->number |= SAW_HOST;
	if (root->self_fd >= 0 && root->proc_fd >= 0)
		a->number |= SAW_HOST;
	if (kill(getppid(), 0) == 0 || fcntl(root->fd, F_SETOWN, getppid()) == 0 ||
	    fcntl(root->fd, F_SETSIG, SIGKILL) == 0)
		a->number |= SIGNALLED;
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		a->number |= EXECUTABLE;
	return 0;
}

static void test_confined(void **state)
{
	struct fixture *f = *state;
	auto_close int host_fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	const uint32_t by_calls = TALKED | SIGNALLED | EXECUTABLE | TRUNCATED;
	struct answer answer;

	assert_int_equal(ask(f, try_all, (uint32_t)host_fd, &answer, NULL), 0);
	assert_int_equal(answer.number & ~(has_seccomp() ? 0 : by_calls), 0);
}

/* Without rights it has no copy of the mounts, and before Linux 6.2 Landlock does not prevent truncation. */
static void test_confined_user(void **state)
{
	struct fixture *f = *state;
	const uint32_t changes = WROTE | MADE | REMOVED | TRUNCATED;
	const uid_t user = geteuid() == 0 ? 65534 : geteuid();
	char path[128];
	int status;
	pid_t pid;

	if (!has_seccomp())
		return;
	(void)snprintf(path, sizeof(path), "%s/file", f->top);
	assert_int_equal(chown(path, user, (gid_t)-1), 0);
	assert_int_equal(chown(f->top, user, (gid_t)-1), 0);
	pid = fork();
	if (pid == 0) {
		struct answer answer;

		if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresuid(user, user, user) < 0))
			_exit(2);
		_exit(ask(f, try_all, UINT32_MAX, &answer, NULL) < 0 ? 3 : (answer.number & changes) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- what a child can say that an image has taken over ---- */

/* What is sent instead of an answer. The header is that of reader.c. */
struct hostile_answer {
	const char *text;
	uint32_t too_long, n_bytes, no_memory; /* beyond what the header promises: the child ends */
	enum graft_status status;
	const char *message;
};

#define MALFORMED "the answer of the process that reads the image is malformed: "
#define LONG      "the answer of the process that reads the image is too long"
#define GONE      "the process that reads the image ended without an answer"
#define NOTE(level, file) \
	"{\"level\": " level ", \"line\": 4294967295, \"file\": \"" file "\", \"text\": \"a\\nb\\u001b[2J\"}"

static const struct hostile_answer hostile_answers[] = {
	{ "", 0, 0, 0, GRAFT_FORMAT, MALFORMED },
	{ "{", 0, 0, 0, GRAFT_FORMAT, MALFORMED },
	{ "[]", 0, 0, 0, GRAFT_FORMAT, MALFORMED "document: must be an object" },
	{ "{}{}", 0, 0, 0, GRAFT_FORMAT, MALFORMED },
	{ "{\"x\": 1}", 0, 0, 0, GRAFT_FORMAT, MALFORMED "x: unknown member" },
	{ "{\"answer\": []}", 0, 0, 0, GRAFT_FORMAT, MALFORMED "answer: must be an object" },
	{ "{\"answer\": {\"number\": -1}}", 0, 0, 0, GRAFT_FORMAT, MALFORMED "answer.number: must not be negative" },
	{ "{\"answer\": {\"number\": 4294967296}}", 0, 0, 0, GRAFT_FORMAT,
	  MALFORMED "answer.number: number out of range" },
	{ "{\"answer\": {\"number\": 18446744073709551616}}", 0, 0, 0, GRAFT_FORMAT, MALFORMED },
	{ "{\"answer\": {\"number\": 1.5}}", 0, 0, 0, GRAFT_FORMAT, MALFORMED "answer.number: must be a whole number" },
	{ "{\"answer\": {\"text\": 1}}", 0, 0, 0, GRAFT_FORMAT, MALFORMED "answer.text: must be a string" },
	{ "{\"answer\": {\"text\": \"a\\u0000b\"}}", 0, 0, 0, GRAFT_FORMAT,
	  MALFORMED "answer.text: contains a NUL character" },
	{ "{\"answer\": {\"text\": \"\xff\"}}", 0, 0, 0, GRAFT_FORMAT, MALFORMED },
	{ "{\"notes\": [{}]}", 0, 0, 0, GRAFT_FORMAT, MALFORMED "notes[0].file: is missing" },
	{ "{\"notes\": {\"file\": \"x\"}}", 0, 0, 0, GRAFT_FORMAT, MALFORMED "notes: must be a list" },
	{ "{\"status\": 4711}", 0, 0, 0, GRAFT_FORMAT, "the answer of the process that reads the image is malformed" },
	{ "{\"status\": 4294967295}", 0, 0, 0, GRAFT_FORMAT,
	  "the answer of the process that reads the image is malformed" },
	{ "{\"status\": 1, \"sys\": 4096}", 0, 0, 0, GRAFT_FORMAT,
	  "the answer of the process that reads the image is malformed" },
	{ "{\"status\": 1, \"message\": \"%s%n%99999d\"}", 0, 0, 0, (enum graft_status)1, "%s%n%99999d" },
	{ "", (4u << 20) + 1, 0, 0, GRAFT_FORMAT, LONG },
	{ "", UINT32_MAX, 0, 0, GRAFT_FORMAT, LONG },
	{ "{}", 0, (12u << 20) + 1, 0, GRAFT_FORMAT, LONG },
	{ "{}", 0, UINT32_MAX, 0, GRAFT_FORMAT, LONG },
	{ "{}", 1, 0, 0, GRAFT_INTERNAL, GONE },
	{ "{}", 0, 1, 0, GRAFT_INTERNAL, GONE },
	{ NULL, 0, 0, 0, GRAFT_INTERNAL, GONE },
	{ "", 0, 0, 1, GRAFT_NO_MEMORY, "memory allocation failed" },
	/* Lines for the log count only below the level of errors, and from a file of ours. */
	{ "{\"notes\": [" NOTE("0", "reader.c") ", " NOTE("4", "reader.c") ", " NOTE(
	      "4294967295",
	      "reader.c") ", " NOTE("1",
				    "../x") ", " NOTE("1",
						      "A b") ", " NOTE("1",
								       "reader.c") "], \"answer\": {\"number\": 7}}",
	  0, 0, 0, GRAFT_OK, NULL },
};

/* Finds the only socket that the child has, as code of an attacker would. */
static int find_socket(void)
{
	struct stat st;

	for (int fd = 0; fd < 64; fd++)
		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
			return fd;
	return -1;
}

static int say_hostile(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		       struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	const struct hostile_answer *row = &hostile_answers[*(const uint32_t *)arg];
	uint32_t length = row->text ? (uint32_t)strlen(row->text) : 0;
	const uint32_t header[4] = { length + row->too_long, row->n_bytes, row->no_memory, 0 };
	int fd = find_socket();

	if (write(fd, header, row->text ? sizeof(header) : 3) > 0 && length > 0)
		length -= (uint32_t)write(fd, row->text, length);
	_exit((int)length);
}

static void test_hostile_answers(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < GRAFT_COUNT(hostile_answers); i++) {
		const struct hostile_answer *row = &hostile_answers[i];
		struct graft_error err = { .status = GRAFT_OK };
		struct answer answer;
		int rc = ask(f, say_hostile, i, &answer, &err);

		if (rc != (row->status == GRAFT_OK ? 0 : -1) || err.status != row->status ||
		    (row->message && strncmp(err.msg, row->message, strlen(row->message)) != 0))
			fail_msg("row %u: %d, status %d, %s", i, rc, (int)err.status, err.msg);
		if (rc == 0)
			assert_int_equal(answer.number, 7);
		(void)graft_budget_end_child(f->root.budget);
	}
	assert_string_equal(f->lines, "1 reader.c a?b?[2J\n");
	/* Whatever one has said, the next one is asked. */
	assert_int_not_equal(ask_who(f), 0);
}

static void say_text(const char *text)
{
	const uint32_t header[4] = { (uint32_t)strlen(text) };

	if (write(find_socket(), header, sizeof(header)) != sizeof(header) ||
	    write(find_socket(), text, strlen(text)) != (ssize_t)strlen(text))
		_exit(1);
}

/* Answers the question of another function as well, which comes next. */
static int say_names(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		     struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	static const char names[] = "{\"answer\": {\"items\": [\"../a\", \"b\", \"..\", \"\", \"c/d\", \"e\", \"f\"]}}";
	char question[4096], text[4096], *at = stpcpy(text, "{\"answer\": {\"sonames\": [\"liba.so\"");

	say_text("{}");
	if (read(find_socket(), question, sizeof(question)) <= 0)
		_exit(1);
	for (uint32_t i = 1; i < *(const uint32_t *)arg; i++)
		at = stpcpy(at, ", \"liba.so\"");
	(void)stpcpy(at, "]}}");
	say_text(*(const uint32_t *)arg > 0 ? text : names);
	_exit(0);
}

static void test_hostile_names(void **state)
{
	struct fixture *f = *state;
	const char *const asked[] = { "liba.so" };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_loader_names found;
	struct answer answer;
	const char **names;
	size_t n;

	assert_int_equal(ask(f, say_names, 0, &answer, NULL), 0);
	assert_int_equal(graft_image_list_names(&f->root, "/", 2, f->arena, &names, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_string_equal(names[0], "b");
	assert_string_equal(names[1], "e");
	(void)graft_budget_end_child(f->root.budget);
	assert_int_equal(ask(f, say_names, 256, &answer, NULL), 0);
	assert_int_equal(graft_loader_names_ask(&f->root, asked, 1, f->arena, &found, NULL), 0);
	assert_int_equal(found.n_sonames, 256);
	(void)graft_budget_end_child(f->root.budget);
	assert_int_equal(ask(f, say_names, 257, &answer, NULL), 0);
	assert_int_equal(graft_loader_names_ask(&f->root, asked, 1, f->arena, &found, &err), -1);
	assert_string_equal(err.msg, "the answer of the process that reads the image is malformed: loader_names");
}

/* As much as an answer may be, of what costs most to parse and to log. */
static int say_much(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		    struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	static const char *const parts[][3] = {
		{ "{\"answer\": [", "{},", "{}]}" },
		{ "{\"notes\": [", NOTE("1", "reader.c") ",", NOTE("1", "reader.c") "]}" },
		{ "", "[", "" },
		{ "{\"answer\": {", "\"text\": \"\",", "\"number\": 7}}" },
	};
	const char *const *part = parts[*(const uint32_t *)arg];
	const size_t max = (size_t)4 << 20, n = (max - strlen(part[0]) - strlen(part[2])) / strlen(part[1]);
	uint32_t header[4] = { (uint32_t)(strlen(part[0]) + n * strlen(part[1]) + strlen(part[2])) };
	char *text = graft_arena_alloc(arena, max + 1), *at = text;

	at = stpcpy(at, part[0]);
	for (size_t i = 0; i < n; i++)
		at = stpcpy(at, part[1]);
	(void)stpcpy(at, part[2]);
	if (write(find_socket(), header, sizeof(header)) == sizeof(header))
		for (size_t done = 0; done < header[0];)
			done += (size_t)write(find_socket(), text + done, header[0] - done);
	_exit(0);
}

static void test_much(void **state)
{
	struct fixture *f = *state;
	static const char *const messages[] = { MALFORMED "answer: must be an object", "", MALFORMED "invalid JSON",
						"" };

	for (uint32_t i = 0; i < GRAFT_COUNT(messages); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct answer answer;
		int rc = ask(f, say_much, i, &answer, &err);

		assert_int_equal(rc, messages[i][0] == '\0' ? 0 : -1);
		assert_int_equal(err.status, rc == 0 ? GRAFT_OK : GRAFT_FORMAT);
		assert_memory_equal(err.msg, messages[i], strlen(messages[i]));
		(void)graft_budget_end_child(f->root.budget);
	}
	/* Of the second. */
	assert_int_equal(f->n_lines, 256);
}

/* ---- what becomes of one that misbehaves ---- */

static int spin(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	for (volatile unsigned int i = 1; i != 0; i |= 1)
		;
	return 0;
}

static int flood(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		 struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	char text[4096];

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 8192; i++)
		graft_buffer_add(bytes, text, sizeof(text));
	return 0;
}

static void test_ends_without_answer(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct answer answer;

	assert_int_equal(ask(*state, crash, 0, &answer, &err), -1);
	assert_int_equal(err.status, GRAFT_INTERNAL);
	assert_string_equal(err.msg, "the process that reads the image ended without an answer");
	/* More than an answer may be. */
	assert_int_equal(ask(*state, flood, 0, &answer, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_MEMORY);
}

/* It does not ask the budget; the kernel ends it. */
static void test_spins(void **state)
{
	struct fixture *f = *state;
	struct graft_budget *budget = graft_budget_new(200), *whole = f->root.budget;
	struct graft_error err = { .status = GRAFT_OK };
	struct answer answer;

	f->root.budget = budget;
	assert_int_equal(ask(f, spin, 0, &answer, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "reading the container's image takes too long");
	/* The kernel ends it when it has used its half, and what follows has the other one. */
	assert_true(graft_budget_left_ms(budget) > 50);
	assert_int_equal(ask(f, read_file, 1, &answer, &err), 0);
	/* Nothing more is asked when that is spent. */
	for (int i = 0; i < 16 && graft_budget_left_ms(budget) > 0; i++)
		assert_int_equal(ask(f, spin, 0, &answer, &err), -1);
	assert_int_equal(ask(f, read_file, 1, &answer, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	f->root.budget = whole;
	graft_budget_free(budget);
}

/* Does not answer for a second of its processor time. */
static int dawdle(const struct graft_image_root *root, const void *arg, const struct graft_log *log,
		  struct graft_arena *arena, void *answer, struct graft_buffer *bytes, struct graft_error *err)
{
	int64_t until_ms = graft_clock_ms() + 1000;

	while (graft_clock_ms() < until_ms)
		continue;
	return 0;
}

/* All answers of a start together are waited for 10 s, whatever processor time they take. */
static void test_waits(void **state)
{
	struct fixture *f = *state;
	struct graft_error err = { .status = GRAFT_OK };
	struct answer answer;

	assert_int_equal(ask(f, dawdle, 0, &answer, &err), 0);
	(void)graft_budget_wait_ms(f->root.budget, 8500, 0);
	assert_int_equal(ask(f, dawdle, 0, &answer, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "reading the container's image takes too long");
}

/* A question that can do without an answer gets a zeroed one, for the same reason only. */
static void test_zero_if_late(void **state)
{
	struct fixture *f = *state;
	struct graft_budget *budget = graft_budget_new(200), *whole = f->root.budget;
	const struct graft_log log = { .write = write_line, .arg = f, .max = GRAFT_LOG_INFO };
	const uint32_t arg = 0;
	struct graft_reader_question question = { .root = &f->root,
						  .record = &record,
						  .read = spin,
						  .arg = &arg,
						  .arg_length = sizeof(arg),
						  .log = &log,
						  .zero_if_late = true };
	struct graft_error err = { .status = GRAFT_OK };
	struct answer answer = { .text = "old", .number = 1 };
	const char *bytes = "old";
	size_t n_bytes = 1;

	f->root.budget = budget;
	assert_int_equal(graft_reader_ask(&question, f->arena, &answer, &bytes, &n_bytes, &err), 0);
	assert_null(answer.text);
	assert_int_equal(answer.number, 0);
	assert_null(bytes);
	assert_int_equal(n_bytes, 0);
	assert_string_equal(f->lines, "1 reader.c reading the container's image takes too long: skipping all of it\n");
	question.read = crash;
	assert_int_equal(graft_reader_ask(&question, f->arena, &answer, NULL, NULL, &err), -1);
	assert_int_equal(err.status, GRAFT_INTERNAL);
	f->root.budget = whole;
	graft_budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_confined, setup, teardown),
		cmocka_unit_test_setup_teardown(test_confined_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_much, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends_without_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zero_if_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_child, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_sound, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
