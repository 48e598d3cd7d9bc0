/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-ctk-installer: the entry point. */
#include "cli/installer/installer.h"

int main(int argc, char **argv)
{
	return installer_main(argc, argv);
}
