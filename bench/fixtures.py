# SPDX-License-Identifier: Apache-2.0
"""The subjects of the measurements: programs, simulated hosts, images, configurations of the shim and of containers."""
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BUILD = os.path.join(TOP, "build-release")

CLI = os.environ.get("GRAFT_BENCH_CLI", os.path.join(BUILD, "src/cli/nvidia-container-cli"))
RUNTIME = os.path.join(BUILD, "src/cli/runtime/nvidia-container-runtime")
HOOK = os.path.join(BUILD, "src/cli/hook/nvidia-container-runtime-hook")
CDI_HOOK = os.path.join(BUILD, "src/cli/cdi_hook/nvidia-cdi-hook")
CTK = os.path.join(BUILD, "src/cli/ctk/nvidia-ctk")
GFD = os.path.join(BUILD, "src/daemon/gpu-feature-discovery")
PLUGIN = os.path.join(BUILD, "src/daemon/nvidia-device-plugin")
CONFIG_MANAGER = os.path.join(BUILD, "src/daemon/config-manager")
SIM = os.path.join(BUILD, "sim/graft-sim")
SPAWN = os.path.join(BUILD, "bench/spawn")
YARDSTICK = os.path.join(BUILD, "bench/yardstick")

# The low-level runtime when only the shim and the unit are measured.
NO_RUNTIME = "/bin/true"
# The shim's arguments; and a container without a GPU.
SHIM = tempfile.TemporaryDirectory(prefix="graft-bench-")
SHIM_FILES = {
    "config.toml": f'nvidia-container-runtime.runtimes = ["{NO_RUNTIME}"]\n',
    "config.json": json.dumps({
        "ociVersion": "1.0.2",
        "process": {"args": ["sh"], "env": ["PATH=/usr/bin:/bin"] + [f"VARIABLE_{i}={i}" for i in range(20)]},
        "root": {"path": "rootfs"},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                   *[{"destination": f"/mnt/{i}", "source": "/srv", "options": ["rbind", "ro"]} for i in range(10)]],
        "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}], "maskedPaths": [f"/proc/{i}" for i in range(20)]},
    }),
}

SLOW_NVML = ["--fault", "nvml-init-delay=5"]
ONE_GPU = ["NVIDIA_VISIBLE_DEVICES=0"]
COMPUTE = [*ONE_GPU, "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]
# Mode cdi with another specification.
TWO_HOOKS = "cdi, two hooks"
# Starts of a container through the shim. name, what it is, topology, mode, variables of the container, limit in units beyond the
# low-level runtime, options of graft-sim run.
STARTS = [
    ("default", "default mode: 1 GPU of 8, all capabilities", "dgx-h100", "auto", ONE_GPU, 6.0, []),
    ("default-16", "default mode: 1 GPU of 16", "dgx-h100-16", "auto", ONE_GPU, 6.0, []),
    ("default-slow-nvml", "default mode: NVML takes 5 s to initialise", "dgx-h100", "auto", ONE_GPU, 6.0, SLOW_NVML),
    ("legacy", "legacy mode: 1 GPU of 8, compute and utility, by the prestart hook", "dgx-h100", "legacy", COMPUTE, 10.0, []),
    ("legacy-16", "legacy mode: 1 GPU of 16", "dgx-h100-16", "legacy", COMPUTE, 10.0, []),
    ("legacy-slow-nvml", "legacy mode: NVML takes 5 s to initialise", "dgx-h100", "legacy", COMPUTE, 10.0, SLOW_NVML),
    ("cdi", "cdi mode: 1 GPU of 8, by the specification of nvidia-ctk cdi generate", "dgx-h100", "cdi", ONE_GPU, 5.0, []),
    ("cdi-16", "cdi mode: 1 GPU of 16", "dgx-h100-16", "cdi", ONE_GPU, 5.0, []),
    ("cdi-slow-nvml", "cdi mode: NVML takes 5 s to initialise", "dgx-h100", "cdi", ONE_GPU, 5.0, SLOW_NVML),
    ("cdi-two-hooks", "cdi mode: 1 GPU of 8, by a specification of older generators, with hooks only for links and cache", "dgx-h100",
     TWO_HOOKS, ONE_GPU, 5.0, []),
]


def prepare_shim():
    # nvidia-container-cli searches it for programs, so it must be the same everywhere.
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    for name, text in SHIM_FILES.items():
        with open(os.path.join(SHIM.name, name), "w", encoding="utf-8") as stream:
            stream.write(text)
    os.environ["NVIDIA_CTK_CONFIG_FILE_PATH"] = os.path.join(SHIM.name, "config.toml")


def sim(topology, options, command):
    return [SIM, "run", "--topology", topology, *options, "--", *command]


def root_path(kind):
    return subprocess.run([os.path.join(TOP, "test/tools/roots"), kind], check=True, capture_output=True, text=True).stdout.strip()


def spawn_json(topology, options, runs, words, command, root="debian"):
    spawn = [SPAWN, "--runs", str(runs), "--root", root_path(root), *words, "--", *command]
    done = subprocess.run(sim(topology, options, spawn), capture_output=True, text=True, check=False, timeout=600)
    lines = [line for line in done.stdout.split("\n") if line.startswith("{")]
    if done.returncode != 0 or not lines:
        sys.exit(f"bench: {' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(lines[-1])


def bundle_file(name, config):
    path = os.path.join(SHIM.name, name)
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(config, stream)
    return path


def start_config(mode, low_level=NO_RUNTIME):
    """config.toml of a mode, with this low-level runtime."""
    with open(os.path.join(SHIM.name, "config.toml"), "w", encoding="utf-8") as stream:
        stream.write(f'''nvidia-ctk.path = "{CDI_HOOK}"
nvidia-container-runtime.runtimes = ["{low_level}"]
nvidia-container-runtime.mode = "{mode}"
nvidia-container-runtime.modes.cdi.spec-dirs = ["{SHIM.name}/cdi"]
nvidia-container-runtime-hook.path = "{HOOK}"
nvidia-container-runtime-hook.skip-mode-detection = true
''')


def rewritten(topology, options, bundle):
    """What the shim makes of a configuration."""
    to = os.path.join(SHIM.name, "rewritten.json")
    spawn_json(topology, options, 1, ["--bundle", bundle],
               ["/bin/sh", "-c", '"$0" create --bundle /mnt/bundle bench && cp /mnt/bundle/config.json "$1"', RUNTIME, to])
    with open(to, encoding="utf-8") as stream:
        return json.load(stream)


def added_mounts(plain, config):
    known = {mount["destination"] for mount in plain["mounts"]}
    return [mount for mount in config["mounts"] if mount["destination"] not in known]


def generate_specification(topology):
    """A specification of CDI as nvidia-ctk writes it for the host."""
    command = [CTK, "cdi", "generate", f"--nvidia-cdi-hook-path={CDI_HOOK}", f"--output={SHIM.name}/cdi/nvidia.json", "--format=json"]
    subprocess.run(sim(topology, [], command), check=True, capture_output=True)


def write_specification(plain, config):
    """A specification of CDI as older generators write them: every node and file, links and the loader's cache by hooks."""
    mounts = added_mounts(plain, config)
    library = next(mount["destination"] for mount in mounts if "/libcuda.so." in mount["destination"])
    folder = os.path.dirname(library)
    hook = {"hookName": "createContainer", "path": CDI_HOOK, "env": ["NVIDIA_CTK_DEBUG=false"]}
    bundle_file("cdi/nvidia.json", {
        "cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
        "devices": [{"name": "0", "containerEdits": {"deviceNodes": [{"path": node["path"]} for node in config["linux"]["devices"]]}}],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "mounts": [{"hostPath": mount["source"], "containerPath": mount["destination"], "options": mount["options"]} for mount in mounts],
            "hooks": [{**hook, "args": ["nvidia-cdi-hook", "create-symlinks", "--link", f"libcuda.so.1::{folder}/libcuda.so"]},
                      {**hook, "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", folder]}],
        },
    })


def prepare_start(row, low_level=NO_RUNTIME):
    """Sets the shim up for a row of STARTS; returns the configuration of its container, as a value and as a file."""
    _, _, topology, mode, variables, _, options = row
    plain = json.loads(SHIM_FILES["config.json"])
    plain["root"]["path"] = "/mnt/root"
    plain["process"]["env"] += variables
    bundle = bundle_file("bundle.json", plain)
    os.makedirs(os.path.join(SHIM.name, "cdi"), exist_ok=True)
    if mode == "cdi":
        generate_specification(topology)
    elif mode == TWO_HOOKS:
        start_config("auto")
        write_specification(plain, rewritten(topology, options, bundle))
    start_config("cdi" if mode == TWO_HOOKS else mode, low_level)
    return plain, bundle
