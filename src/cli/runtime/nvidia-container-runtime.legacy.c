/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-container-runtime.legacy: the entry point; the configured mode is overridden. */
#include "cli/runtime/runtime.h"

int main(int argc, char **argv)
{
	return runtime_main("legacy", argc, argv);
}
