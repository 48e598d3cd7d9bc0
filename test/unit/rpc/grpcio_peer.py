#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Calls the server of test_grpcio.c at the socket argv[1], and looks at what it answers. Exit status 77: there is no grpcio."""
import os
import sys
import threading

try:
    import grpc
except ImportError:
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools"))
from protobuf import decode, encode  # noqa: E402

PLUGIN = "/v1beta1.DevicePlugin/"
channel = grpc.insecure_channel("unix://" + sys.argv[1], options=[("grpc.max_receive_message_length", 8 << 20)])


def allocate(identifier, **options):
    answer = channel.unary_unary(PLUGIN + "Allocate")(encode({1: {1: identifier}}), timeout=20, **options)
    return decode(decode(decode(answer)[1])[1]).get(2, b"")


def error_of(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return None


# Answers of all sizes, also larger than a window of flow control.
for size in (0, 1, 16384, 65535, 65536, 1000000, 4000000):
    assert allocate(str(size)) == b"-" * size, size
# A request of that size.
assert allocate("7" + " " * 4000000) == b"-" * 7
assert error_of(allocate, "x" * (4 << 20)) == ("RESOURCE_EXHAUSTED", "a message of 4194314 bytes is larger than 4 MiB")
assert error_of(allocate, "fail 100 % caf\u00e9\n") == ("INVALID_ARGUMENT", "100 % caf\u00e9\n")
assert error_of(channel.unary_unary(PLUGIN + "Nothing"), b"") == ("UNIMPLEMENTED", "unknown method '/v1beta1.DevicePlugin/Nothing'")
assert error_of(allocate, "1", compression=grpc.Compression.Gzip) in (
    None,  # grpcio compresses nothing that would become larger
    ("UNIMPLEMENTED", "compressed messages are not supported"),
)

# A stream, while unary calls go on beside it; it ends when the client says so.
stream = channel.unary_stream(PLUGIN + "ListAndWatch")(b"")
assert decode(decode(next(stream))[1])[2] == b"Healthy"
assert allocate("3") == b"---"
assert decode(decode(next(stream))[1])[2] == b"Unhealthy"

failures = []


def many():
    try:
        for i in range(200):
            if allocate(str(i)) != b"-" * i:
                failures.append(i)
    except grpc.RpcError as error:
        failures.append(error)


threads = [threading.Thread(target=many) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
stream.cancel()
channel.close()
