#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
An engine with NRI, for one plugin that connects: asks it about containers, and measures its answers.

  nri_engine.py SOCKET N [VARIABLE=VALUE...]

Registers the plugin, asks N times about a container with these variables, and prints a line of JSON: how many of the answers have
devices, mounts and hooks or are refusals, the median and the 99th percentile of their time in microseconds, the median time of
starts of /bin/true in between (unit_us), and the longest frame.
Then it stays connected until its standard input ends.
"""
import json
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from protobuf import decode, encode, repeated  # noqa: E402  (beside this file in a machine of the tests, or in test/tools)

PLUGIN, RUNTIME = 1, 2  # streams of the multiplexer
REQUEST, RESPONSE = 1, 2
SERVICE = "nri.pkg.api.v1alpha1.Plugin"


class Link:
    def __init__(self, connection):
        self.connection, self.stream, self.longest = connection, 1, 0
        self.bytes = {PLUGIN: b"", RUNTIME: b""}

    def send(self, stream, number, kind, message):
        data = struct.pack(">IIBB", len(message), number, kind, 0) + message
        self.connection.sendall(struct.pack(">II", stream, len(data)) + data)

    def receive(self, stream):
        """The next message of a stream: number, kind, data."""
        while True:
            have = self.bytes[stream]
            if len(have) >= 10:
                length, number, kind, _ = struct.unpack(">IIBB", have[:10])
                if len(have) >= 10 + length:
                    self.bytes[stream] = have[10 + length :]
                    return number, kind, have[10 : 10 + length]
            which, length = struct.unpack(">II", self.exactly(8))
            self.longest = max(self.longest, length)
            self.bytes[which] += self.exactly(length)

    def exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.connection.recv(n - len(data))
            if not piece:
                sys.exit("nri_engine: the plugin has gone")
            data += piece
        return data

    def call(self, method, message):
        """The answer's fields, and how long it took."""
        request = encode({1: SERVICE, 2: method}) + b"\x1a" + encode_length(message) + message
        begun = time.perf_counter()
        self.send(PLUGIN, self.stream, REQUEST, request)
        number, kind, data = self.receive(PLUGIN)
        took = time.perf_counter() - begun
        assert (number, kind) == (self.stream, RESPONSE), (number, kind)
        self.stream += 2
        return decode(data), took


def encode_length(message):
    n, out = len(message), b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def register(link):
    number, _, data = link.receive(RUNTIME)
    message = decode(decode(data)[3])
    assert message == {1: b"graft", 2: b"10"}, message
    # The plugin is configured before its registration is answered, as some engines do.
    answer, _ = link.call("Configure", encode({2: "test", 3: "1", 4: 5000, 5: 2000}))
    assert decode(answer[2]) == {2: 8}, answer
    link.send(RUNTIME, number, RESPONSE, b"")
    for more in (1, 0):
        answer, _ = link.call("Synchronize", encode({3: more}) if more else b"")
        assert decode(answer.get(2, b"")).get(2, 0) == more, answer


def start_seconds():
    """How long a start of /bin/true takes."""
    begun = time.perf_counter()
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    return time.perf_counter() - begun


def main():
    path, n, variables = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    link = Link(listener.accept()[0])
    register(link)
    request = encode(
        {
            1: {1: "1", 2: "pod", 3: "uid", 4: "default"},
            2: {1: "2", 2: "1", 3: "container", 8: ["PATH=/bin"] + variables},
        }
    )
    took, starts, result = [], [], {"given": 0, "nothing": 0, "refused": 0}
    for i in range(n):
        if i % 10 == 0:
            starts.append(start_seconds())
        answer, seconds = link.call("CreateContainer", request)
        took.append(seconds)
        adjustment = decode(decode(answer.get(2, b"")).get(1, b""))
        if 1 in answer:
            result["refused"] += 1
            result["why"] = decode(answer[1])[2].decode()
        elif adjustment:
            result["given"] += 1
            result["devices"] = len(repeated(adjustment[6], 1))
            result["hooks"] = len(repeated(adjustment.get(5, b""), 3))
        else:
            result["nothing"] += 1
    took.sort()
    starts.sort()
    result |= {"median_us": round(took[n // 2] * 1e6), "p99_us": round(took[n * 99 // 100] * 1e6)}
    result |= {"unit_us": round(starts[len(starts) // 2] * 1e6), "longest_frame": link.longest}
    print(json.dumps(result), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
