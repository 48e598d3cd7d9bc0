#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""config.json as engines write it, edited: what is kept stands there byte for byte, and the result is what the specification allows.

    oci.py OCI_EDIT FOLDER [--schema FOLDER] [--update]

FOLDER has NAME.json and, beside it, NAME.edited.json: what oci_edit makes of it. TAP; --update writes the latter anew.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from tap import Tap, schema_errors, schema_skip

# What runs a program of a cross build.
EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
SCHEMA = "config-schema.json"
BLANKS = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder()
# What the edits of oci_edit.c are about; everything below may change.
TOUCHED = ["process.env", "process.user.additionalGids", "mounts", "hooks.prestart", "hooks.createContainer",
           "linux.devices", "linux.resources.devices", "linux.netDevices", "linux.intelRdt"]
# Those in which what was there stays, in another order at most.
LISTS = ["process.env", "mounts", "hooks.prestart", "linux.devices", "linux.resources.devices"]


def spans(text, at=0, path=""):
    """Yields (path, the value's bytes) of all values; returns behind the value."""
    at = BLANKS.match(text, at).end()
    start = at
    if text[at] in "{[":
        closing, n = "}]"["{[".index(text[at])], 0
        at = BLANKS.match(text, at + 1).end()
        while text[at] != closing:
            name = str(n)
            if closing == "}":
                name, at = DECODER.raw_decode(text, at)
                at = BLANKS.match(text, at).end() + 1
            at = yield from spans(text, at, (path + "." if path else "") + name)
            at = BLANKS.match(text, at).end()
            if text[at] == ",":
                at = BLANKS.match(text, at + 1).end()
            n += 1
        at += 1
    else:
        at = DECODER.raw_decode(text, at)[1]
    yield path, text[start:at]
    return at


def is_touched(path):
    """Whether it is below something that is edited, or holds something that is."""
    return any((path + ".").startswith(t + ".") or (t + ".").startswith(path + ".") or not path for t in TOUCHED)


def names(value):
    """The names of all objects, in order, of what is not edited."""
    def walk(v, path):
        if isinstance(v, dict):
            for k, w in v.items():
                inner = (path + "." if path else "") + k
                if not any((inner + ".").startswith(t + ".") for t in TOUCHED):
                    yield inner
                    yield from walk(w, inner)
    return list(walk(value, ""))


def lost(before, after):
    """What stood in the text and was not to be edited, and does not stand there any more as it did."""
    old, new = dict(spans(before)), dict(spans(after))
    for path, raw in old.items():
        if not is_touched(path) and new.get(path) != raw:
            yield "%s was %r and is %r" % (path, raw, new.get(path))
    for folder in LISTS:
        def elements(values, folder=folder):
            return [raw for path, raw in values.items() if re.fullmatch(re.escape(folder) + r"\.\d+", path)]
        kept = set(elements(new))
        gone = [raw for raw in elements(old) if raw not in kept]
        if [raw for raw in gone if not re.search(r"NVIDIA_VISIBLE_DEVICES=|nvidia-container-|nvidiactl|libcuda.so.1", raw)]:
            yield "%s lost %r" % (folder, gone)
    there = [name for name in names(json.loads(after)) if name in set(names(json.loads(before)))]
    if there != names(json.loads(before)):
        yield "the order of members changed"


def edit(program, path):
    with tempfile.TemporaryDirectory() as bundle:
        shutil.copy(path, bundle + "/config.json")
        subprocess.run([*EMULATOR, program, bundle], check=True, timeout=60)
        with open(bundle + "/config.json", encoding="utf-8", newline="") as stream:
            return stream.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--schema")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    tap = Tap()
    skip = schema_skip(options.schema, "OCI")
    for file in sorted(os.listdir(options.folder)):
        if not file.endswith(".json") or file.endswith(".edited.json"):
            continue
        name, path = file[:-5], os.path.join(options.folder, file)
        golden = path[:-5] + ".edited.json"
        with open(path, encoding="utf-8", newline="") as stream:
            before = stream.read()
        after = edit(options.program, path)
        if options.update:
            with open(golden, "w", encoding="utf-8", newline="") as stream:
                stream.write(after)
        with open(golden, encoding="utf-8", newline="") as stream:
            expected = stream.read()
        tap.result(name + ": edited as it was before", [] if after == expected else ["run oci.py --update, and read the difference"])
        tap.result(name + ": nothing else was touched", lost(before, after))
        if skip:
            continue
        wrong = set(schema_errors(options.schema, SCHEMA, before))
        tap.result(name + ": the specification's schema allows it", [e for e in schema_errors(options.schema, SCHEMA, after) if e not in wrong])
    if skip:
        tap.result("oci-schema", skip=skip)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
