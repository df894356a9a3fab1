# SPDX-License-Identifier: Apache-2.0
"""What tests of the archive need: a server of S3, a proxy before it that does what a network does, mounts of their own."""
import ctypes
import http.client
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
MOTO = "moto[server]==5.2.1"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def command(cache, data, port):
    """Versity's gateway, which checks signatures, where there is Go; or else moto, which does not."""
    if shutil.which("go"):
        binary = cache / "versitygw"
        if not binary.exists():
            subprocess.run(["go", "install", VERSITYGW], env={**os.environ, "GOBIN": str(cache)}, check=True)
        return True, [binary, "--port", f"127.0.0.1:{port}", "--quiet", "posix", data]
    if not (cache / "moto").exists():
        subprocess.run([sys.executable, "-m", "venv", cache / "moto.part"], check=True)
        subprocess.run([cache / "moto.part/bin/pip", "-q", "install", MOTO], check=True)
        (cache / "moto.part").rename(cache / "moto")
    return False, [cache / "moto/bin/python", cache / "moto/bin/moto_server", "-H", "127.0.0.1", "-p", str(port)]


def own_mounts():
    """What this process mounts from now on only it and those that it starts see, and it is gone with the last of them,
    however that ends."""
    clone_newns = 0x00020000  # sched.h
    if ctypes.CDLL(None, use_errno=True).unshare(clone_newns) == -1:
        raise OSError(ctypes.get_errno(), "no mounts of its own")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


class Server:
    def __init__(self, cache, folder, keys=("key", "secret")):
        cache.mkdir(parents=True, exist_ok=True)
        (folder / "data").mkdir()
        self.port = free_port()
        self.checks_signatures, start = command(cache, folder / "data", self.port)
        with open(folder / "s3.log", "wb") as log:
            self.process = subprocess.Popen(start, env={**os.environ, "ROOT_ACCESS_KEY": keys[0], "ROOT_SECRET_KEY": keys[1]},
                                            stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Proxy:
    """`fault(number, method)`: None, or what happens to a request: "503", "page" (200, of a proxy) and "refuse" before it
    reaches the server, "lose" (no answer), "cut" (half of one) and "delay" after that."""

    def __init__(self, server_port):
        self.fault = lambda number, method: None
        self.methods = []
        proxy, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            log_message = lambda self, *_: None

            def handle_request(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with lock:
                    proxy.methods.append("COPY" if "X-Amz-Copy-Source" in self.headers else self.command)
                    fault = proxy.fault(len(proxy.methods), self.command)
                if fault == "refuse":
                    self.close_connection = True
                    return
                if fault == "503":
                    self.answer(503, {}, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>")
                    return
                if fault == "page":
                    self.answer(200, {}, b"<html><body>Under maintenance</body></html>")
                    return
                server = http.client.HTTPConnection("127.0.0.1", server_port)
                server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    server.putheader(name, value)
                server.endheaders(body)
                answer = server.getresponse()
                content = answer.read()
                server.close()
                if fault == "lose":
                    self.close_connection = True
                    return
                if fault == "delay":
                    time.sleep(0.3)
                headers = {name: value for name, value in answer.getheaders()
                           if name.lower() not in ("transfer-encoding", "content-length", "connection")}
                length = answer.getheader("Content-Length") if self.command == "HEAD" else None
                self.answer(answer.status, headers, content, length, cut=fault == "cut")

            do_GET = do_PUT = do_DELETE = do_HEAD = handle_request

            def answer(self, status, headers, content, length=None, cut=False):
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", length or str(len(content)))
                self.end_headers()
                self.wfile.write(content[:len(content) // 2] if cut else content)
                self.close_connection = self.close_connection or cut and bool(content)

        class QuietServer(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128
            handle_error = lambda self, *_: None  # a client that was killed

        self.http = QuietServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def at_random(self, seed, share):
        chance = random.Random(seed)
        self.fault = lambda number, method: (chance.choice(["503", "page", "refuse", "lose", "cut", "delay"])
                                             if chance.random() < share else None)

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
