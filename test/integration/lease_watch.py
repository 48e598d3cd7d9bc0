#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Somebody at a terminal who watches a list of leases, for lease.bats.

    lease_watch.py NVIDIA_CTK TABLE     prints nothing if all is as it should be

The list follows what is lent, and the size of the terminal; Ctrl-C ends it and leaves the terminal as it was.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

HEAD = b"GPU  STATE  LEASE         HOLDER"
LIMIT_S = 20


class Terminal:
    def __init__(self, argv, rows, columns):
        self.master, slave = pty.openpty()
        self.slave = slave
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        )
        self.shown = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.shown += os.read(self.master, 65536)

    def screens(self):
        """What was shown at once, each as lines; the last one may not be whole."""
        return [[line.replace(b"\033[K", b"") for line in one.split(b"\033[J")[0].split(b"\r\n")[:-1]] for one in self.shown.split(b"\033[H")[1:] if b"\033[J" in one]

    def wait_for(self, what, condition):
        """Until a screen that begins from now on is so. Returns it."""
        until, seen = time.monotonic() + LIMIT_S, len(self.shown.split(b"\033[H"))
        while time.monotonic() < until:
            self.read(0.1)
            for screen in self.screens()[seen - 1 :]:
                if condition(screen):
                    return screen
        sys.exit("lease_watch: not %s: %r" % (what, self.shown[-2000:]))


def main():
    # Who runs in the background of a script ignores it, and so would the program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = [sys.argv[1], "--quiet", "lease"]
    terminal = Terminal([sys.argv[1], "lease", "list", "--watch"], 24, 100)
    terminal.wait_for("eight that are free", lambda screen: screen[0] == HEAD and len(screen) == 9 and all(line.endswith(b"free") for line in screen[1:]))
    taken = subprocess.run([*program, "acquire", "-n", "2", "--for", "1h"], stdout=subprocess.PIPE, check=True, encoding="ascii").stdout.strip()
    terminal.wait_for("two that are held", lambda screen: sum(taken.encode() in line for line in screen) == 2)
    terminal.resize(6, 20)
    terminal.wait_for("cut to 6 lines of 20", lambda screen: len(screen) == 5 and screen[0] == HEAD[:20] and max(map(len, screen)) == 20)
    terminal.resize(40, 132)
    terminal.wait_for("whole again", lambda screen: len(screen) == 9 and screen[0] == HEAD)
    subprocess.run([*program, "release", taken], check=True)
    terminal.wait_for("all free", lambda screen: not any(taken.encode() in line for line in screen))
    # A table that is damaged: the warning stays on the screen.
    with open(os.path.join(sys.argv[2], "held", "other"), "w", encoding="ascii"):
        pass
    terminal.wait_for("warned", lambda screen: True)
    until = time.monotonic() + LIMIT_S
    while not terminal.shown.split(b"\033[J")[-1].count(b"is damaged"):
        terminal.read(0.1)
        if time.monotonic() > until:
            sys.exit("lease_watch: no warning below the table: %r" % terminal.shown[-1000:])
    os.unlink(os.path.join(sys.argv[2], "held", "other"))
    os.write(terminal.master, b"\003")
    if terminal.process.wait(LIMIT_S) != -signal.SIGINT:
        sys.exit("lease_watch: ended with %d" % terminal.process.returncode)
    terminal.read(0)
    if termios.tcgetattr(terminal.slave) != terminal.modes or b"\033[?" in terminal.shown:
        sys.exit("lease_watch: the terminal is not as it was: %r" % terminal.shown)


if __name__ == "__main__":
    main()
