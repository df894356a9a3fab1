# SPDX-License-Identifier: Apache-2.0
"""Stands in front of DynamoDB: sees when checkpoints are stored, and can throttle.

Plain HTTP/1.1, a thread per connection. It changes nothing of what it passes on.
"""
import http.client
import http.server
import json
import random
import threading
import time
import typing

from .journal import Position


class Stored(typing.NamedTuple):
    time: int  # when the request came in, before DynamoDB had it
    table: str
    shard: str
    position: Position


_THROTTLED = json.dumps({
    "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "message": "The level of configured provisioned throughput for the table was exceeded."}).encode()


class Proxy:
    def __init__(self, upstream_url, seed=1):
        self.upstream = upstream_url.removeprefix("http://")
        self.stored = []  # checkpoints that DynamoDB has accepted; only grows
        self.requests = 0
        self.throttled = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._share, self._checkpoints_only = 0.0, True
        proxy = self

        class Handler(_Handler):
            def do_POST(self):
                self.forward(proxy)
        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def throttle(self, share, checkpoints_only=True):
        """From now on that share of the requests is refused; 0: none."""
        with self._lock:
            self._share, self._checkpoints_only = share, checkpoints_only

    def refuses(self, stored):
        with self._lock:
            self.requests += 1
            if self._checkpoints_only and stored is None:
                return False
            refused = self._random.random() < self._share
            self.throttled += refused
            return refused

    def ends(self, table):
        """{shard: when the request came in that stored its end}."""
        ends = {}
        for one in self.stored:
            if one.table == table and one.position.sequence == Position.parse("SHARD_END", 0).sequence:
                ends.setdefault(one.shard, one.time)
        return ends

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # a worker that was killed


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer in one write

    def setup(self):
        super().setup()
        self.upstream = None

    def finish(self):
        if self.upstream:
            self.upstream.close()
        super().finish()

    def log_message(self, *_):
        pass

    def forward(self, proxy):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        stored = _checkpoint_in(self.headers.get("X-Amz-Target", ""), body)
        if proxy.refuses(stored):
            self.answer(400, [("Content-Type", "application/x-amz-json-1.0")], _THROTTLED)
            return
        if self.upstream is None:
            self.upstream = http.client.HTTPConnection(proxy.upstream, timeout=60)
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("host", "connection", "expect", "accept-encoding")}
        headers["Host"] = self.headers["Host"]  # it is signed
        self.upstream.request("POST", self.path, body, headers)
        answer = self.upstream.getresponse()
        content = answer.read()
        if stored and answer.status == 200:
            proxy.stored.append(stored)
        self.answer(answer.status, [(name, value) for name, value in answer.getheaders()
                                    if name.lower() not in ("transfer-encoding", "connection",
                                                            "content-length", "date", "server")],
                    content)

    def answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()


def _checkpoint_in(target, body):
    """The checkpoint that a request stores, if it does."""
    if not target.endswith(".UpdateItem"):
        return None
    request = json.loads(body)
    updates = request.get("AttributeUpdates", {})
    if "checkpoint" not in updates or "leaseKey" not in request["Key"]:
        return None
    sub = updates.get("checkpointSubSequenceNumber", {}).get("Value", {}).get("N", "0")
    position = Position.parse(updates["checkpoint"]["Value"]["S"], sub)
    return Stored(time.monotonic_ns(), request["TableName"], request["Key"]["leaseKey"]["S"],
                  position)
