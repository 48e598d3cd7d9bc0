#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the API server of Kubernetes: HTTPS, tokens and client certificates, objects with resourceVersion, lists, watches,
and every fault that the way to a real one has.

    apiserver.py serve DIRECTORY          serves at 127.0.0.1, until it is killed
    apiserver.py ctl DIRECTORY METHOD PATH [JSON]     one request with the server's own token; prints the answer, exits 1 unless 2xx

DIRECTORY gets: ca.crt, token (what an account has), client.crt, client.key, port, kubeconfig (with the token's file), kubeconfig-data
(all in itself, with the certificate), and log (a line for each request: METHOD TARGET USER). The file `token` is read for each request.

Any collection exists (/api/v1/nodes, /apis/GROUP/VERSION/namespaces/NS/KIND): GET, POST, PUT, PATCH (merge), DELETE, and GET ?watch=true with
fieldSelector=metadata.name=NAME. Besides:

    POST /-/fault {"match": PREFIX, "kind": KIND, "count": N, ...}    what happens to the next N requests whose target has that prefix ("method": of it alone):
        status (code, message; text: no Status but this), garbage (no JSON), cut (the connection ends within the answer), slow (one byte
        each `pause` seconds), hang, large (size: an object of so many bytes), redirect, gone (410)
    POST /-/stream {"kind": KIND, ...}    what happens to the open watches: cut, end, garbage, gone, error (code, message), bookmark, raw (text),
        slow (pause: from here on byte by byte)
    POST /-/forget {}        every resourceVersion that was given is too old: watches from there get 410
    GET /-/state             {"streams": N, "version": N}
"""
import base64
import http.client
import http.server
import json
import os
import queue
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse


def make_certificates(directory):
    """A CA, the server's certificate for 127.0.0.1 and localhost, and a client's."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=test-ca")
    for name, extension in (("server", "subjectAltName=IP:127.0.0.1,DNS:localhost"), ("client", "extendedKeyUsage=clientAuth")):
        with open(os.path.join(directory, name + ".ext"), "w", encoding="ascii") as stream:
            stream.write(extension + "\n")
        openssl("req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=test-" + name)
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", name + ".ext", "-out", name + ".crt")


def kubeconfig(cluster, user):
    return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "test",
                       "contexts": [{"name": "test", "context": {"cluster": "here", "user": "me"}}],
                       "clusters": [{"name": "here", "cluster": cluster}], "users": [{"name": "me", "user": user}]}, indent=1)


class Store:
    """Objects by path, their versions, and who watches."""

    def __init__(self):
        self.lock = threading.Lock()
        self.objects, self.history, self.watchers = {}, [], []
        self.version, self.forgotten = 100, 0

    def change(self, kind, path, new):
        self.version += 1
        if new is not None:
            new.setdefault("metadata", {})["resourceVersion"] = str(self.version)
        shown = new if new is not None else dict(self.objects[path], metadata=dict(self.objects[path]["metadata"], resourceVersion=str(self.version)))
        event = (self.version, path, {"type": kind, "object": json.loads(json.dumps(shown))})
        if new is None:
            del self.objects[path]
        else:
            self.objects[path] = new
        self.history.append(event)
        for watcher in self.watchers:
            watcher.put(event)


def merge(into, patch):
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store, directory, faults = Store(), "", []

    def log_message(self, *_):
        pass

    # --- answers ---

    def answer(self, status, body, content_type="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, code, reason, message):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code})

    def user(self):
        with open(os.path.join(self.directory, "token"), encoding="ascii") as stream:
            token = stream.read().strip()
        if self.headers.get("Authorization") == "Bearer " + token:
            return "token"
        certificate = self.connection.getpeercert()
        return "certificate" if certificate else None

    def fault(self):
        with self.store.lock:
            for fault in self.faults:
                if self.path.startswith(fault["match"]) and fault["count"] > 0 and fault.get("method", self.command) == self.command:
                    fault["count"] -= 1
                    return fault
        return None

    def suffer(self, fault):
        kind = fault["kind"]
        if kind == "status" and "text" in fault:
            self.answer(fault["code"], fault["text"].encode(), "text/plain")
        elif kind == "status":
            self.refuse(fault["code"], "Test", fault.get("message", "no"))
        elif kind == "garbage":
            self.answer(200, b"\x00\xff{]")
        elif kind == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"half":')
            self.close()
        elif kind == "slow":
            data = b'{"kind":"Slow","value":"' + b"x" * 20 + b'"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            for i in range(len(data)):
                self.wfile.write(data[i:i + 1])
                time.sleep(fault.get("pause", 0.01))
        elif kind == "hang":
            time.sleep(fault.get("pause", 60))
            self.close()
        elif kind == "large":
            self.answer(200, {"metadata": {"resourceVersion": "7"}, "items": [], "padding": "x" * fault["size"]})
        elif kind == "redirect":
            self.send_response(302)
            self.send_header("Location", "https://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif kind == "gone":
            self.refuse(410, "Expired", "too old resource version")

    def close(self):
        self.close_connection = True
        self.wfile.flush()
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    # --- requests ---

    def control(self, name, body):
        if name == "fault":
            self.faults.append(dict({"count": 1}, **body))
        elif name == "forget":
            self.store.forgotten = self.store.version
            self.store.version += 1
        elif name == "stream":
            for watcher in self.store.watchers:
                watcher.put(body)
        return {"streams": len(self.store.watchers), "version": self.store.version}

    def handle_one(self):
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        user = self.user()
        target = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(target.query)
        if not target.path.startswith("/-/"):
            with open(os.path.join(self.directory, "log"), "a", encoding="utf-8") as log:
                log.write(f"{self.command} {self.path} {user}\n")
        if not user:
            self.refuse(401, "Unauthorized", "Unauthorized")
            return
        fault = self.fault()
        if fault:
            self.suffer(fault)
            return
        try:
            body = json.loads(data) if data else {}
        except ValueError:
            self.refuse(400, "BadRequest", "the body is no JSON")
            return
        if target.path.startswith("/-/"):
            with self.store.lock:
                state = self.control(target.path[3:], body)
            self.answer(200, state)
        elif query.get("watch") == ["true"]:
            self.watch(target.path, query)
        else:
            with self.store.lock:
                status, answer = self.serve(target.path, query, body)
            if status < 300:
                self.answer(status, answer)
            else:
                self.refuse(status, *answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

    @staticmethod
    def chosen(path, collection, query):
        selector = query.get("fieldSelector", [""])[0]
        folder, name = path.rsplit("/", 1)
        return folder == collection and (not selector or selector == "metadata.name=" + name)

    def serve(self, path, query, body):
        store, folder, name = self.store, *path.rsplit("/", 1)
        kind = folder.rsplit("/", 1)[1]
        missing = (404, ("NotFound", f'{kind} "{name}" not found'))
        if self.command == "POST":
            new = path + "/" + body["metadata"]["name"]
            if new in store.objects:
                return 409, ("AlreadyExists", f'{name} "{body["metadata"]["name"]}" already exists')
            store.change("ADDED", new, body)
            return 201, store.objects[new]
        is_object = path in store.objects
        if self.command == "GET":
            if is_object:
                return 200, store.objects[path]
            if path.count("/") % 2 == 0 and path.startswith("/api/") or path.startswith("/apis/") and path.count("/") in (5, 7):
                return missing
            items = [o for p, o in store.objects.items() if self.chosen(p, path, query)]
            return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": str(store.version)}, "items": items}
        if not is_object:
            return missing
        if self.command == "DELETE":
            store.change("DELETED", path, None)
            return 200, {"kind": "Status", "status": "Success"}
        new = body
        if self.command == "PATCH":
            if self.headers.get("Content-Type") != "application/merge-patch+json":
                return 415, ("UnsupportedMediaType", "the body is of an unknown kind")
            new = json.loads(json.dumps(store.objects[path]))
            merge(new, body)
        elif body.get("metadata", {}).get("resourceVersion", "") not in ("", store.objects[path]["metadata"]["resourceVersion"]):
            return 409, ("Conflict", f'Operation cannot be fulfilled on {kind} "{name}": the object has been modified')
        store.change("MODIFIED", path, new)
        return 200, store.objects[path]

    # --- watches ---

    def send_chunk(self, data, pause):
        for part in ([data] if not pause else [data[i:i + 1] for i in range(len(data))]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
            time.sleep(pause)

    def watch(self, path, query):
        store, events, pause = self.store, queue.Queue(), 0
        since = int(query.get("resourceVersion", ["0"])[0])
        with store.lock:
            # One that was started anew has forgotten everything.
            if not store.forgotten < since <= store.version:
                self.refuse(410, "Expired", f"too old resource version: {since} ({store.version})")
                return
            for event in store.history:
                if event[0] > since:
                    events.put(event)
            store.watchers.append(events)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        end = time.monotonic() + int(query.get("timeoutSeconds", ["60"])[0])
        try:
            while True:
                try:
                    event = events.get(timeout=0.05)
                except queue.Empty:
                    # The client says nothing while it watches: what can be read is its end.
                    if select.select([self.connection], [], [], 0)[0]:
                        self.close_connection = True
                        return
                    if time.monotonic() < end:
                        continue
                    event = {"kind": "end"}
                if isinstance(event, tuple):
                    if self.chosen(event[1], path, query):
                        self.send_chunk(json.dumps(event[2]).encode() + b"\n", pause)
                    continue
                kind = event["kind"]
                if kind == "cut":
                    self.wfile.write(b'400\r\n{"type":"MOD')
                    self.close()
                    return
                if kind == "end":
                    self.wfile.write(b"0\r\n\r\n")
                    return
                if kind == "slow":
                    pause = event.get("pause", 0.001)
                else:
                    self.send_chunk(self.special(kind, event), pause)
        except OSError:
            self.close_connection = True
        finally:
            with store.lock:
                store.watchers.remove(events)

    def special(self, kind, event):
        if kind == "garbage":
            return b"\x00{{ this is no event\n"
        if kind == "raw":
            return event["text"].encode()
        if kind == "bookmark":
            with self.store.lock:
                version = str(self.store.version)
            return json.dumps({"type": "BOOKMARK", "object": {"kind": "Node", "metadata": {"resourceVersion": version}}}).encode() + b"\n"
        code = 410 if kind == "gone" else event.get("code", 500)
        message = "too old resource version" if kind == "gone" else event.get("message", "no")
        return json.dumps({"type": "ERROR", "object": {"kind": "Status", "message": message, "code": code}}).encode() + b"\n"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients may go at any time, and some are not to be trusted with TLS


def read(directory, name):
    with open(os.path.join(directory, name), "rb") as stream:
        return stream.read()


def write(directory, name, text):
    """Whole or not at all: those who wait for the file read it at once."""
    path = os.path.join(directory, name)
    with open(path + ".tmp", "w", encoding="ascii") as stream:
        stream.write(text)
    os.rename(path + ".tmp", path)


def serve(directory):
    Handler.directory = directory
    if not os.path.exists(os.path.join(directory, "ca.crt")):
        make_certificates(directory)
        write(directory, "token", "first-token\n")
    port = int(read(directory, "port")) if os.path.exists(os.path.join(directory, "port")) else 0
    server = Server(("127.0.0.1", port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(directory, "server.crt"), os.path.join(directory, "server.key"))
    context.load_verify_locations(os.path.join(directory, "ca.crt"))
    context.verify_mode = ssl.CERT_OPTIONAL
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    url = f"https://127.0.0.1:{server.server_port}"
    encoded = {name: base64.b64encode(read(directory, name)).decode() for name in ("ca.crt", "client.crt", "client.key")}
    write(directory, "kubeconfig", kubeconfig({"server": url, "certificate-authority": "ca.crt"}, {"tokenFile": "token"}))
    write(directory, "kubeconfig-data", kubeconfig({"server": url, "certificate-authority-data": encoded["ca.crt"]},
                                                   {"client-certificate-data": encoded["client.crt"], "client-key-data": encoded["client.key"]}))
    write(directory, "port", str(server.server_port))
    server.serve_forever()


def control(directory, method, path, body=None):
    context = ssl.create_default_context(cafile=os.path.join(directory, "ca.crt"))
    connection = http.client.HTTPSConnection("127.0.0.1", int(read(directory, "port")), context=context, timeout=10)
    headers = {"Authorization": "Bearer " + read(directory, "token").decode().strip()}
    if method == "PATCH":
        headers["Content-Type"] = "application/merge-patch+json"
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    print(answer.read().decode())
    return 0 if answer.status < 300 else 1


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "serve":
        serve(sys.argv[2])
    elif len(sys.argv) in (5, 6) and sys.argv[1] == "ctl":
        sys.exit(control(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
