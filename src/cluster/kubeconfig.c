/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfig: the file with which kubectl and its kin reach a cluster. Reads what the current
 * context names, and runs none of the programs that such a file can name.
 */
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/strings.h"
#include "cluster/cluster_config.h"
#include "formats/tree/tree.h"

#define VALUES_MAX ((size_t)1024 * 1024)
#define QUOTED_MAX 128

struct kubeconfig {
	const char *file;
	struct graft_arena *arena;
	size_t budget; /* limit on values examined: aliases may repeat them */
	struct graft_error *err;
};

static int refuse_at(struct kubeconfig *kube, const struct graft_tree_value *value, enum graft_status status,
		     const char *what)
{
	(void)graft_tree_fail_at(kube->file, "", graft_tree_line(value), graft_tree_column(value), kube->err, "%s",
				 what);
	kube->err->status = status;
	return -1;
}

/*
 * Finds a member of a map; *ret_value is a view in `view`. Returns 1, 0 if there is none or it is
 * null, or -1.
 */
static int find_member(struct kubeconfig *kube, const struct graft_tree_value *map, const char *name,
		       struct graft_tree_value *view)
{
	int found = 0;
	struct graft_tree_value at;

	if (map->kind != GRAFT_TREE_MAP)
		return refuse_at(kube, map, GRAFT_FORMAT, "must be an object");
	GRAFT_TREE_EACH(member, map, at) {
		if (kube->budget-- == 0)
			return refuse_at(kube, map, GRAFT_TOO_BIG, "too many values");
		if (member->key && strcmp(member->key, name) == 0) {
			*view = *member;
			found = member->kind != GRAFT_TREE_NULL;
		}
	}
	return found;
}

/* Returns 1 and the text of a member, 0 if it is missing or empty, or -1. */
static int find_text(struct kubeconfig *kube, const struct graft_tree_value *map, const char *name,
		     const char **ret_text)
{
	struct graft_tree_value value;
	int rc = find_member(kube, map, name, &value);
	char what[QUOTED_MAX];

	if (rc <= 0)
		return rc;
	if (value.kind != GRAFT_TREE_STRING || !value.text) {
		(void)snprintf(what, sizeof(what), "%s must be a string", name);
		return refuse_at(kube, &value, GRAFT_FORMAT, what);
	}
	if (value.text[0] == '\0')
		return 0;
	*ret_text = value.text;
	return 1;
}

/* The object `kind` of the entry `name` in the list `list`: {name: NAME, KIND: {...}}. */
static int find_entry(struct kubeconfig *kube, const struct graft_tree_value *root, const char *list, const char *kind,
		      const char *name, struct graft_tree_value *ret_object)
{
	struct graft_tree_value entries, view;
	char what[QUOTED_MAX];
	const char *text;
	int rc = find_member(kube, root, list, &entries);

	if (rc < 0)
		return -1;
	if (rc > 0 && entries.kind != GRAFT_TREE_LIST)
		return refuse_at(kube, &entries, GRAFT_FORMAT, "must be a list");
	for (const struct graft_tree_value *entry = rc > 0 ? graft_tree_first(&entries, &view) : NULL; entry;
	     entry = graft_tree_next(entry, &view)) {
		text = "";
		if (find_text(kube, entry, "name", &text) < 0)
			return -1;
		if (strcmp(text, name) != 0)
			continue;
		(void)snprintf(what, sizeof(what), "the entry has no %s", kind);
		rc = find_member(kube, entry, kind, ret_object);
		return rc == 0 ? refuse_at(kube, entry, GRAFT_FORMAT, what) : rc < 0 ? -1 : 0;
	}
	return graft_fail(kube->err, GRAFT_INVALID, 0, "%s: there is no %s '%s'", kube->file, kind, name);
}

/* --- files and their content --- */

static int base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/*
 * Decodes base64, which may contain line ends and blanks. Returns the bytes, or NULL if it is
 * malformed.
 */
static char *decode_base64(const char *text, struct graft_arena *arena, size_t *ret_length)
{
	char *bytes = graft_arena_alloc(arena, strlen(text) / 4 * 3 + 4);
	size_t n = 0, n_digits = 0, n_padding = 0;
	unsigned int held = 0;

	for (; bytes && *text != '\0'; text++) {
		int digit = base64_digit(*text);

		if (strchr(" \t\r\n", *text))
			continue;
		if (*text == '=' ? ++n_padding > 2 : digit < 0 || n_padding > 0)
			return NULL;
		if (*text == '=')
			continue;
		held = (held << 6 | (unsigned int)digit) & 0xffffff;
		if (++n_digits % 4 != 1)
			bytes[n++] = (char)(held >> (6 - 2 * ((n_digits - 1) % 4)) & 0xff);
	}
	*ret_length = n;
	return n_digits % 4 != 1 && n > 0 && (n_digits + n_padding) % 4 == 0 ? bytes : NULL;
}

/* A path that is not absolute is relative to the kubeconfig's own folder. */
static const char *relative_path(struct kubeconfig *kube, const char *path)
{
	const char *slash = strrchr(kube->file, '/');

	if (path[0] == '/' || !slash)
		return path;
	return graft_arena_join(kube->arena, kube->file, (size_t)(slash - kube->file), path);
}

/* The content, "NAME-data" in base64, beats the path. */
static int find_file(struct kubeconfig *kube, const struct graft_tree_value *map, const char *name,
		     struct graft_cluster_file *ret_file)
{
	char data_name[QUOTED_MAX], what[QUOTED_MAX + 64];
	const char *path = NULL, *data = NULL;
	int has_path = find_text(kube, map, name, &path), has_data;

	(void)snprintf(data_name, sizeof(data_name), "%s-data", name);
	has_data = find_text(kube, map, data_name, &data);
	if (has_path < 0 || has_data < 0)
		return -1;
	if (has_data > 0) {
		ret_file->data = decode_base64(data, kube->arena, &ret_file->length);
		if (!ret_file->data) {
			(void)snprintf(what, sizeof(what), "%s must be base64", data_name);
			return refuse_at(kube, map, GRAFT_FORMAT, what);
		}
	} else if (has_path > 0) {
		ret_file->path = relative_path(kube, path);
	}
	return 0;
}

/* --- the three entries --- */

static int read_cluster(struct kubeconfig *kube, const struct graft_tree_value *cluster,
			struct graft_cluster_config *config)
{
	struct graft_tree_value value;
	const char *server = NULL, *ignored;
	size_t length;
	int rc = find_text(kube, cluster, "server", &server);

	if (rc == 0 || (rc > 0 && !graft_starts_with(server, "https://") && !graft_starts_with(server, "http://")))
		rc = refuse_at(kube, cluster, GRAFT_INVALID, "server must be a URL that begins with https://");
	if (rc < 0 || find_text(kube, cluster, "proxy-url", &config->proxy) < 0 ||
	    find_file(kube, cluster, "certificate-authority", &config->ca) < 0)
		return -1;
	for (const char *at = server; *at != '\0'; at++) {
		if (*at <= ' ' || *at > '~' || strchr("?#@", *at))
			return refuse_at(kube, cluster, GRAFT_INVALID,
					 "server may only have a scheme, host, port and path");
	}
	for (length = strlen(server); server[length - 1] == '/'; length--)
		;
	config->server = graft_arena_strndup(kube->arena, server, length);
	if (find_text(kube, cluster, "tls-server-name", &ignored) != 0)
		return refuse_at(kube, cluster, GRAFT_UNSUPPORTED,
				 "tls-server-name is not supported; server must have a name that its certificate has");
	rc = find_member(kube, cluster, "insecure-skip-tls-verify", &value);
	if (rc > 0 && value.kind != GRAFT_TREE_BOOL)
		return refuse_at(kube, &value, GRAFT_FORMAT, "insecure-skip-tls-verify must be true or false");
	config->insecure = rc > 0 && value.magnitude != 0;
	return rc < 0 ? -1 : 0;
}

/* Ways to log in that are refused, and why. */
static int refuse_logins(struct kubeconfig *kube, const struct graft_tree_value *user)
{
	static const struct {
		const char *key, *why;
	} refused[] = {
		{ "exec",
		  "exec is not supported: Graft runs no login programs; use a client certificate, token or tokenFile" },
		{ "auth-provider", "auth-provider is not supported; use a client certificate, token or tokenFile" },
		{ "username", "username and password are not supported; use a client certificate, token or tokenFile" },
		{ "as", "impersonation (as) is not supported" },
	};
	struct graft_tree_value value;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		int rc = find_member(kube, user, refused[i].key, &value);

		if (rc != 0)
			return rc < 0 ? -1 : refuse_at(kube, &value, GRAFT_UNSUPPORTED, refused[i].why);
	}
	return 0;
}

static int read_user(struct kubeconfig *kube, const struct graft_tree_value *user, struct graft_cluster_config *config)
{
	const char *token = NULL, *token_file = NULL;

	if (refuse_logins(kube, user) < 0 || find_file(kube, user, "client-certificate", &config->certificate) < 0 ||
	    find_file(kube, user, "client-key", &config->key) < 0 || find_text(kube, user, "token", &token) < 0 ||
	    find_text(kube, user, "tokenFile", &token_file) < 0)
		return -1;
	if (token) {
		config->token = graft_cluster_clean_token(token, strlen(token), kube->arena);
		if (!config->token && !graft_arena_failed(kube->arena))
			return refuse_at(kube, user, GRAFT_INVALID, "token is not valid");
	}
	if (token_file)
		config->token_file = relative_path(kube, token_file);
	if ((config->certificate.path || config->certificate.data) != (config->key.path || config->key.data))
		return refuse_at(kube, user, GRAFT_INVALID,
				 "a client certificate needs its key, and a key its certificate");
	return 0;
}

/* SECURITY: never send credentials unencrypted. */
static int check_scheme(struct kubeconfig *kube, const struct graft_cluster_config *config)
{
	if (graft_starts_with(config->server, "https://") ||
	    (!config->token && !config->token_file && !config->key.path && !config->key.data))
		return 0;
	return graft_fail(kube->err, GRAFT_INVALID, 0, "%s: the user's token or key is not sent to %s: use https",
			  kube->file, config->server);
}

static int read_context(struct kubeconfig *kube, const struct graft_tree_value *root,
			struct graft_cluster_config *config)
{
	const char *name = NULL, *cluster_name = NULL, *user_name = NULL;
	struct graft_tree_value context, cluster, user;
	int rc = find_text(kube, root, "current-context", &name);

	if (rc == 0)
		return graft_fail(kube->err, GRAFT_INVALID, 0,
				  "%s: current-context is not set: it names the cluster and the user", kube->file);
	if (rc < 0 || find_entry(kube, root, "contexts", "context", name, &context) < 0 ||
	    find_text(kube, &context, "cluster", &cluster_name) < 0 ||
	    find_text(kube, &context, "user", &user_name) < 0)
		return -1;
	if (!cluster_name)
		return refuse_at(kube, &context, GRAFT_INVALID, "the context names no cluster");
	if (find_entry(kube, root, "clusters", "cluster", cluster_name, &cluster) < 0 ||
	    read_cluster(kube, &cluster, config) < 0)
		return -1;
	if (user_name &&
	    (find_entry(kube, root, "users", "user", user_name, &user) < 0 || read_user(kube, &user, config) < 0))
		return -1;
	return check_scheme(kube, config);
}

int graft_kubeconfig_parse(const char *file, const char *text, size_t length, struct graft_arena *arena,
			   struct graft_cluster_config *ret_config, struct graft_error *err)
{
	struct graft_error local = { .status = GRAFT_OK }, *why = err ? err : &local;
	struct graft_tree_builder builder = { .file = file, .texts = arena, .err = why, .max = VALUES_MAX };
	struct kubeconfig kube = { .file = file, .arena = arena, .budget = VALUES_MAX, .err = why };
	const struct graft_tree_value *root;
	int rc;

	*ret_config = (struct graft_cluster_config){ .server = NULL };
	rc = graft_tree_parse(&builder, text, length, &root);
	if (rc == 0)
		rc = read_context(&kube, root, ret_config);
	graft_tree_builder_done(&builder);
	return rc == 0 && graft_arena_failed(arena) ? graft_fail_memory(err) : rc;
}
