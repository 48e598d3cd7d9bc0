/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_claim: the step between PARSE and PLAN that turns "any two that are free" into two devices.
 */
#include "start/lease_claim.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "lease/lease_table.h"
#include "lease/lease_take.h"

int graft_start_lease_require(const struct graft_config *config, struct graft_error *err)
{
	if (graft_config_lends(config))
		return 0;
	(void)graft_fail(err, GRAFT_UNSUPPORTED, 0, "leases are off in %s",
			 config->file ? config->file : "the built-in configuration");
	return graft_with_hint(err, "Run 'nvidia-ctk config --in-place --set graft.leases.mode=on'.");
}

/* /proc may hide the caller from an unprivileged process; that is not the error to report. */
static int make_holder(const struct graft_config *config, const struct graft_lease_for *whom, struct graft_arena *arena,
		       struct graft_lease_holder *ret_holder, struct graft_error *err)
{
	pid_t pid;

	if (whom->container)
		return graft_lease_holder_to_be(whom->container, arena, ret_holder, err);
	pid = whom->pid > 0 ? whom->pid : graft_lease_caller(arena, err);
	if (pid > 0)
		return graft_lease_holder_of_container(pid, arena, ret_holder, err);
	return graft_lease_table_is_root() ? -1 : graft_lease_table_fail_permission(config->leases.directory, err);
}

/* SECURITY: fail rather than promise a limit that does not reach the container. */
static int check_limits_reach(const struct graft_lease_for *whom, uint32_t mib, uint32_t percent,
			      struct graft_error *err)
{
	if (whom->container || (mib == 0 && percent == 0))
		return 0;
	(void)graft_fail(err, GRAFT_UNSUPPORTED, 0, "mem= and sm= are variables, which a hook cannot give a container");
	return graft_with_hint(err, "Use nvidia-container-runtime ('docker run --runtime=nvidia'), or leave them out.");
}

/*
 * Without root no lease can be taken for a container; its start finds the lease that root has
 * taken.
 */
static int say_who_can(const struct graft_claim *claim, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_buffer text = { .max = 1024 };
	const char *hint;

	if (!err || err->status != GRAFT_PERMISSION)
		return -1;
	graft_claim_write(claim, &text);
	hint = graft_arena_printf(
	    arena,
	    "Run 'sudo nvidia-ctk lease run --claim \"%s\" --user NAME -- COMMAND', where COMMAND "
	    "starts the container with the NVIDIA_VISIBLE_DEVICES that it finds: 'podman run --env "
	    "NVIDIA_VISIBLE_DEVICES ...'.",
	    graft_buffer_text(&text));
	graft_buffer_done(&text);
	if (hint)
		err->hint = hint;
	return -1;
}

static int take_for(const struct graft_config *config, const struct graft_lease_for *whom, const struct graft_log *log,
		    struct graft_arena *arena, struct graft_strings *devices, struct graft_lease *ret_lease,
		    struct graft_error *err)
{
	struct graft_lease_ask ask = { .uid = getuid(),
				       .owner = whom->owner,
				       .what = whom->what,
				       .only_look = whom->only_look,
				       .state = whom->state };
	bool named = !graft_claim_is_in(devices), none = false;
	struct graft_claim claim;

	if ((named ? graft_claim_of_names(devices, arena, &claim, &none, err)
		   : graft_claim_read(devices, arena, &claim, err)) < 0)
		return -1;
	if (none)
		return 0;
	ask.claim = &claim;
	claim.has_user = whom->has_user;
	claim.user = whom->user;
	if (graft_lease_set_wait(config, whom->wait, &claim, err) < 0)
		return -1;
	if (check_limits_reach(whom, claim.limit_mib, claim.limit_percent, err) < 0)
		return -1;
	if ((!whom->only_look && make_holder(config, whom, arena, &ask.holder, err) < 0) ||
	    graft_lease_take(config, &ask, log, arena, ret_lease, err) < 0)
		return say_who_can(&claim, arena, err);
	if (check_limits_reach(whom, ret_lease->limit_mib, ret_lease->limit_percent, err) < 0)
		return -1;
	/* A container that names devices gets the devices that it named. */
	if (!named &&
	    (graft_lease_check_named(ret_lease, err) < 0 || graft_lease_devices(ret_lease, arena, devices, err) < 0))
		return -1;
	for (size_t i = 0; ret_lease->id && !whom->only_look && i < devices->n; i++)
		graft_info(log, "lease %s (%s): %s", ret_lease->id, ret_lease->claim, devices->items[i]);
	return 0;
}

int graft_start_lease_claim(const struct graft_config *config, const struct graft_lease_for *whom,
			    const struct graft_log *log, struct graft_arena *arena, struct graft_strings *devices,
			    struct graft_lease *ret_lease, struct graft_error *err)
{
	*ret_lease = (struct graft_lease){ .id = NULL };
	if (!graft_config_lends(config) || (!graft_claim_is_in(devices) && !graft_config_enforces(config)))
		return 0;
	return take_for(config, whom, log, arena, devices, ret_lease, err) < 0 ? graft_wrap(err, "lease") : 0;
}
