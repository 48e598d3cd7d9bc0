/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-container-runtime: the entry point. */
#include <stddef.h>

#include "cli/runtime/runtime.h"

int main(int argc, char **argv)
{
	return runtime_main(NULL, argc, argv);
}
