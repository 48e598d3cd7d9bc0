/* SPDX-License-Identifier: Apache-2.0 */
/* lease_request: replaces a claim in the request's devices by those that it gets. */
#include "cli/cli.h"
#include "lease/lease_mps.h"
#include "request/claim.h"
#include "start/config_file.h"

int cli_claim(const struct cli *cli, const struct graft_lease_for *whom, struct graft_request *request,
	      struct graft_lease *ret_lease, struct graft_error *err)
{
	const struct graft_config *config = cli->config;
	struct graft_config own;
	struct graft_strings words = { .n = 0 };
	struct graft_lease_mps mps;

	*ret_lease = (struct graft_lease){ .id = NULL };
	for (size_t i = 0; i < request->n_devices; i++)
		if (!graft_arena_push_string(request->arena, &words.items, &words.n, request->devices[i].text))
			return graft_fail_memory(err);
	if (!graft_claim_is_in(&words) && !(config && graft_config_enforces(config)))
		return 0;
	if (whom->state) {
		config = &own;
		own = (struct graft_config){ .leases = { .mode = "on",
							 .directory = "/run/graft/leases",
							 .wait = "0s",
							 .sharing = whom->state->host.mps ? "mps" : "time-slice" } };
	} else if (!config) {
		config = &own;
		if (graft_config_file_load(GRAFT_CONFIG_OF_HOOK, NULL, request->arena, &own, err) < 0)
			return -1;
	}
	if (!graft_config_lends(config))
		return 0;
	if (graft_start_lease_claim(config, whom, cli->log, request->arena, &words, ret_lease, err) < 0 ||
	    graft_lease_mps_find(config, ret_lease, request->arena, &mps, err) < 0)
		return -1;
	request->mps_pipe = mps.pipe;
	request->mps_shm = cli->own_shm ? NULL : mps.shm;
	request->n_devices = 0;
	for (size_t i = 0; i < words.n; i++)
		if (graft_request_devices(request, words.items[i], err) < 0)
			return -1;
	return 0;
}
