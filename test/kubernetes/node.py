#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
What a kubelet says of its pods, as JSON.

  node.py pods PORT             its pods with their states, by its read-only port
  node.py devices SOCKET        {pod: {container: {resource: [device, ...]}}}, by its PodResources service (SPEC kubernetes 5)

It is asked again and again: what only one way needs, only that one imports.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from protobuf import decode, repeated  # noqa: E402

TIME_LIMIT = 10


def pods(port):
    import urllib.request

    with urllib.request.urlopen("http://127.0.0.1:%s/pods" % port, timeout=TIME_LIMIT) as answer:
        return json.load(answer)["items"] or []


def devices(path):
    import grpc

    with grpc.insecure_channel("unix://" + path) as channel:
        answer = channel.unary_unary("/v1.PodResourcesLister/List")(b"", timeout=TIME_LIMIT)
    found = {}
    for pod in repeated(answer, 1):
        of_pod = found.setdefault(decode(pod)[1].decode(), {})
        for container in repeated(pod, 3):
            of_container = of_pod.setdefault(decode(container)[1].decode(), {})
            for held in repeated(container, 2):
                of_container.setdefault(decode(held)[1].decode(), []).extend(device.decode() for device in repeated(held, 2))
    return found


if __name__ == "__main__":
    try:
        print(json.dumps({"pods": pods, "devices": devices}[sys.argv[1]](sys.argv[2])))
    except Exception as problem:
        sys.exit("node.py: %s" % problem)
