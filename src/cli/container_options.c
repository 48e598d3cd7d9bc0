/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_options: parsers that add the value of an option to a request, with the error prefixes
 * of SPEC libnvidia-container 3.5.
 */
#include "cli/container_options.h"

#include "cli/cli.h"

const uint32_t cli_capability_bits[GRAFT_CAP_BITS] = {
#define X(name, word, letter, help) [GRAFT_CAP_BIT_##name] = GRAFT_CAP_##name,
	GRAFT_CAPABILITY_LIST(X)
#undef X
};
const char *const cli_compat_modes[] = { "mount", "ldconfig", "disabled", NULL };
const char *const cli_all_word[] = { "all", NULL };

static struct graft_request *request_of(void *target)
{
	return ((struct cli_container_options *)target)->request;
}

int cli_option_device(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)option;
	((struct cli_container_options *)target)->device_given = true;
	if (graft_request_devices(request_of(target), value, err) < 0)
		return graft_wrap(err, "device error");
	return 0;
}

int cli_option_require(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)option;
	if (graft_request_requirement(request_of(target), value, err) < 0)
		return graft_wrap(err, "input error");
	return 0;
}

int cli_option_mig(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	bool *flag = (bool *)((char *)request_of(target) + option->offset);

	if (graft_request_mig(flag, value, err) < 0)
		return graft_wrap(err, "%s error", option->name);
	return 0;
}

int cli_option_imex(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)option;
	((struct cli_container_options *)target)->imex_given = true;
	if (graft_request_imex(request_of(target), value, err) < 0)
		return graft_wrap(err, "error parsing IMEX info");
	return 0;
}

int cli_option_capability(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)value;
	(void)err;
	request_of(target)->capabilities |= *(const uint32_t *)option->extra;
	return 0;
}

int cli_option_request_flag(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	return graft_option_set_true(request_of(target), option, value, err);
}

int cli_option_compat_mode(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)option;
	if (graft_request_compat_mode(request_of(target), value, err) < 0)
		return graft_wrap(err, "input error");
	return 0;
}

int cli_option_no_compat(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)value;
	return cli_option_compat_mode(target, option, "disabled", err);
}

int cli_option_pid(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)option;
	return cli_parse_pid(value, &((struct cli_container_options *)target)->pid, err);
}
