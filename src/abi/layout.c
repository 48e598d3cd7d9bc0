/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout: checks the offset of each struct member of the interface (SPEC libnvidia-container 2.1).
 * Existing programs were compiled with these numbers, so a compiler or a change that yields others
 * breaks the build. nvc.h is for LP64 platforms.
 */
#include "abi/nvc.h"

#define SIZE(type, size)     _Static_assert(sizeof(struct type) == (size), "size of " #type)
#define AT(type, member, at) _Static_assert(offsetof(struct type, member) == (at), "offset of " #member " in " #type)

SIZE(nvc_imex_channel, 4);
AT(nvc_imex_channel, id, 0);

SIZE(nvc_imex_info, 16);
AT(nvc_imex_info, chans, 0);
AT(nvc_imex_info, nchans, 8);

SIZE(nvc_version, 24);
AT(nvc_version, major, 0);
AT(nvc_version, minor, 4);
AT(nvc_version, patch, 8);
AT(nvc_version, string, 16);

SIZE(nvc_config, 40);
AT(nvc_config, root, 0);
AT(nvc_config, ldcache, 8);
AT(nvc_config, uid, 16);
AT(nvc_config, gid, 20);
AT(nvc_config, imex, 24);

SIZE(nvc_device_node, 16);
AT(nvc_device_node, path, 0);
AT(nvc_device_node, id, 8);

SIZE(nvc_driver_info, 112);
AT(nvc_driver_info, nvrm_version, 0);
AT(nvc_driver_info, cuda_version, 8);
AT(nvc_driver_info, bins, 16);
AT(nvc_driver_info, nbins, 24);
AT(nvc_driver_info, libs, 32);
AT(nvc_driver_info, nlibs, 40);
AT(nvc_driver_info, libs32, 48);
AT(nvc_driver_info, nlibs32, 56);
AT(nvc_driver_info, ipcs, 64);
AT(nvc_driver_info, nipcs, 72);
AT(nvc_driver_info, devs, 80);
AT(nvc_driver_info, ndevs, 88);
AT(nvc_driver_info, firmwares, 96);
AT(nvc_driver_info, nfirmwares, 104);

SIZE(nvc_mig_device, 40);
AT(nvc_mig_device, parent, 0);
AT(nvc_mig_device, uuid, 8);
AT(nvc_mig_device, gi, 16);
AT(nvc_mig_device, ci, 20);
AT(nvc_mig_device, gi_caps_path, 24);
AT(nvc_mig_device, ci_caps_path, 32);

SIZE(nvc_mig_device_info, 16);
AT(nvc_mig_device_info, devices, 0);
AT(nvc_mig_device_info, ndevices, 8);

SIZE(nvc_device, 88);
AT(nvc_device, model, 0);
AT(nvc_device, uuid, 8);
AT(nvc_device, busid, 16);
AT(nvc_device, arch, 24);
AT(nvc_device, brand, 32);
AT(nvc_device, node, 40);
AT(nvc_device, mig_capable, 56);
AT(nvc_device, mig_caps_path, 64);
AT(nvc_device, mig_devices, 72);

SIZE(nvc_device_info, 16);
AT(nvc_device_info, gpus, 0);
AT(nvc_device_info, ngpus, 8);

SIZE(nvc_container_config, 56);
AT(nvc_container_config, pid, 0);
AT(nvc_container_config, rootfs, 8);
AT(nvc_container_config, bins_dir, 16);
AT(nvc_container_config, libs_dir, 24);
AT(nvc_container_config, libs32_dir, 32);
AT(nvc_container_config, cudart_dir, 40);
AT(nvc_container_config, ldconfig, 48);
