#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a trace of strace -f with the tables of docs/ARCHITECTURE.md (section "Capabilities").

    capability_trace.py ARCHITECTURE.md TRACE PROCESS...

PROCESS is a row of the table of processes, or `runtime`, which has none. Each must be in the trace, and no other process of ours; other
programs (a low-level runtime, modprobe) are ignored. Prints what is wrong, and then exits with status 1.
"""

import re
import sys

# The capabilities one of which a call needs. Rights over an object by its owner are not among them.
NEEDS = {
    "mount": {"SYS_ADMIN"},
    "umount2": {"SYS_ADMIN"},
    "setns": {"SYS_ADMIN"},
    "unshare": {"SYS_ADMIN"},
    "pivot_root": {"SYS_ADMIN"},
    "move_mount": {"SYS_ADMIN"},
    "mount_setattr": {"SYS_ADMIN"},
    "fsopen": {"SYS_ADMIN"},
    "fsconfig": {"SYS_ADMIN"},
    "fsmount": {"SYS_ADMIN"},
    "bpf": {"SYS_ADMIN", "NET_ADMIN", "BPF"},
    "chroot": {"SYS_CHROOT"},
    "setuid": {"SETUID"},
    "setreuid": {"SETUID"},
    "setresuid": {"SETUID"},
    "setfsuid": {"SETUID"},
    "setgid": {"SETGID"},
    "setregid": {"SETGID"},
    "setresgid": {"SETGID"},
    "setfsgid": {"SETGID"},
    "setgroups": {"SETGID"},
    "chown": {"CHOWN"},
    "lchown": {"CHOWN"},
    "fchown": {"CHOWN"},
    "fchownat": {"CHOWN"},
    "init_module": {"SYS_MODULE"},
    "finit_module": {"SYS_MODULE"},
}
OURS = {
    "nvidia-container-cli": None,  # the row is that of its command
    "nvidia-container-runtime": "runtime",
    "nvidia-container-runtime.cdi": "runtime",
    "nvidia-container-runtime-hook": "hook",
    "nvidia-cdi-hook": "cdi-hook",
}
AS_USER = ", as a user"  # behind a command: it is not root that calls it
CHANGING = ("mount", "ldcache", "ldcache-user")  # steps in which a container may be changed
TOUCHING = ("setns", "mount", "move_mount", "umount2")  # calls from which on it has been
FORKS = ("clone", "clone3", "fork", "vfork")
FILE_RIGHTS = {"DAC_OVERRIDE", "DAC_READ_SEARCH"}


def tables(path):
    text = open(path, encoding="utf-8").read()
    rows = {}
    for name, caps in re.findall(r"^\| `([^`]+)` \|([^|]*)\|[^|]*\|$", between(text, "capabilities"), re.M):
        rows[name] = frozenset(re.findall(r"`([A-Z_]+)`", caps))
    processes = {}
    for name, steps in re.findall(r"^\| `([^`]+)` \| ([^|]*) \|$", between(text, "steps"), re.M):
        processes[name] = [unfold(steps, True), unfold(steps, False)]
    bounding = rows.pop("bounding")
    return rows, processes, bounding


def unfold(steps, all_of_them):
    """With or without the steps in brackets."""
    return re.sub(r"\[([^]]*)\]", r"\1" if all_of_them else "", steps).strip(", ").replace(", , ", ", ").split(", ")


def between(text, name):
    return text.split("<!-- %s -->" % name)[1].split("<!-- end of %s -->" % name)[0]


def capabilities(words):
    if words == "0":
        return frozenset()
    return frozenset(re.findall(r"1<<CAP_([A-Z_]+)", words))


class Process:
    """One process; `name` is its row, None: none of ours."""

    def __init__(self, name=None, parent=None):
        self.name = name
        self.sets = []  # effective ones, one after the other
        self.effective = parent.effective if parent else None  # None: what the caller has
        self.permitted = parent.permitted if parent else None
        self.no_new_privs = parent.no_new_privs if parent else False
        self.touched = parent.touched if parent else False
        self.other_ids = parent.other_ids if parent else False
        self.dropped = set()


class Check:
    early = {}  # what a process did before strace told of its birth

    def __init__(self, rows, processes, bounding):
        self.rows, self.steps, self.bounding = rows, processes, bounding
        self.alive = {}
        self.seen = []
        self.wrong = []

    def complain(self, process, text):
        self.wrong.append("%s: %s" % (process.name, text))

    def named(self, effective, process):
        """The steps that a set can be."""
        return [name for name, row in self.rows.items() if row & (process.permitted or row) == effective]

    def line(self, pid, call, words, result):
        process = self.alive.get(pid)
        if process is None:
            process = self.alive[pid] = Process()
        if call in FORKS:
            if result.isdigit():
                self.alive[result] = Process(process.name and "child of " + process.name, process)
                for early in self.early.pop(result, []):
                    self.line(result, *early)
        elif call in ("execve", "execveat"):
            if result == "0":
                self.executed(pid, process, words)
        elif process.name is None:
            return
        elif call == "prctl":
            self.prctl(process, words, result)
        elif call == "capset":
            self.capset(process, words, result)
        else:
            self.privileged(process, call, words, result)

    def executed(self, pid, process, words):
        if process.name and process.touched:
            self.complain(process, "executes %s after the container was touched" % words)
        path = re.match(r'"([^"]*)"', words)
        program = path.group(1).rsplit("/", 1)[-1] if path else ""
        name = None
        if program in OURS:
            name = OURS[program] or self.command(words)
            new = Process(name)
            new.no_new_privs = process.no_new_privs
            self.alive[pid] = new
            self.seen.append(new)
        else:
            self.alive[pid] = Process()

    @staticmethod
    def command(words):
        for command in ("configure", "info", "list", "plan"):
            if '"%s"' % command in words and command + AS_USER in sys.argv[3:]:
                return command + AS_USER
            if '"%s"' % command in words:
                return command + (" --load-kmods" if '"--load-kmods"' in words else "")
        return "?"

    def prctl(self, process, words, result):
        if words.startswith("PR_SET_NAME") and "[nvml]" in words:
            process.name, process.sets = "nvml", []
            self.seen.append(process)
        elif words.startswith('PR_SET_NAME, "graft-reader"'):
            process.name, process.sets = "reader", []
            self.seen.append(process)
        elif words.startswith("PR_SET_NO_NEW_PRIVS"):
            process.no_new_privs = process.no_new_privs or result == "0"
        elif words.startswith("PR_CAPBSET_DROP") and result == "0":
            if "SETPCAP" not in (process.effective if process.effective is not None else {"SETPCAP"}):
                self.complain(process, "drops from the bounding set without SETPCAP")
            process.dropped |= capabilities("1<<" + words.split(", ")[1])

    def capset(self, process, words, result):
        match = re.search(r"effective=([^,]*), permitted=([^,]*), inheritable=([^}]*)}", words)
        if result != "0" or not match:
            self.complain(process, "capset(%s) = %s" % (words, result))
            return
        effective, permitted, inheritable = (capabilities(part) for part in match.groups())
        if process.permitted is None and self.loads_modules(process) and not process.dropped:
            process.effective = effective  # SETPCAP is raised for the bounding set
            return
        if process.permitted is not None and not permitted <= process.permitted:
            self.complain(process, "more is permitted than before: %s" % sorted(permitted - process.permitted))
        if process.name != "nvml" and permitted - self.rows["limit"]:
            self.complain(process, "permitted: %s" % sorted(permitted - self.rows["limit"]))
        if inheritable:
            self.complain(process, "inheritable: %s" % sorted(inheritable))
        process.permitted, process.effective = permitted, effective
        names = self.named(effective, process)
        if not names and process.other_ids:
            names = [name for name, row in self.rows.items() if (row | FILE_RIGHTS) & permitted == effective]
        if not names:
            self.complain(process, "a set that is no row: %s" % sorted(effective))
            return
        if not process.other_ids:
            process.sets.append(effective)
        # A reader is its own process, and has no rights when it touches anything.
        if process.name != "reader" and any(name in CHANGING for name in names):
            if not process.no_new_privs:
                self.complain(process, "%s without no_new_privs" % "/".join(names))

    def privileged(self, process, call, words, result):
        first = words.split(",")[0]
        if call in ("setfsuid", "setfsgid"):
            if first in ("-1", "4294967295"):
                return  # asks
            process.other_ids = first != "0"
        if call in TOUCHING and process.name != "reader" and not result.startswith("-1"):
            process.touched = True
        # What only asks whether there is a call.
        if first == "-1" or re.search(r"= -1 (EBADF|EINVAL)", "= " + result) and ("0xfffffff" in words or first == '""'):
            return
        needed = NEEDS.get(call, set())
        if call == "open_tree" and "OPEN_TREE_CLONE" in words:
            needed = {"SYS_ADMIN"}
        if call in ("mknod", "mknodat") and re.search(r"S_IF(CHR|BLK)", words):
            needed = {"MKNOD"}
        if call == "kill" and words.endswith(" 0"):
            needed = set()
        if needed and process.effective is not None and not needed & process.effective:
            self.complain(process, "%s(%s) = %s with %s" % (call, words, result, sorted(process.effective)))

    def order(self, process):
        if process.name == "runtime":
            return [] if not process.sets else ["runtime: changes its capabilities"]
        if process.name not in self.steps:
            return ["%s: not in the table" % process.name]
        have = [one for i, one in enumerate(process.sets) if i == 0 or process.sets[i - 1] != one]
        if any(have == self.wanted(process, steps) for steps in self.steps[process.name]):
            return []
        names = ["/".join(n for n, row in self.rows.items() if row == one) or str(sorted(one)) for one in have]
        return ["%s: steps are %s" % (process.name, ", ".join(names))]

    def wanted(self, process, steps):
        permitted = self.rows["limit"] if process.name in ("nvml", "reader") else process.permitted or frozenset()
        want = []
        for step in steps:
            row = self.rows[step] & permitted
            if not want or want[-1] != row:
                want.append(row)
        return want

    def loads_modules(self, process):
        return "kmods" in self.steps.get(process.name, [[]])[0]

    def kept(self, process):
        if not self.loads_modules(process):
            return ["%s: drops from the bounding set" % process.name] if process.dropped else []
        if process.dropped & self.bounding:
            return ["%s: the bounding set loses %s" % (process.name, sorted(process.dropped & self.bounding))]
        left = self.rows["limit"] - self.bounding - process.dropped
        return ["%s: the bounding set keeps %s" % (process.name, sorted(left))] if left else []


def main():
    rows, processes, bounding = tables(sys.argv[1])
    check = Check(rows, processes, bounding)
    unfinished = {}
    born = set()
    for text in open(sys.argv[2], encoding="utf-8", errors="replace"):
        match = re.match(r"(\d+) +(.*)$", text)
        if not match:
            continue
        pid, rest = match.groups()
        born = born or {pid}
        if rest.endswith("<unfinished ...>"):
            unfinished[pid] = rest[: -len("<unfinished ...>")].rstrip()
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)$", rest)
        if resumed:
            rest = unfinished.pop(pid, "") + resumed.group(1)
        match = re.match(r"(\w+)\((.*)\) += (-?\w+.*)$", rest)
        if not match:
            continue
        call, words, result = match.groups()
        result = result if result.startswith("-1") else result.split()[0]
        if pid not in born:
            Check.early.setdefault(pid, []).append((call, words, result))
            continue
        if call in FORKS and result.isdigit():
            born.add(result)
        check.line(pid, call, words, result)
    # In another PID namespace a parent knows them by another number. They are children of runc's, and none of ours before they execute it.
    for pid in list(Check.early):
        for early in Check.early.pop(pid, []):
            check.line(pid, *early)
    for process in check.seen:
        check.wrong += check.order(process) + check.kept(process)
    names = sorted({process.name for process in check.seen})
    if names != sorted(sys.argv[3:]):
        check.wrong.append("seen: %s" % ", ".join(names))
    for text in dict.fromkeys(check.wrong):
        print(text)
    return 1 if check.wrong else 0


sys.exit(main())
