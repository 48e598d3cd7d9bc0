/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-ctk: the entry point. */
#include "cli/ctk/ctk.h"

int main(int argc, char **argv)
{
	return ctk_main(argc, argv);
}
