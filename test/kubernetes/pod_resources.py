#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
A kubelet's PodResources: the devices that it has given to containers.

  pod_resources.py SOCKET FILE

FILE has one line for each container, "NAMESPACE POD CONTAINER [ID...]", and is read at each call. The line "wait SECONDS"
makes each call take so long. Numbers of fields as in the kubelet's api.proto.
"""
import os
import sys
import time
from concurrent import futures

import grpc

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from protobuf import encode  # noqa: E402  (beside this file in a machine of the tests, or in test/tools)


def answer(path):
    pods = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["wait"]:
                time.sleep(float(words[1]))
            elif words:
                devices = [{1: "nvidia.com/gpu", 2: words[3:]}] if words[3:] else []
                pods.append({1: words[1], 2: words[0], 3: [{1: words[2], 2: devices}]})
    return encode({1: pods})


def main():
    socket, path = sys.argv[1:3]
    server = grpc.server(futures.ThreadPoolExecutor(4))
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: answer(path))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),))
    server.add_insecure_port("unix://" + socket)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
