/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker: daemon.json (SPEC ctk-and-cdi 1.1 "Docker"). The requested runtime is replaced as a
 * whole; other runtimes, features and settings are kept. An empty file is treated as an empty
 * object.
 */
#include <string.h>

#include "base/cleanup.h"
#include "engine/changes.h"
#include "formats/json/json_document.h"

#define NAME "docker"

/* A new file, in the layout of the reference implementation. */
static const char template[] = "{\n    \"runtimes\": {}\n}\n";

static bool is_blank_text(const struct graft_engine_text *text)
{
	return !text->bytes || text->bytes[strspn(text->bytes, " \t\r\n")] == '\0';
}

static int parse_docker_config(const char *name, const struct graft_engine_text *text,
			       struct graft_json_document **ret_document, struct graft_error *err)
{
	struct graft_engine_text used = *text;

	if (is_blank_text(text))
		used = (struct graft_engine_text){ template, strlen(template) };
	if (graft_json_document_parse(name, used.bytes, used.length, ret_document, err) < 0)
		return graft_wrap(err, "unable to load config for runtime %s", NAME);
	return 0;
}

/* Opens the document. {} gets the layout of a new file, since it has no layout to keep. */
static int open_document(const struct graft_engine_file *file, struct graft_json_document **ret_document,
			 struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	const struct graft_engine_text nothing = { NULL, 0 };
	struct graft_json_node *root;

	if (parse_docker_config(file->path, &file->text, &document, err) < 0)
		return -1;
	root = graft_json_document_root(document);
	if (graft_json_node_kind(root) == GRAFT_JSON_OBJECT && graft_json_node_count(root) == 0)
		return parse_docker_config(file->path, &nothing, ret_document, err);
	*ret_document = TAKE_PTR(document);
	return 0;
}

static int add_docker_edit(const struct graft_json_document *document, const struct graft_engine_request *request,
			   struct graft_arena *arena, struct graft_engine_changes *changes, struct graft_error *err)
{
	struct graft_buffer text = { 0 };
	int rc = graft_json_document_write(document, &text, err);

	if (rc == 0)
		rc = engine_edit(changes, arena, &request->config, NULL, graft_buffer_text(&text), text.length, err);
	graft_buffer_done(&text);
	return rc;
}

/*
 * Whether dockerd reads the same from this entry as from ours: the path, under either name, and no
 * arguments.
 */
static bool is_ours(const struct graft_json_node *runtime, const char *path)
{
	const char *there = graft_json_node_string(graft_json_node_member(runtime, "path"));

	if (!there || strcmp(there, path) != 0)
		return false;
	GRAFT_JSON_EACH(member, runtime) {
		const char *name = graft_json_node_name(member);
		bool arguments = name && (strcmp(name, "args") == 0 || strcmp(name, "runtimeArgs") == 0);

		if (!name || (!arguments && strcmp(name, "path") != 0) ||
		    (arguments && graft_json_node_count(member) > 0))
			return false;
	}
	return true;
}

static int put_docker_runtime(struct graft_json_document *document, const struct graft_engine_request *request,
			      struct graft_error *err)
{
	struct graft_json_node *runtimes = graft_json_make(document, "runtimes", GRAFT_JSON_OBJECT, err);
	struct graft_json_node *runtime, *arguments, *path;

	if (!runtimes)
		return -1;
	if (is_ours(graft_json_node_member(runtimes, request->runtime_name), request->runtime_path))
		return 0;
	runtime = graft_json_new_object(document, err);
	arguments = graft_json_new_array(document, err);
	path = graft_json_new_string(document, request->runtime_path, err);
	if (!runtime || !arguments || !path || graft_json_set(document, runtime, "args", arguments, err) < 0 ||
	    graft_json_set(document, runtime, "path", path, err) < 0)
		return -1;
	return graft_json_set_key(document, runtimes, request->runtime_name, runtime, err);
}

static int put_string(struct graft_json_document *document, const char *name, const char *string,
		      struct graft_error *err)
{
	struct graft_json_node *node = graft_json_new_string(document, string, err);

	return node ? graft_json_set(document, graft_json_document_root(document), name, node, err) : -1;
}

static int put_cdi(struct graft_json_document *document, struct graft_error *err)
{
	struct graft_json_node *features = graft_json_make(document, "features", GRAFT_JSON_OBJECT, err);
	struct graft_json_node *on = features ? graft_json_new_bool(document, true, err) : NULL;

	return on ? graft_json_set(document, features, "cdi", on, err) : -1;
}

static int configure_docker(const struct graft_engine_request *request, struct graft_arena *arena,
			    struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (open_document(&request->config, &document, err) < 0)
		return -1;
	if (put_docker_runtime(document, request, err) < 0 ||
	    (request->set_as_default && put_string(document, "default-runtime", request->runtime_name, err) < 0) ||
	    (request->enable_cdi && put_cdi(document, err) < 0))
		return graft_wrap(err, "unable to update config");
	return add_docker_edit(document, request, arena, ret_changes, err);
}

/* ---- undo ---- */

/*
 * Restores a member of `object`, which is an object in the root or (NULL) the root itself, from the
 * backup. Removes the member if the backup lacks it, and then also an object that becomes empty and
 * that the backup lacks.
 */
static int restore(struct graft_json_document *document, const char *object, const char *name,
		   const struct graft_json_node *backup, struct graft_error *err)
{
	struct graft_json_node *root = graft_json_document_root(document);
	struct graft_json_node *holder = object ? graft_json_node_member(root, object) : root, *member, *copy;
	const struct graft_json_node *old = object ? graft_json_node_member(backup, object) : backup;

	member = graft_json_node_member(holder, name);
	if (!member)
		return 0;
	if (graft_json_node_member(old, name)) {
		copy = graft_json_new_copy(document, graft_json_node_member(old, name), err);
		return copy ? graft_json_replace(document, member, copy, err) : -1;
	}
	graft_json_remove(document, member);
	if (!object || graft_json_node_count(holder) > 0 || graft_json_node_kind(old) == GRAFT_JSON_OBJECT)
		return 0;
	if (old) { /* null */
		copy = graft_json_new_copy(document, old, err);
		return copy ? graft_json_replace(document, holder, copy, err) : -1;
	}
	graft_json_remove(document, holder);
	return 0;
}

/* Without a record of the original file, it is unknown who switched CDI on: it stays. */
static int take_docker_runtime(struct graft_json_document *document, const char *name,
			       const struct graft_json_node *backup, bool has_record, struct graft_error *err)
{
	const struct graft_json_node *root = graft_json_document_root(document);
	const char *default_name = graft_json_node_string(graft_json_node_member(root, "default-runtime"));

	if (restore(document, "runtimes", name, backup, err) < 0)
		return -1;
	if (default_name && strcmp(default_name, name) == 0 &&
	    restore(document, NULL, "default-runtime", backup, err) < 0)
		return -1;
	return has_record ? restore(document, "features", "cdi", backup, err) : 0;
}

static int undo_docker(const struct graft_engine_request *request, struct graft_arena *arena,
		       struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const struct graft_engine_file *file = &request->config;
	auto_json_document struct graft_json_document *document = NULL, *old = NULL;
	struct graft_json_node *root, *backup = NULL;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!file->text.bytes)
		return 0;
	if (parse_docker_config(file->path, &file->text, &document, err) < 0 ||
	    (file->backup.bytes && parse_docker_config(file->path, &file->backup, &old, err) < 0))
		return -1;
	root = graft_json_document_root(document);
	if (old)
		backup = graft_json_document_root(old);
	/* The template of an empty file was not in the file. */
	if (old && is_blank_text(&file->backup))
		graft_json_remove(old, graft_json_node_first(backup));
	if (take_docker_runtime(document, request->runtime_name, backup, backup || file->is_ours, err) < 0)
		return graft_wrap(err, "unable to update config");
	if (backup && graft_json_node_is_same(root, backup))
		return engine_edit(ret_changes, arena, file, NULL, file->backup.bytes, file->backup.length, err);
	if (!backup && graft_json_node_kind(root) == GRAFT_JSON_OBJECT && graft_json_node_count(root) == 0)
		return engine_edit(ret_changes, arena, file, NULL, NULL, 0, err);
	return add_docker_edit(document, request, arena, ret_changes, err);
}

const struct graft_engine graft_engine_docker = {
	.name = NAME,
	.config_path = "/etc/docker/daemon.json",
	.has_cdi_switch = true,
	.configure = configure_docker,
	.undo = undo_docker,
};
