/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv: mode csv (SPEC runtime-and-hook 9): containers on Tegra boards, whose packages say in lists of files what belongs into a container. Unlike on other
 * hosts requirements are checked here, for nothing comes behind that would.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cli/runtime/gates.h"
#include "cli/runtime/give.h"
#include "cli/runtime/runtime.h"
#include "formats/cuda_compat.h"
#include "host/csv.h"
#include "host/csv_facts.h"
#include "host/discover.h"
#include "host/image.h"
#include "plan/csv.h"
#include "request/requirement_csv.h"

#define SINGLE_FLAG           "disable-multiple-csv-devices"
#define ORIN_COMPAT_DIRECTORY GRAFT_COMPAT_DIRECTORY "_orin"

/* What the mode knows of its host. */
struct board {
	struct graft_csv_inventory csv;
	struct graft_inventory *driver; /* NULL = the driver says nothing of its GPUs */
	struct graft_csv_facts facts;
	bool has_facts;
	struct graft_image image;
};

static struct graft_host_options driver_options(const struct runtime_create *create, const struct board *board)
{
	return (struct graft_host_options){
		.root = board->csv.root, .nvml_uid = (uid_t)-1, .nvml_gid = (gid_t)-1, .log = create->log
	};
}

/* The driver's own list of GPUs, for boards with two. A board of older releases has none, and one GPU. */
static void look_at_driver(const struct runtime_create *create, struct board *board)
{
	const struct graft_host_options options = driver_options(create, board);
	struct graft_error why = { .status = GRAFT_OK };
	char text[sizeof(why.msg) + sizeof(why.ctx)];

	if (graft_host_discover(&options, GRAFT_NEED_GPUS, &board->driver, &why) < 0)
		graft_warn(create->log, "the driver's list of GPUs is left out: %s",
			   graft_error_text(&why, text, sizeof(text)));
}

static int look(const struct runtime_create *create, struct board *board, struct graft_error *err)
{
	const struct graft_csv_options options = {
		.root = create->config->cli.root,
		.directory = create->config->runtime.csv_mount_spec_path,
		.all_files = create->container->jetpack_csv_mounts_all,
		.log = create->log,
	};

	if (graft_csv_discover(&options, create->arena, &board->csv, err) < 0)
		return -1;
	look_at_driver(create, board);
	return 0;
}

/* --- requirements --- */

static int find_out(const struct runtime_create *create, struct board *board, unsigned int missing,
		    struct graft_requirement_facts *facts, struct graft_error *err)
{
	bool arch = (missing & GRAFT_REQUIREMENT_ARCH) != 0;

	if (graft_csv_ask(board->driver, &board->csv, arch, create->log, create->arena, &board->facts, err) < 0)
		return -1;
	board->has_facts = true;
	facts->cuda = board->facts.cuda ? board->facts.cuda : "";
	if (arch)
		facts->arch = board->facts.arch ? board->facts.arch : "";
	return 0;
}

/* SPEC 9.5, Q1: config.toml may switch the check off as well as the image. */
static int require(const struct runtime_create *create, struct board *board, struct graft_error *err)
{
	const char *version = board->driver ? board->driver->driver_version.value : NULL;
	struct graft_requirement_facts facts = { .driver = version ? version : "", .brand = "" };
	struct graft_container container = *create->container;
	int rc = 1;

	if (create->config->disable_require || container.requirements_disabled)
		return 0;
	if (graft_container_legacy_requirement(create->spec, create->arena, &container, err) < 0)
		return -1;
	/* Twice the architecture alone may turn out to be missing. */
	for (int i = 0; i < 3 && rc == 1; i++) {
		unsigned int missing;

		rc = graft_csv_requirements(container.requirements.items, container.requirements.n, &facts,
					    create->arena, &missing, err);
		if (rc == 1 && find_out(create, board, missing, &facts, err) < 0)
			return -1;
	}
	return rc < 0 ? -1 : 0;
}

/* --- options --- */

static bool is_single(const struct runtime_create *create)
{
	const struct graft_strings *flags = &create->config->runtime.jit_feature_flags;

	for (size_t i = 0; i < flags->n; i++) {
		if (strcmp(flags->items[i], SINGLE_FLAG) == 0)
			return true;
	}
	return false;
}

/* --- the image --- */

/* The one libcuda of a directory that says for which CUDA it was made; NULL when there is none, or several. */
static const struct graft_compat_library *find_cuda(const struct graft_compat_library *libraries, size_t n)
{
	const struct graft_compat_library *found = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!libraries[i].note || !libraries[i].note_cuda)
			continue;
		if (found)
			return NULL;
		found = &libraries[i];
	}
	return found;
}

/*
 * SPEC 9.6: only where the board has NVML, whose CUDA version the image's libcuda is compared with; on Orin in a directory of its own. NVML is asked
 * only when an image has something to compare.
 */
static int find_compat(const struct runtime_create *create, struct board *board, const struct graft_root *root,
		       struct graft_csv_policy *policy, struct graft_error *err)
{
	const char *orin = create->config->runtime.csv_compat_container_root;
	const char *const directories[] = { GRAFT_COMPAT_DIRECTORY,
					    orin && orin[0] != '\0' ? orin : ORIN_COMPAT_DIRECTORY };
	const struct graft_compat_library *cuda[2];
	struct graft_compat_library *libraries[2];
	struct graft_cuda_compat note;
	size_t n[2];

	if ((policy->disabled_hooks & GRAFT_HOOK_COMPAT) || !board->driver || !board->driver->nvml_library)
		return 0;
	for (size_t i = 0; i < GRAFT_COUNT(directories); i++) {
		if (graft_image_find_compat(root, directories[i], create->log, create->arena, &libraries[i], &n[i],
					    err) < 0)
			return -1;
		cuda[i] = find_cuda(libraries[i], n[i]);
	}
	if (!cuda[0] && !cuda[1])
		return 0;
	if (!board->has_facts &&
	    graft_csv_ask(board->driver, &board->csv, false, create->log, create->arena, &board->facts, err) < 0)
		return -1;
	if (!board->facts.from_nvml || !board->facts.cuda || !cuda[board->facts.orin])
		return 0;
	note = (struct graft_cuda_compat){ .cuda_version = cuda[board->facts.orin]->note_cuda };
	if (!graft_cuda_compat_suits(&note, NULL, NULL, board->facts.cuda))
		return 0;
	policy->compat = libraries[board->facts.orin];
	policy->n_compat = n[board->facts.orin];
	return 0;
}

static int look_at_image(const struct runtime_create *create, struct board *board, struct graft_csv_policy *policy,
			 struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	int rc = runtime_open_image(create, &root, err);

	policy->disabled_hooks = runtime_disabled_hooks(create);
	if (rc <= 0)
		return rc;
	if (graft_image_inspect_loader(&root, false, create->log, create->arena, &board->image, err) < 0)
		return -1;
	policy->image = &board->image;
	return find_compat(create, board, &root, policy, err);
}

/* --- the plan --- */

/* The display and render nodes of the discrete GPU. */
static int look_at_card(const struct runtime_create *create, struct board *board, const struct graft_gpu *card,
			struct graft_error *err)
{
	const struct graft_host_options options = driver_options(create, board);
	const size_t place = (size_t)(card - board->driver->gpus);

	return graft_host_look_at_gpus(&options, board->driver, &place, 1, err);
}

static int plan(const struct runtime_create *create, struct board *board, struct graft_plan **ret_plan,
		struct graft_error *err)
{
	const struct graft_strings *devices = &create->container->devices;
	struct graft_csv_policy policy = { .disabled_hooks = 0 };
	struct graft_csv_selection selection;
	const char *fallback;

	if (graft_csv_select(board->driver, is_single(create), devices->items, devices->n, &selection, &fallback, err) <
	    0)
		return -1;
	if (fallback)
		graft_warn(create->log, "%s", fallback);
	if (selection.discrete_gpu && look_at_card(create, board, selection.discrete_gpu, err) < 0)
		return -1;
	if (look_at_image(create, board, &policy, err) < 0)
		return -1;
	return graft_csv_plan(&board->csv, &selection, &policy, ret_plan, err);
}

static int run(struct runtime_create *create, struct board *board, struct graft_error *err)
{
	struct graft_plan *made = NULL;
	int rc;

	if (look(create, board, err) < 0 || require(create, board, err) < 0 || plan(create, board, &made, err) < 0)
		return -1;
	/* Everything is decided before the first edit (SPEC 6.1). */
	rc = runtime_give_gates(create, err);
	if (rc == 0)
		rc = runtime_give(create, made, NULL, create->log, err);
	(void)graft_plan_free(made);
	return rc;
}

int runtime_csv(struct runtime_create *create, struct graft_error *err)
{
	struct board board = { .driver = NULL };
	int rc = run(create, &board, err);

	board.driver = graft_inventory_free(board.driver);
	return rc;
}
