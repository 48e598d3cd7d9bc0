/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-container-runtime-hook: the entry point. */
#include "cli/hook/hook.h"

int main(int argc, char **argv)
{
	static struct hook_environment environment;

	hook_environment_take(&environment);
	return hook_main(&environment, argc, argv);
}
