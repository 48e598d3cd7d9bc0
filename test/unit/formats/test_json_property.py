#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random JSON texts and random edits: what the edited text says must be what the same edits make of Python's own values.

    test_json_property.py JSON_SCRIPT [ROUNDS [SEED]]
"""
import json
import os
import random
import shlex
import subprocess
import sys

# What runs a program of a cross build.
EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))

WORDS = ["a", "b", "env", "mounts", "\u00e4", "x y", "\U0001d11e", "", "path\\\"", "\u0001"]
SPACES = ["", "", " ", "\n", "\t ", "\r\n  "]


def value(rng, depth=0):
    kind = rng.randrange(9 if depth < 4 else 5)
    if kind == 0:
        return rng.choice([True, False])
    if kind == 1:
        return rng.choice([0, 1, 195, -1, -9223372036854775808, 18446744073709551615])
    if kind in (2, 3):
        return rng.choice(WORDS) * rng.randrange(3)
    if kind == 4:
        return rng.choice(["", "text that is longer than a word of the machine"])
    if kind in (5, 6):
        return [value(rng, depth + 1) for _ in range(rng.randrange(5))]
    return {name: value(rng, depth + 1) for name in names(rng, rng.randrange(5))}


def names(rng, n):
    return ["%s%d" % (rng.choice(["a", "b", "env", "\u00e4", "l"]), i) for i in range(n)]


def loose(rng, v):
    """JSON with blanks wherever they may stand, and characters escaped at random."""
    def blank():
        return rng.choice(SPACES)

    if isinstance(v, dict):
        inner = ",".join(blank() + json.dumps(k, ensure_ascii=rng.random() < 0.5) + blank() + ":" + blank() +
                         loose(rng, w) + blank() for k, w in v.items())
        return "{" + (inner or blank()) + "}"
    if isinstance(v, list):
        inner = ",".join(blank() + loose(rng, w) + blank() for w in v)
        return "[" + (inner or blank()) + "]"
    return json.dumps(v, ensure_ascii=rng.random() < 0.5)


def text_of(rng, v):
    style = rng.randrange(5)
    if style == 0:
        return json.dumps(v, separators=(",", ":"))
    if style == 1:
        return json.dumps(v)
    if style == 2:
        return json.dumps(v, indent="\t") + "\n"
    if style == 3:
        return json.dumps(v, indent=2, ensure_ascii=False)
    return loose(rng, v)


def containers(v, path=""):
    """All (path, container) below v, v first."""
    if isinstance(v, (dict, list)):
        yield path, v
        for k, w in (v.items() if isinstance(v, dict) else enumerate(v)):
            yield from containers(w, (path + "/" if path else "") + str(k))


def edit(rng, root):
    """Does one edit to the value; returns it as a line, or None where none is possible."""
    path, v = rng.choice(list(containers(root)))
    new = value(rng, 2)
    said = json.dumps(new, ensure_ascii=rng.random() < 0.5)
    kind = rng.randrange(4)
    inner = (path + "/" if path else "") + "%s"
    if isinstance(v, dict) and (kind == 0 or not v):
        name = rng.choice(names(rng, 5))
        v[name] = new
        return "key\t%s\t%s\t%s" % (path, name, said)
    if isinstance(v, list) and (kind == 0 or not v):
        v.append(new)
        return "append\t%s\t%s" % (path, said)
    place = rng.choice(list(v) if isinstance(v, dict) else range(len(v)))
    if kind == 1:
        v[place] = new
        return "replace\t%s\t%s" % (inner % place, said)
    if kind == 2:
        del v[place]
        return "remove\t" + inner % place
    if isinstance(v, list):
        order = list(range(len(v)))
        rng.shuffle(order)
        v[:] = [v[i] for i in order]
        return "reorder\t%s\t%s" % (path, ",".join(map(str, order)))
    return None


def is_laid_out(text, pretty):
    """Compact stays compact; what Python writes with an indentation stays as Python would write it."""
    layout = {"separators": (",", ":")} if pretty is None else {"indent": pretty}
    return text.rstrip("\n") == json.dumps(json.loads(text), ensure_ascii=False, **layout)


def one_round(rng, script):
    root = value(rng)
    while not isinstance(root, dict) or not root:
        root = value(rng)
    style = rng.choice(["compact", "tabs", "any"])
    if style == "compact":
        text = json.dumps(root, separators=(",", ":"), ensure_ascii=False)
    elif style == "tabs":
        text = json.dumps(root, indent="\t", ensure_ascii=False) + "\n"
    else:
        text = text_of(rng, root)
    before = text
    lines = [line for line in (edit(rng, root) for _ in range(rng.randrange(8))) if line]
    done = subprocess.run([*EMULATOR, script], input=(text + "\0" + "\n".join(lines)).encode(), capture_output=True, timeout=60, check=False)
    said = done.stdout.decode()
    if done.returncode != 0 or json.loads(said) != root or list(containers(json.loads(said))) != list(containers(root)):
        return "seed gives another value: %r %r -> %r %r" % (before, lines, said, done.stderr)
    if style != "any" and not is_laid_out(said, None if style == "compact" else "\t"):
        return "seed gives another layout: %r %r -> %r" % (before, lines, said)
    return None


def main():
    script = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    rng = random.Random(seed)
    print("1..1")
    for i in range(rounds):
        wrong = one_round(rng, script)
        if wrong:
            print("not ok 1 - %d random texts, edited\n# seed %d, round %d: %s" % (rounds, seed, i, wrong))
            return 1
    print("ok 1 - %d random texts, edited (seed %d)" % (rounds, seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
