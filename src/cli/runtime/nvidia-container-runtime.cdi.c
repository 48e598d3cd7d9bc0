/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-container-runtime.cdi: the entry point; overrides the configured mode. */
#include "cli/runtime/runtime.h"

int main(int argc, char **argv)
{
	return runtime_main("cdi", argc, argv);
}
