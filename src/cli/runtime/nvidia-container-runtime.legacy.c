/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-container-runtime.legacy: the entry point; overrides the configured mode. */
#include "cli/runtime/runtime.h"

int main(int argc, char **argv)
{
	return runtime_main("legacy", argc, argv);
}
