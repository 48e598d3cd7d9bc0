/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode_csv: mode csv (SPEC runtime-and-hook 9): containers on Tegra boards, whose packages install
 * lists of the files that a container needs. Requirements are checked here, since no later step
 * does it.
 */
#include "base/cleanup.h"
#include "base/image_root.h"
#include "base/strings.h"
#include "formats/loader/cuda_compat.h"
#include "host/csv.h"
#include "host/discover.h"
#include "image/inspect.h"
#include "plan/plan_csv.h"
#include "request/requirement.h"
#include "start/gated_devices.h"
#include "start/give.h"
#include "start/host_mounts.h"
#include "start/start.h"

#define SINGLE_FLAG           "disable-multiple-csv-devices"
#define ORIN_COMPAT_DIRECTORY GRAFT_COMPAT_DIRECTORY "_orin"

/* What is known of the host and the image. */
struct board {
	struct graft_csv_inventory csv;
	struct graft_inventory *driver; /* NULL = the driver has no list of GPUs */
	struct graft_csv_facts facts;
	bool has_facts;
	struct graft_image image;
	bool has_image;
};

static struct graft_host_options driver_options(const struct graft_start *create, const struct board *board)
{
	return (struct graft_host_options){
		.root = board->csv.root, .nvml_uid = (uid_t)-1, .nvml_gid = (gid_t)-1, .log = create->log
	};
}

/*
 * Reads the driver's list of GPUs, for boards with two. Boards with older releases have no such
 * list, and one GPU.
 */
static void look_at_board_driver(const struct graft_start *create, struct board *board)
{
	const struct graft_host_options options = driver_options(create, board);
	struct graft_error why = { .status = GRAFT_OK };
	char text[sizeof(why.msg) + sizeof(why.ctx)];

	if (graft_host_discover(&options, GRAFT_NEED_GPUS, &board->driver, &why) < 0)
		graft_warn(create->log, "ignoring the driver's list of GPUs: %s",
			   graft_error_text(&why, text, sizeof(text)));
}

static int look_at_board(const struct graft_start *create, struct board *board, struct graft_error *err)
{
	const struct graft_csv_options options = {
		.root = create->config->cli.root,
		.directory = create->config->runtime.csv_mount_spec_path,
		.all_files = create->container->jetpack_csv_mounts_all,
		.log = create->log,
	};

	if (graft_csv_discover(&options, create->arena, &board->csv, err) < 0)
		return -1;
	look_at_board_driver(create, board);
	return 0;
}

/* --- requirements --- */

static int find_out(const struct graft_start *create, struct board *board, unsigned int missing,
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

/* SPEC runtime-and-hook 9.5, Q1: config.toml can switch the check off, as can the image. */
static int require(const struct graft_start *create, struct board *board, struct graft_error *err)
{
	const char *version = board->driver ? board->driver->driver_version.value : NULL;
	struct graft_requirement_facts facts = { .driver = version ? version : "", .brand = "" };
	struct graft_container container = *create->container;
	unsigned int missing;
	int rc;

	if (create->config->disable_require || container.requirements_disabled)
		return 0;
	if (graft_container_legacy_requirement(create->spec, create->arena, &container, err) < 0)
		return -1;
	/* Ends: what was missing once is known, or empty, afterwards. */
	while ((rc = graft_csv_requirements(container.requirements.items, container.requirements.n, &facts,
					    create->arena, &missing, err)) == 1) {
		if (find_out(create, board, missing, &facts, err) < 0)
			return -1;
	}
	/* A fact that could not be determined has no value to show in a condition. */
	if (rc < 0 && err->status == GRAFT_REQUIREMENT && board->facts.why)
		return graft_fail(err, GRAFT_REQUIREMENT, 0,
				  "requirements not met: the driver does not state its CUDA version: %s",
				  board->facts.why);
	return rc;
}

/* --- the image --- */

/*
 * The only libcuda of a directory with a note of its CUDA version; NULL if there is none or more
 * than one.
 */
static const struct graft_compat_library *find_board_cuda(const struct graft_compat_library *libraries, size_t n)
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
 * SPEC runtime-and-hook 9.6: applies only where the board has NVML, whose CUDA version is compared
 * with that of the image's libcuda; Orin has a directory of its own. NVML is asked only if the
 * image has something to compare.
 */
static int find_csv_compat(const struct graft_start *create, struct board *board, const struct graft_image_root *root,
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
		cuda[i] = find_board_cuda(libraries[i], n[i]);
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

static int look_at_board_image(const struct graft_start *create, struct board *board, struct graft_csv_policy *policy,
			       struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	int rc = graft_start_open_image(create, &root, err);

	policy->disabled_hooks = graft_start_disabled_hooks(create);
	if (rc <= 0)
		return rc;
	if (graft_image_inspect_loader(&root, NULL, create->log, create->arena, &board->image, err) < 0)
		return -1;
	policy->image = &board->image;
	board->has_image = true;
	return find_csv_compat(create, board, &root, policy, err);
}

/* --- the plan --- */

/* Looks up the display and render nodes of the discrete GPU. */
static int look_at_card(const struct graft_start *create, struct board *board, const struct graft_gpu *card,
			struct graft_error *err)
{
	const struct graft_host_options options = driver_options(create, board);
	const size_t place = (size_t)(card - board->driver->gpus);

	return graft_host_look_at_gpus(&options, board->driver, &place, 1, err);
}

static int make_board_plan(const struct graft_start *create, struct board *board, struct graft_plan **ret_plan,
			   struct graft_error *err)
{
	const struct graft_strings *devices = &create->container->devices,
				   *flags = &create->config->runtime.jit_feature_flags;
	bool single = graft_is_in(flags->items, flags->n, SINGLE_FLAG);
	struct graft_csv_policy policy = { .disabled_hooks = 0 };
	struct graft_csv_selection selection;
	const char *fallback;

	if (graft_csv_select(board->driver, single, devices->items, devices->n, &selection, &fallback, err) < 0)
		return -1;
	if (fallback)
		graft_warn(create->log, "%s", fallback);
	if (selection.discrete_gpu && look_at_card(create, board, selection.discrete_gpu, err) < 0)
		return -1;
	if (look_at_board_image(create, board, &policy, err) < 0)
		return -1;
	return graft_csv_plan(&board->csv, &selection, &policy, ret_plan, err);
}

static int run_csv_mode(struct graft_start *create, struct board *board, struct graft_error *err)
{
	struct graft_plan *made = NULL, *gates = NULL;
	int rc = look_at_board(create, board, err);

	if (rc == 0)
		rc = require(create, board, err);
	if (rc == 0)
		rc = make_board_plan(create, board, &made, err);
	if (rc == 0)
		rc = graft_start_plan_gates(create, &gates, err);
	/*
	 * All decisions are made before the first edit (SPEC runtime-and-hook 6.1). SECURITY: one
	 * plan, so that no link is made after a directory of the host is mounted.
	 */
	if (rc == 0 && gates)
		rc = graft_start_add_plan(create, gates, err);
	if (rc == 0)
		rc = graft_start_give(create, made, board->has_image ? &board->image : NULL, create->log, err);
	(void)graft_plan_free(gates);
	(void)graft_plan_free(made);
	return rc;
}

int graft_mode_csv(struct graft_start *create, struct graft_error *err)
{
	struct board board = { .driver = NULL };
	int rc = run_csv_mode(create, &board, err);

	board.driver = graft_inventory_free(board.driver);
	return rc;
}
