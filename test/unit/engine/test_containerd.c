/* SPDX-License-Identifier: Apache-2.0 */
/* config.toml of containerd, versions 1 to 3: the top-level file, drop-ins, imports, inheritance, and the way back. */
#include "../unit.h"
#include "engine_case.h"

#define V2       "plugins.\"io.containerd.grpc.v1.cri\""
#define V3       "plugins.\"io.containerd.cri.v1.runtime\""
#define IMPORTS  "imports = [\"/etc/containerd/conf.d/*.toml\"]\n"
#define BINARY   "BinaryName = \"/usr/bin/nvidia-container-runtime\"\n"
#define TYPE     "runtime_type = \"io.containerd.runc.v2\"\n"
#define DEFAULTS "privileged_without_host_devices = false\nruntime_engine = \"\"\nruntime_root = \"\"\n" TYPE
#define RUNC(p) \
	"[" p ".containerd.runtimes.runc]\n" TYPE "[" p ".containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
#define OURS(p)                                           \
	"[" p ".containerd.runtimes.nvidia]\n" TYPE "[" p \
	".containerd.runtimes.nvidia.options]\nSystemdCgroup = true\n" BINARY
#define TEMPLATE "/var/snap/microk8s/current/args/containerd-template.toml"
#define FRESH(p) "[" p ".containerd.runtimes.nvidia]\n" DEFAULTS "[" p ".containerd.runtimes.nvidia.options]\n" BINARY

static const struct engine_case rows[] = {
	{ "nothing there", .expected_config = IMPORTS "version = 2\n", .expected_drop_in = "version = 2\n" FRESH(V2),
	  .note = "Could not infer options from runtimes [runc crun]" },
	{ "an empty file", .config = "", .expected_config = IMPORTS "version = 2\n",
	  .expected_drop_in = "version = 2\n" FRESH(V2) },
	{ "comments alone", .config = "# mine\n", .expected_config = "# mine\nversion = 2\n" IMPORTS,
	  .expected_drop_in = "# Made by nvidia-ctk runtime configure; --undo removes it.\nversion = 2\n\n[" V2
			      ".containerd.runtimes.nvidia]\nruntime_root = \"\"\nruntime_engine = "
			      "\"\"\nprivileged_without_host_devices = false\n" TYPE "\n[" V2
			      ".containerd.runtimes.nvidia.options]\n" BINARY,
	  .exactly = true },
	{ "the default runtime, CDI", .set_as_default = true, .enable_cdi = true,
	  .expected_config = IMPORTS "version = 2\n",
	  .expected_drop_in = "version = 2\n[" V2 "]\nenable_cdi = true\n[" V2
			      ".containerd]\ndefault_runtime_name = \"nvidia\"\n" FRESH(V2) },
	{ "another name and path", .name = "g.p u", .path = "/opt/r", .expected_config = IMPORTS "version = 2\n",
	  .expected_drop_in = "version = 2\n[" V2 ".containerd.runtimes.\"g.p u\"]\n" DEFAULTS "[" V2
			      ".containerd.runtimes.\"g.p u\".options]\nBinaryName = \"/opt/r\"\n" },
	{ "imports of others", .config = "version = 2\nimports = [\"/foo/bar/*.toml\"] # why\n",
	  .expected_config = "version = 2\nimports = [\"/foo/bar/*.toml\", \"/etc/containerd/conf.d/*.toml\"] # why\n",
	  .expected_drop_in = "# Made by nvidia-ctk runtime configure; --undo removes it.\nversion = 2\n\n[" V2
			      ".containerd.runtimes.nvidia]\nruntime_root = \"\"\nruntime_engine = "
			      "\"\"\nprivileged_without_host_devices = false\n" TYPE "\n[" V2
			      ".containerd.runtimes.nvidia.options]\n" BINARY,
	  .exactly = true },
	{ "imported already", .config = "version = 2\nimports = [\"conf.d/9*.toml\"]\n",
	  .expected_config = "version = 2\nimports = [\"conf.d/9*.toml\"]\n",
	  .expected_drop_in = "version = 2\n" FRESH(V2) },
	{ "a copy of the section, and of runc",
	  .config = "version = 2\n[" V2 "]\nsandbox_image = 'p' # pause\n" RUNC(V2) "[plugins.other]\nx = 1\n",
	  .expected_config = IMPORTS "version = 2\n[" V2 "]\nsandbox_image = 'p'\n" RUNC(V2) "[plugins.other]\nx = 1\n",
	  .expected_drop_in = "version = 2\n[" V2 "]\nsandbox_image = 'p'\n" RUNC(V2) OURS(V2) },
	{ "no copy where files are merged by key", .deep = true, .config = "version = 3\n[" V3 "]\nx = 1\n" RUNC(V3),
	  .set_as_default = true, .enable_cdi = true,
	  .expected_config = IMPORTS "version = 3\n[" V3 "]\nx = 1\n" RUNC(V3),
	  .expected_drop_in = "version = 3\n[" V3 "]\nenable_cdi = true\n[" V3
			      ".containerd]\ndefault_runtime_name = \"nvidia\"\n" OURS(V3) },
	{ "version 3 alone", .config = "version = 3\n", .expected_config = "version = 3\n" IMPORTS,
	  .expected_drop_in = "version = 3\n" FRESH(V3) },
	{ "a version to come", .config = "version = 4\n", .expected_config = "version = 4\n" IMPORTS,
	  .expected_drop_in = "version = 4\n" FRESH(V3) },
	{ "an empty type",
	  .config = "version = 2\n[" V2 ".containerd.runtimes.runc]\nruntime_type = ''\n[" V2
		    ".containerd.runtimes.runc.options]\nSystemdCgroup = true\nBinaryName = 'runc'\n",
	  .deep = true,
	  .expected_config = IMPORTS "version = 2\n[" V2 ".containerd.runtimes.runc]\nruntime_type = ''\n[" V2
				     ".containerd.runtimes.runc.options]\nSystemdCgroup = true\nBinaryName = 'runc'\n",
	  .expected_drop_in = "version = 2\n" OURS(V2) },
	{ "the default one's options win", .deep = true,
	  .config = "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 'd'\n" RUNC(
	      V2) "[" V2 ".containerd.runtimes.d]\nruntime_type = 't'\nx = [1]\n",
	  .expected_config = IMPORTS "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 'd'\n" RUNC(
	      V2) "[" V2 ".containerd.runtimes.d]\nruntime_type = 't'\nx = [1]\n",
	  .expected_drop_in = "version = 2\n[" V2 ".containerd.runtimes.nvidia]\nruntime_type = 't'\nx = [1]\n[" V2
			      ".containerd.runtimes.nvidia.options]\n" BINARY },
	{ "crun where there is no runc, and a default of ours", .deep = true,
	  .config = "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 'nvidia-x'\n[" V2
		    ".containerd.runtimes.nvidia-x]\nn = 1\n[" V2 ".containerd.runtimes.crun]\nc = 1\n",
	  .expected_config = IMPORTS "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 'nvidia-x'\n[" V2
				     ".containerd.runtimes.nvidia-x]\nn = 1\n[" V2
				     ".containerd.runtimes.crun]\nc = 1\n",
	  .expected_drop_in = "version = 2\n[" V2 ".containerd.runtimes.nvidia]\nc = 1\n" TYPE "[" V2
			      ".containerd.runtimes.nvidia.options]\n" BINARY },
	{ "the default is taken back, copy",
	  .config = "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 'test'\n" RUNC(V2), .name = "test",
	  .expected_config = IMPORTS "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 'test'\n" RUNC(V2),
	  .expected_drop_in = "version = 2\n" RUNC(
	      V2) "[" V2 ".containerd.runtimes.test]\n" TYPE "[" V2
		  ".containerd.runtimes.test.options]\nSystemdCgroup = true\n" BINARY },
	{ "the default is taken back, merged", .deep = true,
	  .config = "version = 2\n[" V2 ".containerd]\nx = 1\ndefault_runtime_name = 'test'\n" RUNC(V2), .name = "test",
	  .expected_config = IMPORTS "version = 2\n[" V2 ".containerd]\nx = 1\n" RUNC(V2),
	  .expected_drop_in = "version = 2\n[" V2 ".containerd.runtimes.test]\n" TYPE "[" V2
			      ".containerd.runtimes.test.options]\nSystemdCgroup = true\n" BINARY },
	{ "an older drop-in is renewed; a runtime of our kind and what is not ours stay",
	  .config = "version = 2\n" IMPORTS RUNC(V2),
	  .drop_in = "# kept\nversion = 2\n[other]\nx = 1\n[" V2 "]\ngone = 1\n" FRESH(
	      V2) "[" V2 ".containerd.runtimes.nvidia-cdi.options]\nBinaryName = '/x/nvidia-container-runtime.cdi'\n"
		  "[" V2 ".containerd.runtimes.stale.options]\nBinaryName = '/x/stale'\n",
	  .expected_config = "version = 2\n" IMPORTS RUNC(V2),
	  .expected_drop_in = "version = 2\n[other]\nx = 1\n" RUNC(V2) OURS(
	      V2) "[" V2 ".containerd.runtimes.nvidia-cdi.options]\nBinaryName = '/x/nvidia-container-runtime.cdi'\n" },
	{ "the top-level file is of another version now", .deep = true, .config = "version = 3\n" IMPORTS,
	  .drop_in = "version = 2\n" FRESH(V2), .expected_config = "version = 3\n" IMPORTS,
	  .expected_drop_in = "version = 3\n" FRESH(V3) },
	/* what containerd itself says */
	{ "command: nothing there", .source = "version = 2\n" RUNC(V2), .expected_config = "version = 2\n" IMPORTS,
	  .expected_drop_in = "version = 2\n" RUNC(V2) OURS(V2) },
	{ "command: a newer version than the file's", .deep = true, .config = "version = 2\n",
	  .source = "version = 3\n" RUNC(V3), .expected_config = "version = 2\n" IMPORTS,
	  .expected_drop_in = "version = 2\n" OURS(V2), .note = "Using config version 2" },
	{ "command: the copy is of the file's version", .config = "version = 2\n[" V2 "]\nx = 1\n",
	  .source = "version = 3\n[" V3 "]\ny = 1\n" RUNC(V3),
	  .expected_config = "version = 2\n" IMPORTS "[" V2 "]\nx = 1\n",
	  .expected_drop_in = "version = 2\n[" V2 "]\nx = 1\n" OURS(V2) },
	/* the top-level file alone */
	{ "no drop-in: the file itself, to the byte", .in_config = true,
	  .config = "# mine\nversion = 2 # two\n\n# about cri\n[" V2 "]\n  x = 1\n" RUNC(V2) "\n# end\n[z]\n",
	  .expected_config = "# mine\nversion = 2 # two\n\n# about cri\n[" V2 "]\n  x = 1\n" RUNC(
	      V2) "\n# end\n[z]\n\n[" V2 ".containerd.runtimes.nvidia]\n" TYPE "\n[" V2
		  ".containerd.runtimes.nvidia.options]\nSystemdCgroup = true\n" BINARY,
	  .exactly = true },
	{ "no drop-in, no file", .in_config = true, .enable_cdi = true,
	  .expected_config = "version = 2\n[" V2 "]\nenable_cdi = true\n" FRESH(V2) },
	{ "no drop-in, default", .in_config = true, .set_as_default = true,
	  .config = "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 'runc'\n" RUNC(V2),
	  .expected_config = "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 'nvidia'\n" RUNC(V2) OURS(V2) },
	{ "inline tables", .in_config = true,
	  .config = "version = 2\nplugins = { \"io.containerd.grpc.v1.cri\" = { containerd = { runtimes = { runc = { "
		    "runtime_type = 't' } } } } }\n",
	  .expected_config = "version = 2\nplugins = { \"io.containerd.grpc.v1.cri\" = { containerd = { runtimes = { "
			     "runc = { runtime_type = 't' }, "
			     "nvidia = { runtime_type = 't', options = { BinaryName = "
			     "\"/usr/bin/nvidia-container-runtime\" } } } } } }\n",
	  .exactly = true },
	/* version 1 */
	{ "version 1: the file itself", .config = "[plugins.cri.containerd.runtimes.runc]\nruntime_type = 't'\n",
	  .enable_cdi = true, .set_as_default = true,
	  .expected_config =
	      "[plugins.cri]\nenable_cdi = true\n[plugins.cri.containerd]\ndefault_runtime_name = "
	      "'nvidia'\n[plugins.cri.containerd.runtimes.runc]\nruntime_type = 't'\n"
	      "[plugins.cri.containerd.runtimes.nvidia]\nruntime_type = "
	      "'t'\n[plugins.cri.containerd.runtimes.nvidia.options]\n"
	      "BinaryName = '/usr/bin/nvidia-container-runtime'\nRuntime = '/usr/bin/nvidia-container-runtime'\n",
	  .note = "has no drop-in files: editing /etc/containerd/config.toml itself" },
	{ "MicroK8s replaces variables in its template alone", .config_path = TEMPLATE,
	  .config = "version = 2\n[" V2 ".cni]\nbin_dir = \"${SNAP_DATA}/opt/cni/bin\"\n[" V2
		    ".containerd.runtimes.runc]\nruntime_type = \"${RUNTIME_TYPE}\"\n",
	  .expected_config = "version = 2\n[" V2 ".cni]\nbin_dir = \"${SNAP_DATA}/opt/cni/bin\"\n[" V2
			     ".containerd.runtimes.runc]\nruntime_type = \"${RUNTIME_TYPE}\"\n[" V2
			     ".containerd.runtimes.nvidia]\nruntime_type = \"${RUNTIME_TYPE}\"\n[" V2
			     ".containerd.runtimes.nvidia.options]\n" BINARY,
	  .note = "MicroK8s replaces variables in /var/snap/microk8s/current/args/containerd-template.toml only: "
		  "editing it, without a drop-in file" },
	{ "MicroK8s no longer imports what an installer has left, which would hide the template's",
	  .config_path = TEMPLATE,
	  .config = "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n[" V2 "]\nx = 1\n",
	  .drop_in = "version = 2\n[" V2 "]\nx = \"${SNAP_DATA}\"\n[" V2
		     ".containerd.runtimes.nvidia.options]\nBinaryName = '/x/nvidia-container-runtime'\n",
	  .expected_config = "version = 2\n[" V2 "]\nx = 1\n" FRESH(V2),
	  .note = TEMPLATE " no longer imports /etc/containerd/conf.d/99-nvidia.toml, which would hide the runtime" },
	{ "MicroK8s keeps an import of more than that, and says what to do", .config_path = TEMPLATE,
	  .config = "version = 2\n" IMPORTS, .drop_in = "version = 2\n[debug]\nlevel = 'x'\n[" V2 "]\nx = 1\n",
	  .expected_config = "version = 2\n" IMPORTS FRESH(V2),
	  .note = TEMPLATE
	  " imports /etc/containerd/conf.d/99-nvidia.toml, which hides the runtime: remove that file, or "
	  "its section of the CRI plugin, and restart MicroK8s" },
	{ "MicroK8s keeps an import that is another's", .config_path = TEMPLATE,
	  .config = "version = 2\nimports = [\"/etc/containerd/*/99-*.toml\"]\n",
	  .drop_in = "version = 2\n[" V2 "]\nx = 1\n",
	  .expected_config = "version = 2\nimports = [\"/etc/containerd/*/99-*.toml\"]\n" FRESH(V2),
	  .note = TEMPLATE
	  " imports /etc/containerd/conf.d/99-nvidia.toml, which hides the runtime: remove that file, or "
	  "its section of the CRI plugin, and restart MicroK8s" },
	{ "MicroK8s keeps imports by two patterns", .config_path = TEMPLATE,
	  .config = "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\", "
		    "\"/etc/containerd/conf.d/99-nvidia.toml\"]\n",
	  .drop_in = "version = 2\n[" V2 "]\nx = 1\n",
	  .expected_config = "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\", "
			     "\"/etc/containerd/conf.d/99-nvidia.toml\"]\n" FRESH(V2),
	  .note = TEMPLATE
	  " imports /etc/containerd/conf.d/99-nvidia.toml, which hides the runtime: remove that file, or "
	  "its section of the CRI plugin, and restart MicroK8s" },
	{ "MicroK8s no longer imports it twice", .config_path = TEMPLATE,
	  .config = "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\", "
		    "\"/etc/containerd/conf.d/*.toml\"]\n",
	  .drop_in = "version = 2\n[" V2 "]\nx = 1\n", .expected_config = "version = 2\n" FRESH(V2),
	  .note = TEMPLATE " no longer imports /etc/containerd/conf.d/99-nvidia.toml, which would hide the runtime" },
	{ "MicroK8s imports what hides nothing", .config_path = TEMPLATE, .config = "version = 2\n" IMPORTS,
	  .drop_in = "version = 2\n[debug]\nlevel = 'x'\n", .expected_config = "version = 2\n" IMPORTS FRESH(V2),
	  .missing = "99-nvidia.toml" },
	{ "MicroK8s imports a section of another version", .config_path = TEMPLATE, .config = "version = 2\n" IMPORTS,
	  .drop_in = "[plugins.cri]\nx = 1\n", .expected_config = "version = 2\n" IMPORTS FRESH(V2),
	  .note = TEMPLATE
	  " imports /etc/containerd/conf.d/99-nvidia.toml, which hides the runtime: remove that file, or "
	  "its section of the CRI plugin, and restart MicroK8s" },
	{ "MicroK8s keeps an import that other files need", .config_path = TEMPLATE, .config = "version = 2\n" IMPORTS,
	  .drop_in = "version = 2\n[" V2 "]\nx = 1\n", .shared = true,
	  .expected_config = "version = 2\n" IMPORTS FRESH(V2),
	  .note = TEMPLATE
	  " imports /etc/containerd/conf.d/99-nvidia.toml, which hides the runtime: remove that file, or "
	  "its section of the CRI plugin, and restart MicroK8s" },
	{ "MicroK8s imports what does not exist", .config_path = TEMPLATE, .config = "version = 2\n" IMPORTS,
	  .expected_config = "version = 2\n" IMPORTS FRESH(V2) },
	{ "no version, but nothing that has one", .config = "root = '/x'\n",
	  .expected_config = "root = '/x'\nversion = 2\n" IMPORTS, .expected_drop_in = "version = 2\n" FRESH(V2) },
	{ "as a package of Docker's leaves it", .config = "#comment\ndisabled_plugins = [\"cri\"]\n",
	  .expected_config =
	      "disabled_plugins = ['cri']\n[plugins.cri.containerd.runtimes.nvidia]\n" DEFAULTS
	      "[plugins.cri.containerd.runtimes.nvidia.options]\n"
	      "BinaryName = '/usr/bin/nvidia-container-runtime'\nRuntime = '/usr/bin/nvidia-container-runtime'\n",
	  .note = "/etc/containerd/config.toml disables the CRI plugin: remove 'cri' from disabled_plugins" },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		check_case(&graft_engine_containerd, &rows[i]);
}

static void test_refusals(void **state)
{
	static const struct {
		struct engine_case row;
		const char *message;
	} refusals[] = {
		{ { "no TOML", .config = "version = \n" },
		  "unable to load config for runtime containerd: /etc/containerd/config.toml: line 1, column 11" },
		{ { "a wrong drop-in", .drop_in = "x" },
		  "unable to load config for runtime containerd: /etc/containerd/conf.d/99-nvidia.toml: line 1" },
		{ { "what the engine says is wrong", .source = "x" },
		  "unable to load config for runtime containerd: the engine: line 1" },
		{ { "a version of another type", .config = "version = '2'\n" },
		  "unable to load config for runtime containerd: failed to parse config version: unsupported type for "
		  "version field" },
		{ { "a version below 0", .config = "version = -1\n" }, "version is -1; allowed: 1, 2, 3" },
		{ { "imports of another type", .config = "version = 2\nimports = 'x'\n" },
		  "unable to update config: /etc/containerd/config.toml: line 2, column 11: imports is 'x'" },
		{ { "imports of other types", .config = "version = 2\nimports = ['x', 1]\n" },
		  "imports is ['x', 1]; allowed: a list of strings" },
		{ { "a runtime that is none", .config = "version = 2\n[" V2 ".containerd.runtimes]\nrunc = 1\n" },
		  "runc is 1; allowed: a table" },
		{ { "a section that is none", .config = "version = 2\n[plugins]\n\"io.containerd.grpc.v1.cri\" = 1\n" },
		  "allowed: a table" },
		{ { "a default of another type",
		    .config = "version = 2\n[" V2 ".containerd]\ndefault_runtime_name = 1\n" },
		  "default_runtime_name is 1; allowed: a string" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(refusals); i++)
		check_refusal(&graft_engine_containerd, &refusals[i].row, refusals[i].message);
}

/* What others did since stays. */
static void test_undo_of_changed_files(void **state)
{
	static const struct {
		const char *what, *config, *config_backup, *drop_in, *expected_config, *expected_drop_in;
		bool shared, has_drop_in_record;
	} table[] = {
		{ "a comment since", "# new\nversion = 2\n" IMPORTS, "version = 2\n", "version = 2\n" FRESH(V2),
		  "# new\nversion = 2\n", NULL, false, false },
		{ "a key since", "version = 2\nroot = 'x'\n" IMPORTS, "version = 2\n", "version = 2\n" FRESH(V2),
		  "version = 2\nroot = 'x'\n", NULL, false, false },
		{ "no backup", "version = 2\nroot = 'x'\n" IMPORTS, NULL, "version = 2\n" FRESH(V2),
		  "version = 2\nroot = 'x'\n", NULL, false, false },
		{ "imported before: only the drop-in was made", "version = 2\n" IMPORTS, NULL,
		  "version = 2\n" FRESH(V2), "version = 2\n" IMPORTS, NULL, false, true },
		{ "another import since", "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\", 'y']\n", NULL,
		  "version = 2\n" FRESH(V2), "version = 2\nimports = ['y']\n", NULL, false, false },
		{ "another's drop-in needs the import", "version = 2\n" IMPORTS, "version = 2\n",
		  "version = 2\n" FRESH(V2), "version = 2\n" IMPORTS, NULL, true, false },
		{ "another runtime of our kind", "version = 2\n" IMPORTS, NULL,
		  "version = 2\n" FRESH(V2) "[" V2 ".containerd.runtimes.n.options]\nBinaryName = '/nvidia-x'\n",
		  "version = 2\n" IMPORTS,
		  "version = 2\n[" V2 ".containerd.runtimes.n.options]\nBinaryName = '/nvidia-x'\n", false, false },
		{ "another table since", "version = 2\n" IMPORTS, NULL, "version = 2\n[mine]\n" FRESH(V2),
		  "version = 2\n" IMPORTS, "version = 2\n[mine]\n", false, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(table); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		const struct engine_case row = { "", .config = table[i].config, .drop_in = table[i].drop_in };
		struct graft_engine_request request = request_of(&graft_engine_containerd, &row);
		struct graft_engine_changes changes;
		struct graft_error err = { 0 };
		const struct graft_engine_edit *edit;

		print_message("# %s\n", table[i].what);
		request.config.backup = text_of(table[i].config_backup);
		request.import_is_shared = table[i].shared;
		request.drop_in.is_ours = table[i].has_drop_in_record;
		assert_fine(graft_engine_containerd.undo(&request, arena, &changes, &err), &err);
		edit = edit_of(&changes, &request.drop_in);
		assert_non_null(edit);
		if (table[i].expected_drop_in)
			assert_meaning(&request.drop_in, edit->text.bytes, edit->text.length,
				       table[i].expected_drop_in);
		else
			assert_null(edit->text.bytes);
		edit = edit_of(&changes, &request.config);
		assert_string_equal(edit ? edit->text.bytes : table[i].config, table[i].expected_config);
		(void)graft_arena_free(arena);
	}
}

static void test_releases(void **state)
{
	static const struct {
		const char *line;
		bool deep;
	} table[] = {
		{ "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", false },
		{ "containerd github.com/containerd/containerd v1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da",
		  false },
		{ "containerd github.com/containerd/containerd/v2 v2.0.5 fb4c30d4ede3531652d86197bf3fc9515e5276d9",
		  false },
		{ "containerd github.com/containerd/containerd/v2 v2.1.0 061792f0ecf3684fb30a3a0eb006799b8c6638a7",
		  true },
		{ "containerd github.com/containerd/containerd/v2 2.2.1-0ubuntu1 x", true },
		{ "containerd containerd.io 3.0.0 x", true },
		{ "containerd", false },
		{ "", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(table); i++)
		assert_int_equal(graft_engine_containerd_merges_deeply(table[i].line), table[i].deep);
}

static void test_versions(void **state)
{
	static const struct {
		const char *text, *note;
	} table[] = {
		{ NULL, "Using config version 2" },
		{ "", "Using config version 2" },
		{ "version = 3\n", "Using config version 3" },
		{ "[plugins.cri]\n", "Using config version 1" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(table); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		const struct engine_case row = { "", .config = table[i].text };
		struct graft_engine_request request = request_of(&graft_engine_containerd, &row);
		struct graft_engine_changes changes;
		struct graft_error err = { 0 };

		assert_fine(graft_engine_containerd.configure(&request, arena, &changes, &err), &err);
		assert_string_equal(changes.notes[0].text, table[i].note);
		(void)graft_arena_free(arena);
	}
}

/* The remedy for a file that is not TOML would be to remove it. */
static void test_template(void **state)
{
	const struct engine_case row = { "", .config = "{{ template \"base\" . }}\n" };
	struct graft_engine_request request = request_of(&graft_engine_containerd, &row);
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_engine_changes changes;
	struct graft_error err = { .status = GRAFT_OK };

	(void)state;
	assert_int_equal(graft_engine_containerd.configure(&request, arena, &changes, &err), -1);
	assert_string_equal(
	    graft_error_hint(&err),
	    "A template of K3s or RKE2 is not TOML. Restart them: they find the runtime themselves. Or, "
	    "with a release since March 2026, use --config=DIR/config.toml "
	    "--drop-in-config=DIR/config-v3.toml.d/99-nvidia.toml, with the directory of the template.");
	(void)graft_arena_free(arena);
}

static void test_memory(void **state)
{
	const struct engine_case row = { "", .config = "version = 2\nimports = ['x']\n" RUNC(V2),
					 .drop_in = "version = 2\n" FRESH(V2), .set_as_default = true };
	struct graft_engine_request request = request_of(&graft_engine_containerd, &row);

	request.config.backup = request.config.text;
	check_memory(&graft_engine_containerd, &request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_undo_of_changed_files),
		cmocka_unit_test(test_releases),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_template),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
