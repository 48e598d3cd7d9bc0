#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each flag and variable of nvidia-ctk-installer against a fake host, file by file.

    installer_flags.py INSTALLER FOLDER

A row of CASES has the flag, its other names, its variables, a value, and what it changes: for each file the lines that go
and come, compared with a run that has none of this. The flag, each other name and each variable must change exactly that;
the flag must beat its variable, and the first variable the others. REFUSALS are values that end the program, with its
last line. DAEMON is how a run is told not to stay, DEBUG what logs more. A name of one letter is a short option. Every flag
that --help knows must have a row.
"""
import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

INSTALLER, FOLDER = sys.argv[1], os.path.abspath(sys.argv[2])
HOST, SOURCE, INTO = FOLDER + "/host", FOLDER + "/source", FOLDER + "/nv"
CONFIG = "nv/toolkit/.config/nvidia-container-runtime/config.toml"
PROGRAMS = ["nvidia-ctk", "nvidia-cdi-hook", "nvidia-container-runtime", "nvidia-container-runtime.cdi", "nvidia-container-runtime.legacy",
            "nvidia-container-cli", "nvidia-container-runtime-hook"]
ETC = FOLDER + "/etc"
FIXED = {
    "no-daemon": "true", "pid-file": FOLDER + "/run/toolkit.pid", "toolkit-install-dir": INTO, "toolkit-source-root": SOURCE, "restart-mode": "none",
    "host-root": HOST, "config": ETC + "/config.toml", "drop-in-config": ETC + "/conf.d/99-nvidia.toml", "cdi-output-dir": FOLDER + "/cdi",
    "hooks-dir": FOLDER + "/hooks.d", "config-source": "file",
}
failures = []


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(path, mode)


def make_host(files):
    for name in ("host", "source", "nv", "etc", "cdi", "run", "hooks.d", "driver", "dev-root"):
        shutil.rmtree(FOLDER + "/" + name, ignore_errors=True)
    os.makedirs(HOST)
    for name in PROGRAMS:
        write(SOURCE + "/usr/bin/" + name, name + "\n", 0o755)
    write(SOURCE + "/usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.20.1", "library\n")
    os.symlink("libnvidia-container.so.1.20.1", SOURCE + "/usr/lib/x86_64-linux-gnu/libnvidia-container.so.1")
    for name, text in files.items():
        write(FOLDER + "/" + name, text, 0o755 if "/bin/" in name else 0o644)


def tree():
    """Every file that a run has left, with its lines; links and modes are lines, too."""
    found = {}
    for top in ("nv", "etc", "cdi", "run", "hooks.d", "elsewhere", "toolkit-there"):
        for folder, _, names in os.walk(FOLDER + "/" + top):
            for name in names:
                path = os.path.join(folder, name)
                short = os.path.relpath(path, FOLDER)
                if os.path.islink(path):
                    found[short] = ["-> " + os.readlink(path)]
                    continue
                mode = "mode %04o" % (os.stat(path).st_mode & 0o7777)
                with open(path, encoding="utf-8") as stream:
                    found[short] = [mode] + stream.read().replace(FOLDER, "@").splitlines()
    return found


def as_words(flags):
    words = []
    for name, value in flags.items():
        if len(name) > 1:
            words.append("--%s=%s" % (name, value))
        else:
            words += ["-" + name] if value == "true" else ["-" + name, value]
    return words


def run(flags, variables, files):
    for name in ("elsewhere", "toolkit-there"):
        shutil.rmtree(FOLDER + "/" + name, ignore_errors=True)
    make_host(files)
    return subprocess.run([INSTALLER] + as_words(flags), env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, text=True, check=False)


def difference(before, after):
    """{file: lines with - and +}; a file that is new or gone has all of its lines."""
    changed = {}
    for name in sorted(set(before) | set(after)):
        lines = [line for line in difflib.ndiff(before.get(name, []), after.get(name, [])) if line[0] in "-+"]
        if lines:
            changed[name] = [line[0] + line[2:] for line in lines]
    return changed


def expect(what, done, before, wanted):
    if done.returncode != 0:
        failures.append("%s: %s" % (what, done.stderr.strip().splitlines()[-1]))
        return
    found = difference(before, tree())
    if found != wanted:
        failures.append("%s:\n  found  %r\n  wanted %r" % (what, found, wanted))


def toml(*lines):
    """Lines of config.toml: '-old' '+new'."""
    return {CONFIG: list(lines)}


def key(name, old, new):
    return toml("-%s = %s" % (name, old), "+%s = %s" % (name, new))


ENGINE = "etc/conf.d/99-nvidia.toml"
CRI = '[plugins."io.containerd.grpc.v1.cri"]'
VERSION_1 = """version = 1
[plugins.cri.containerd]
snapshotter = "overlayfs"
[plugins.cri.containerd.default_runtime]
runtime_type = "io.containerd.runc.v1"
"""

PREFIXES = key("annotation-prefixes", '["cdi.k8s.io/"]', '["a/", "b/"]')

# name, aliases, variables, value, changes, further flags of the base, files of the host
CASES = [
    ("nvidia-container-runtime.debug", ["nvidia-container-runtime-debug"], ["NVIDIA_CONTAINER_RUNTIME_DEBUG"], "/log", toml('-#debug = "/var/log/nvidia-container-runtime.log"', '+debug = "/log"')),
    ("nvidia-container-runtime.log-level", ["nvidia-container-runtime-debug-log-level"], ["NVIDIA_CONTAINER_RUNTIME_LOG_LEVEL"], "debug", key("log-level", '"info"', '"debug"')),
    ("nvidia-container-runtime.mode", ["nvidia-container-runtime-mode"], ["NVIDIA_CONTAINER_RUNTIME_MODE"], "cdi", key("mode", '"auto"', '"cdi"')),
    ("nvidia-container-runtime.modes.cdi.default-kind", [], ["NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND"], "management.nvidia.com/gpu",
     key("default-kind", '"nvidia.com/gpu"', '"management.nvidia.com/gpu"')),
    ("nvidia-container-runtime.runtimes", [], ["NVIDIA_CONTAINER_RUNTIME_RUNTIMES"], "/a,/b", key("runtimes", '["runc", "crun"]', '["/a", "/b"]')),
    ("nvidia-container-runtime-hook.skip-mode-detection", [], ["NVIDIA_CONTAINER_RUNTIME_HOOK_SKIP_MODE_DETECTION"], "false", key("skip-mode-detection", "true", "false")),
    ("nvidia-container-cli.debug", ["nvidia-container-cli-debug"], ["NVIDIA_CONTAINER_CLI_DEBUG"], "/log", toml('-#debug = "/var/log/nvidia-container-toolkit.log"', '+debug = "/log"')),
    ("accept-nvidia-visible-devices-envvar-when-unprivileged", [], ["ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"], "false",
     key("accept-nvidia-visible-devices-envvar-when-unprivileged", "true", "false")),
    ("accept-nvidia-visible-devices-as-volume-mounts", [], ["ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"], "true",
     key("accept-nvidia-visible-devices-as-volume-mounts", "false", "true")),
    ("opt-in-features", [], ["NVIDIA_CONTAINER_TOOLKIT_OPT_IN_FEATURES"], "allow-ldconfig-from-container,some-thing",
     toml("+", "+[features]", "+allow-ldconfig-from-container = true", "+some-thing = true")),
    ("driver-root", ["nvidia-driver-root"], ["NVIDIA_DRIVER_ROOT", "DRIVER_ROOT"], "/d",
     toml('-ldconfig = "@/run/nvidia/driver/sbin/ldconfig"', '+ldconfig = "@/d/sbin/ldconfig"', '-root = "/run/nvidia/driver"', '+root = "/d"')),
    ("driver-root-ctr-path", [], ["DRIVER_ROOT_CTR_PATH"], FOLDER + "/driver",
     toml('-ldconfig = "@/run/nvidia/driver/sbin/ldconfig"', '+ldconfig = "@/run/nvidia/driver/sbin/ldconfig.real"'), {}, {"driver/sbin/ldconfig.real": ""}),
    ("dev-root", [], ["NVIDIA_DEV_ROOT", "DEV_ROOT"], "/d", {}),
    ("dev-root-ctr-path", [], ["DEV_ROOT_CTR_PATH"], "/d", {}),
    ("debug", [], ["TOOLKIT_DEBUG"], "true", {}),
    ("cdi-enabled", ["enable-cdi"], ["CDI_ENABLED", "ENABLE_CDI"], "true", {ENGINE: ["+", "+" + CRI, "+enable_cdi = true"]}, {"ignore-errors": "true"}),
    ("enable-cdi-in-runtime", [], ["RUNTIME_ENABLE_CDI"], "true", {ENGINE: ["+", "+" + CRI, "+enable_cdi = true"]}),
    ("enable-cdi-in-runtime", [], ["RUNTIME_ENABLE_CDI"], "false", {ENGINE: ["-", "-" + CRI, "-enable_cdi = true"]}, {"ignore-errors": "true", "cdi-enabled": "true"}),
    ("cdi-output-dir", [], ["CDI_OUTPUT_DIR"], "", {ENGINE: ["-", "-" + CRI, "-enable_cdi = true"]}, {"ignore-errors": "true", "cdi-enabled": "true"}),
    ("no-runtime-config", [], ["NO_RUNTIME_CONFIG"], "true", "no engine"),
    ("enable-nri-plugin", ["p"], ["ENABLE_NRI_PLUGIN"], "true", "no engine", {"nri-namespace": "gpu-operator", "nvidia-container-runtime.runtimes": "runc,crun"}),
    ("runtime-name", ["nvidia-runtime-name", "runtime-class"], ["NVIDIA_RUNTIME_NAME", "CONTAINERD_RUNTIME_CLASS", "DOCKER_RUNTIME_NAME"], "gpu", "renamed"),
    ("set-as-default", [], ["NVIDIA_RUNTIME_SET_AS_DEFAULT", "CONTAINERD_SET_AS_DEFAULT", "DOCKER_SET_AS_DEFAULT"], "false", {ENGINE: ["-", '-[plugins."io.containerd.grpc.v1.cri".containerd]', '-default_runtime_name = "nvidia"']}),
    ("runtime-type", [], ["CONTAINERD_RUNTIME_TYPE"], "io.x.v9", {ENGINE: ['-runtime_type = "io.containerd.runc.v2"', '+runtime_type = "io.x.v9"'] * 3}),
    ("nvidia-container-runtime-modes.cdi.annotation-prefixes", [], [], "a/,b/", {ENGINE: ['+container_annotations = ["a/*", "b/*"]'] * 3}),
    ("nvidia-container-runtime.modes.cdi.annotation-prefixes", [], ["NVIDIA_CONTAINER_RUNTIME_MODES_CDI_ANNOTATION_PREFIXES"], "a/,b/",
     {**PREFIXES, ENGINE: ['+container_annotations = ["a/*", "b/*"]'] * 3}),
    ("nvidia-container-runtime.modes.cdi.annotation-prefixes", [], ["NVIDIA_CONTAINER_RUNTIME_MODES_CDI_ANNOTATION_PREFIXES"], "a/,b/", PREFIXES,
     {"nvidia-container-runtime-modes.cdi.annotation-prefixes": "c/"}),
    ("drop-in-config-host-path", [], ["RUNTIME_DROP_IN_CONFIG_HOST_PATH"], "/etc/containerd/conf.d/99-nvidia.toml",
     {"etc/config.toml": ['-imports = ["@/etc/conf.d/*.toml"]', '+imports = ["/etc/containerd/conf.d/*.toml"]']}),
    ("runtime-config-override", [], ["RUNTIME_CONFIG_OVERRIDE", "CONTAINERD_RUNTIME_CONFIG_OVERRIDE"], '{"a": 1}', {}),
    ("nri-plugin-index", [], ["NRI_PLUGIN_INDEX"], "99", {}),
    ("nri-socket", [], ["NRI_SOCKET"], "/x", {}),
    ("nri-namespace", [], ["NRI_NAMESPACE"], "x", {}),
    ("nri-management-cdi-device-namespaces", [], ["NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES"], "x,y", {}),
    ("socket", [], ["RUNTIME_SOCKET", "CONTAINERD_SOCKET", "DOCKER_SOCKET"], "/x", {}),
    ("executable-path", [], ["RUNTIME_EXECUTABLE_PATH"], "/x", {}),
    ("create-device-nodes", [], ["CREATE_DEVICE_NODES"], "none", {}, {"ignore-errors": "true", "cdi-enabled": "true"}),
    ("cdi-kind", [], ["CDI_KIND"], "a.b/c", {}, {"ignore-errors": "true", "cdi-enabled": "true"}),
    ("use-legacy-config", [], ["CONTAINERD_USE_LEGACY_CONFIG"], "true", {}),
    ("use-legacy-config", [], ["CONTAINERD_USE_LEGACY_CONFIG"], "true", {"etc/config.toml": [
        '-default_runtime_name = "nvidia"', '-runtime_type = "io.containerd.runc.v1"', '+runtime_type = "io.containerd.runc.v2"', '+runtime_root = ""', '+runtime_engine = ""',
        "+privileged_without_host_devices = false", "+", "+[plugins.cri.containerd.default_runtime.options]", '+BinaryName = "@/nv/toolkit/nvidia-container-runtime"',
        '+Runtime = "@/nv/toolkit/nvidia-container-runtime"']}, {}, {"etc/config.toml": VERSION_1}),
    ("config-mode", [], ["CRIO_CONFIG_MODE"], "hook", "hook", {"runtime": "crio"}),
    ("hook-filename", [], ["CRIO_HOOK_FILENAME"], "other.json", "moved hook", {"runtime": "crio", "config-mode": "hook"}),
    ("toolkit-package-type", [], ["TOOLKIT_PACKAGE_TYPE"], "rpm", {}),
    ("config-source", ["config-sources"], ["RUNTIME_CONFIG_SOURCES", "RUNTIME_CONFIG_SOURCE"], " file=%s/dump.toml " % FOLDER,
     {CONFIG: ['-runtimes = ["runc", "crun"]', '+runtimes = ["/opt/runc", "runc", "crun"]'], ENGINE: "any"}, {},
     {"dump.toml": 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\nBinaryName = "/opt/runc"\n'}),
]
# Flags, variables, and whether the program stays.
DAEMON = [
    ({}, {}, True), ({"n": "true"}, {}, False), ({"no-daemon": "true"}, {}, False), ({}, {"NO_DAEMON": "true"}, False), ({}, {"NO_DAEMON": "false"}, True),
    ({"no-daemon": "false"}, {"NO_DAEMON": "true"}, True),
]
# Flags, variables, and whether steps are logged.
DEBUG = [
    ({}, {}, False), ({"debug": "true"}, {}, True), ({}, {"TOOLKIT_DEBUG": "true"}, True), ({"debug": "false"}, {"TOOLKIT_DEBUG": "true"}, False),
]
# Where things are: the flag, and the file that moves.
MOVES = [
    ("pid-file", [], ["TOOLKIT_PID_FILE", "PID_FILE"], FOLDER + "/elsewhere/toolkit.pid", None),
    ("config", [], ["RUNTIME_CONFIG", "CONTAINERD_CONFIG", "DOCKER_CONFIG"], FOLDER + "/elsewhere/c.toml", "elsewhere/c.toml"),
    ("drop-in-config", [], ["RUNTIME_DROP_IN_CONFIG"], FOLDER + "/elsewhere/d/x.toml", "elsewhere/d/x.toml"),
    ("toolkit-install-dir", ["root"], ["TOOLKIT_INSTALL_DIR", "ROOT"], FOLDER + "/toolkit-there/", "toolkit-there/toolkit/nvidia-ctk"),
    ("hooks-dir", [], ["CRIO_HOOKS_DIR"], FOLDER + "/elsewhere/h", "elsewhere/h/oci-nvidia-hook.json"),
    ("toolkit-source-root", [], ["TOOLKIT_SOURCE_ROOT"], FOLDER + "/source2", None),
    ("host-root", [], ["HOST_ROOT_MOUNT"], "/", None),
    ("restart-mode", [], ["RUNTIME_RESTART_MODE"], "none", None),
    ("runtime", ["r"], ["RUNTIME"], "crio", ENGINE),
]
NONE_IN = "unable to install toolkit: failed to install libnvidia-container.so.1: there is none in "
RPM = {"host/usr/bin/rpm": ""}
# flags, the message, variables, files of the host
REFUSALS = [
    ({"runtime": "podman"}, 'invalid runtime "podman"; expected one of [containerd | crio | docker]'),
    ({"runtime": ""}, 'invalid runtime ""; expected one of [containerd | crio | docker]'),
    ({"toolkit-install-dir": ""}, "the install root must be specified"),
    ({"toolkit-package-type": "tar"}, "invalid package type: tar"),
    ({"pid-file": FOLDER + "/run/x.pid"}, "invalid toolkit.pid path %s/run/x.pid" % FOLDER),
    ({"enable-nri-plugin": "true"}, "the NRI namespace must be specified when the NRI plugin is enabled"),
    ({"nri-plugin-index": "100"}, "invalid NRI plugin index: 100; allowed: 0 to 99"),
    ({"cdi-kind": "gpu"}, "invalid CDI vendor name: "),
    ({"cdi-kind": "a.b/"}, "invalid CDI class name: "),
    ({"create-device-nodes": "all", "cdi-enabled": "true"}, "invalid --create-device-nodes value: all"),
    ({"restart-mode": "now"}, "invalid restart mode specified: now"),
    ({"runtime": "crio", "restart-mode": "signal"}, "invalid restart mode specified: signal"),
    ({"config-source": "wish"}, 'unsupported config source \\"wish\\"'),
    ({"runtime": "crio", "config-mode": "x"}, 'invalid cri-o config mode: \\"x\\"'),
    ({"toolkit-source-root": FOLDER + "/none"}, NONE_IN + FOLDER + "/none"),
    ({"toolkit-source-root": "", "toolkit-package-type": "rpm"}, NONE_IN + "/artifacts/rpm"),
    ({"toolkit-source-root": ""}, NONE_IN + "/artifacts/rpm", {"TOOLKIT_PACKAGE_TYPE": "rpm"}),
    ({"toolkit-source-root": ""}, NONE_IN + "/artifacts/deb"),
    ({"toolkit-source-root": ""}, NONE_IN + "/artifacts/rpm", {}, RPM),
    ({"toolkit-source-root": "", "toolkit-package-type": "auto"}, NONE_IN + "/artifacts/rpm", {"TOOLKIT_PACKAGE_TYPE": "deb"}, RPM),
    ({"toolkit-source-root": ""}, NONE_IN + "/artifacts/deb", {"TOOLKIT_PACKAGE_TYPE": "deb"}, RPM),
]


def base_flags(more):
    flags = dict(FIXED, runtime="containerd")
    flags.update(more)
    return flags


def special(word, before, after):
    """Changes that are described by a word, since they are a whole file."""
    found = difference(before, after)
    if word == "no engine":
        return set(found) == {"etc/config.toml", ENGINE, "etc/99-nvidia.toml.nvidia-ctk.bak", "etc/config.toml.nvidia-ctk.bak"} and not any(name.startswith("etc/") for name in after)
    if word == "renamed":
        lines = "\n".join(found.get(ENGINE, []))
        return set(found) == {ENGINE} and 'default_runtime_name = "gpu"' in lines and "containerd.runtimes.gpu]" in lines and "nvidia]" in lines
    if word == "hook":
        return any(name == "hooks.d/oci-nvidia-hook.json" for name in found) and not any(name.startswith("etc/") for name in after)
    if word == "moved hook":
        return set(found) == {"hooks.d/oci-nvidia-hook.json", "hooks.d/other.json"}
    return False


def loosely(wanted, found):
    return set(wanted) == set(found) and all(lines == "any" or lines == found[name] for name, lines in wanted.items())


def check_case(name, aliases, variables, value, wanted, more=None, files=None):
    flags = base_flags(more or {})
    done = run(flags, {}, files or {})
    if done.returncode != 0:
        failures.append("%s: without it: %s" % (name, done.stderr.strip().splitlines()[-1]))
        return
    before = tree()
    without = {k: v for k, v in flags.items() if k != name}
    attempts = [({**flags, name: value}, {}, "--" + name)]
    attempts += [({**without, alias: value}, {}, "--" + alias) for alias in aliases]
    attempts += [(without, {variable: value}, variable) for variable in variables]
    # The flag beats its variable, and an earlier variable a later one.
    wrong = {"true": "false", "false": "true"}.get(value, value + "x")
    attempts += [({**flags, name: value}, {variable: wrong}, "--%s and %s" % (name, variable)) for variable in variables[:1]]
    if len(variables) > 1:
        attempts.append((without, {variables[0]: value, variables[1]: wrong}, "%s and %s" % tuple(variables[:2])))
    for words, environment, what in attempts:
        done = run(words, environment, files or {})
        if isinstance(wanted, str):
            if done.returncode != 0 or not special(wanted, before, tree()):
                failures.append("%s: %s\n  found %r" % (what, done.stderr.strip().splitlines()[-1:], difference(before, tree())))
        elif "any" in wanted.values():
            if done.returncode != 0 or not loosely(wanted, difference(before, tree())):
                failures.append("%s: %s\n  found %r" % (what, done.stderr.strip().splitlines()[-1:], difference(before, tree())))
        else:
            expect(what, done, before, wanted)


def check_move(name, aliases, variables, value, there):
    more = {"runtime": "crio", "config-mode": "hook"} if name == "hooks-dir" else {}
    flags = base_flags(more)
    flags.pop(name)
    for words, environment, what in [({**flags, k: value}, {}, "--" + k) for k in [name] + aliases] + [(flags, {v: value}, v) for v in variables]:
        shutil.rmtree(FOLDER + "/source2", ignore_errors=True)
        make_host({})
        shutil.copytree(SOURCE, FOLDER + "/source2", symlinks=True)
        done = run(words, environment, {})
        if done.returncode != 0 or (there and not os.path.exists(FOLDER + "/" + there)):
            failures.append("%s: %s, %s" % (what, done.stderr.strip().splitlines()[-1:], sorted(tree())))
        if name == "pid-file" and os.path.exists(value):
            failures.append("%s: the file is left" % what)


def check_daemon(more, variables, stays):
    flags = base_flags(more)
    if "no-daemon" not in more:
        del flags["no-daemon"]
    make_host({})
    has_waited, line = False, ""
    with subprocess.Popen([INSTALLER] + as_words(flags), env={"PATH": "/usr/bin:/bin", **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        for line in program.stderr:
            if "Waiting for signal" in line:
                has_waited = True
                program.send_signal(signal.SIGTERM)
    # One that stays takes the registration back.
    if program.returncode != 0 or has_waited != stays or os.path.exists(FOLDER + "/" + ENGINE) == stays:
        failures.append("%r, %r: %d, has waited: %s" % (more, variables, program.returncode, has_waited) + ", last: " + line.strip())


def check_debug(more, variables, is_logged):
    """What an earlier run has left is removed: a step that is only logged with --debug."""
    done = run(base_flags(more), variables, {"nv/.graft-toolkit-5/x": ""})
    line = 'level=debug msg="removing %s/.graft-toolkit-5"' % INTO
    if done.returncode != 0 or (line in done.stderr) != is_logged or (not is_logged and "level=debug" in done.stderr):
        failures.append("%r, %r: %d, %s" % (more, variables, done.returncode, done.stderr))


def check_refusal(more, message, variables=None, files=None):
    done = run(base_flags(more), variables or {}, files or {})
    last = done.stderr.strip().splitlines()[-1]
    if done.returncode != 1 or "level=error msg=\"error running nvidia-ctk-installer: " + message not in last:
        if not (done.returncode == 1 and message.replace('"', '\\"') in last and "level=error" in last):
            failures.append("%r: %d, %s" % (more, done.returncode, last))
    if os.path.exists(INTO + "/toolkit") and "source" not in message and "there is none" not in message:
        failures.append("%r: something was installed" % more)


def main():
    for case in CASES:
        check_case(*case)
    for case in MOVES:
        check_move(*case)
    for case in DAEMON:
        check_daemon(*case)
    for case in DEBUG:
        check_debug(*case)
    for case in REFUSALS:
        check_refusal(*case)
    known = set(re.findall(r"--([a-z][a-z0-9.-]*)", subprocess.run([INSTALLER, "--help"], capture_output=True, text=True, check=True).stdout))
    tested = {case[0] for case in CASES + MOVES} | {alias for case in CASES + MOVES for alias in case[1]} | {"no-daemon", "help", "version", "quiet", "enable-cdi"}
    missing = sorted(known - tested)
    if missing:
        failures.append("no row for %s" % missing)
    print("\n".join(failures) or "%d flags" % len(CASES + MOVES))
    return 1 if failures else 0


sys.exit(main())
