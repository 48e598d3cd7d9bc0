#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
A program that knows libnvidia-container.so.1 by its published layouts and names alone, and no header of ours.

  nvc_published.py LIBRARY ROOTFS GPU...

Checks sizes and places, gives the container at ROOTFS (as this process sees it) the driver and the GPUs, and prints what it was told of the driver and of
each GPU as `nvidia-container-cli info --csv` does, with an empty line between the two.
"""
import ctypes
import sys
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

# name: (size, [(member, type, place)]); SPEC libnvidia-container 2.1. A type in quotes is a pointer to that struct, one in brackets the struct itself.
LAYOUTS = {
    "imex_channel": (4, [("id", c_int, 0)]),
    "imex_info": (16, [("chans", "imex_channel", 0), ("nchans", c_size_t, 8)]),
    "version": (24, [("major", c_uint, 0), ("minor", c_uint, 4), ("patch", c_uint, 8), ("string", c_char_p, 16)]),
    "config": (
        40,
        [
            ("root", c_char_p, 0),
            ("ldcache", c_char_p, 8),
            ("uid", c_uint, 16),
            ("gid", c_uint, 20),
            ("imex", ["imex_info"], 24),
        ],
    ),
    "device_node": (16, [("path", c_char_p, 0), ("id", c_uint64, 8)]),
    "driver_info": (
        112,
        [
            ("nvrm_version", c_char_p, 0),
            ("cuda_version", c_char_p, 8),
            ("bins", POINTER(c_char_p), 16),
            ("nbins", c_size_t, 24),
            ("libs", POINTER(c_char_p), 32),
            ("nlibs", c_size_t, 40),
            ("libs32", POINTER(c_char_p), 48),
            ("nlibs32", c_size_t, 56),
            ("ipcs", POINTER(c_char_p), 64),
            ("nipcs", c_size_t, 72),
            ("devs", "device_node", 80),
            ("ndevs", c_size_t, 88),
            ("firmwares", POINTER(c_char_p), 96),
            ("nfirmwares", c_size_t, 104),
        ],
    ),
    "mig_device": (
        40,
        [
            ("parent", c_void_p, 0),
            ("uuid", c_char_p, 8),
            ("gi", c_uint, 16),
            ("ci", c_uint, 20),
            ("gi_caps_path", c_char_p, 24),
            ("ci_caps_path", c_char_p, 32),
        ],
    ),
    "mig_device_info": (16, [("devices", "mig_device", 0), ("ndevices", c_size_t, 8)]),
    "device": (
        88,
        [
            ("model", c_char_p, 0),
            ("uuid", c_char_p, 8),
            ("busid", c_char_p, 16),
            ("arch", c_char_p, 24),
            ("brand", c_char_p, 32),
            ("node", ["device_node"], 40),
            ("mig_capable", c_bool, 56),
            ("mig_caps_path", c_char_p, 64),
            ("mig_devices", ["mig_device_info"], 72),
        ],
    ),
    "device_info": (16, [("gpus", "device", 0), ("ngpus", c_size_t, 8)]),
    "container_config": (
        56,
        [
            ("pid", c_int, 0),
            ("rootfs", c_char_p, 8),
            ("bins_dir", c_char_p, 16),
            ("libs_dir", c_char_p, 24),
            ("libs32_dir", c_char_p, 32),
            ("cudart_dir", c_char_p, 40),
            ("ldconfig", c_char_p, 48),
        ],
    ),
}

STRUCTS = {}
for name, (size, members) in LAYOUTS.items():
    fields = []
    for member, kind, _ in members:
        if isinstance(kind, str):
            kind = POINTER(STRUCTS[kind])
        elif isinstance(kind, list):
            kind = STRUCTS[kind[0]]
        fields.append((member, kind))
    STRUCTS[name] = type(name, (Structure,), {"_fields_": fields})
    assert ctypes.sizeof(STRUCTS[name]) == size, name
    for member, _, place in members:
        assert getattr(STRUCTS[name], member).offset == place, f"{name}.{member}"


def main():
    library = ctypes.CDLL(sys.argv[1])

    def function(name, result, *arguments):
        found = library["nvc_" + name]
        found.restype, found.argtypes = result, arguments
        return found

    def pointer(name):
        return POINTER(STRUCTS[name])

    def call(name, result, *arguments):
        """A call that must succeed: 0, or a pointer."""
        answer = function(name, result, *(type(argument) for argument in arguments))(*arguments)
        if (result is c_int and answer != 0) or (result is not c_int and not answer):
            sys.exit(f"nvc_{name}: {function('error', c_char_p, c_void_p)(context)}")
        return answer

    version = function("version", pointer("version"))()[0]
    assert version.string.decode().startswith(f"{version.major}.{version.minor}.{version.patch}")
    context = c_void_p(function("context_new", c_void_p)())
    config = function("config_new", pointer("config"))()
    assert config[0].uid == config[0].gid == 0xFFFFFFFF and not config[0].root and config[0].imex.nchans == 0
    call("init", c_int, context, config, c_char_p(None))
    rootfs = c_char_p(sys.argv[2].encode())  # not copied: it has to live as long as its struct
    where = call("container_config_new", pointer("container_config"), c_int(1), rootfs)
    container = c_void_p(
        call("container_new", c_void_p, context, where, c_char_p(b"standalone no-cgroups compute utility"))
    )
    driver = call("driver_info_new", pointer("driver_info"), context, c_char_p(None))
    devices = call("device_info_new", pointer("device_info"), context, c_char_p(None))
    call("driver_mount", c_int, context, container, driver)
    for word in sys.argv[3:]:
        gpu = ctypes.pointer(devices[0].gpus[int(word)])
        call("device_mount", c_int, context, container, gpu)
    call("ldcache_update", c_int, context, container)

    print("NVRM version,CUDA version")
    print(driver[0].nvrm_version.decode() + "," + driver[0].cuda_version.decode())
    print("\nDevice Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture")
    for i in range(devices[0].ngpus):
        gpu = devices[0].gpus[i]
        minor = gpu.node.id & 0xFF
        assert gpu.node.path.decode() == f"/dev/nvidia{minor}" and gpu.node.id >> 8 == 195
        print(i, minor, *(text.decode() for text in (gpu.model, gpu.brand, gpu.uuid, gpu.busid, gpu.arch)), sep=",")
    for i in range(driver[0].nlibs):
        assert driver[0].libs[i].startswith(b"/")
    for i in range(driver[0].ndevs):
        assert driver[0].devs[i].path.startswith(b"/dev/")

    call("shutdown", c_int, context)
    for name, subject in (("driver_info", driver), ("device_info", devices), ("container_config", where)):
        function(name + "_free", None, type(subject))(subject)
    function("container_free", None, c_void_p)(container)
    function("config_free", None, type(config))(config)
    function("context_free", None, c_void_p)(context)


if __name__ == "__main__":
    main()
