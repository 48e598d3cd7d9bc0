/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-container-runtime.cdi: the entry point; the configured mode is overridden. */
#include "cli/runtime/runtime.h"

int main(int argc, char **argv)
{
	return runtime_main("cdi", argc, argv);
}
