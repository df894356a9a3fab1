# SPDX-License-Identifier: Apache-2.0
"""What is in front of DynamoDB and of Kinesis."""
import http.client
import http.server
import json
import os
import pathlib
import random
import sys
import threading
import time
import traceback
import typing
import urllib.request
import uuid
import zlib

from .journal import SHARD_END, Position
from .processes import Process
from waiting import SECONDS, wait_for


class Stored(typing.NamedTuple):
    time: int  # when the request came in, before DynamoDB had it
    table: str
    shard: str
    position: Position


_THROTTLED = json.dumps({
    "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "message": "The level of configured provisioned throughput for the table was exceeded.",
}).encode()


class Proxy:
    """Is in front of DynamoDB: sees when checkpoints are stored, and can throttle.

    Plain HTTP/1.1, a thread per connection. It changes nothing of what it passes on.
    """

    def __init__(self, upstream_url, seed=1):
        self.stored = []  # checkpoints that DynamoDB has accepted; only grows
        self.requests = 0
        self.throttled = 0  # of them
        self.failures = []  # of the proxy itself, with their traces; only grows
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._share, self._checkpoints_only = 0.0, True
        proxy = self

        class Handler(_Handler):
            address = upstream_url.removeprefix("http://")

            def do_POST(self):
                self.forward(proxy)
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.failures = self.failures
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def throttle(self, share, checkpoints_only=True):
        """From now on `share` of the requests is refused; 0: none. Which ones depends on the seed and
        on the order in which they come in."""
        with self._lock:
            self._share, self._checkpoints_only = share, checkpoints_only

    def refuses(self, stored):
        """Whether to refuse a request; `stored`: the checkpoint in it, if it is one."""
        with self._lock:
            self.requests += 1
            refused = bool(stored or not self._checkpoints_only) and self._random.random() < self._share
            self.throttled += refused
            return refused

    def accepted(self, stored):
        with self._lock:
            self.stored.append(stored)

    def stored_in(self, table):
        return [one for one in self.stored if one.table == table]

    def ends(self, table):
        """{shard: when the request came in that stored its end}."""
        ends = {}
        for one in self.stored_in(table):
            if one.position.sequence == SHARD_END.sequence:
                ends.setdefault(one.shard, one.time)
        return ends

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # a worker that was killed
            self.failures.append(traceback.format_exc().rstrip())


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer in one write

    def setup(self):
        super().setup()
        self.upstream = http.client.HTTPConnection(self.address, timeout=SECONDS)

    def finish(self):
        self.upstream.close()
        super().finish()

    def log_message(self, *_):
        pass

    def forward(self, proxy):
        body = self.body()
        stored = _checkpoint_in(self.headers.get("X-Amz-Target", ""), body)
        if proxy.refuses(stored):
            self.answer(400, [("Content-Type", "application/x-amz-json-1.0"),
                              ("x-amzn-RequestId", str(uuid.uuid4())),
                              ("x-amz-crc32", str(zlib.crc32(_THROTTLED)))], _THROTTLED)
            return
        answer, content = self.ask(body)
        if stored and answer.status == 200:
            proxy.accepted(stored)
        self.answer(answer.status, [(name, value) for name, value in answer.getheaders()
                                    if name.lower() not in ("transfer-encoding", "connection",
                                                            "content-length", "date", "server")],
                    content)

    def body(self):
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(int(length)) if length.isdigit() else b""
        if not length.isdigit() or len(body) < int(length):
            raise ConnectionResetError("the worker was killed within a request")
        return body

    def ask(self, body):
        """The answer of DynamoDB, and its body."""
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("host", "connection", "expect", "accept-encoding")}
        headers["Host"] = self.headers["Host"]  # it is signed
        while True:
            fresh = self.upstream.sock is None
            try:
                self.upstream.request("POST", self.path, body, headers)
                answer = self.upstream.getresponse()
                return answer, answer.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.upstream.close()
                if fresh:
                    raise
                # It was idle for so long that DynamoDB had closed it: that request it has not seen.

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


class KinesisProxy:
    """Is in front of Kinesis, and makes its faults: throttling, errors of KMS, iterators that expire, connections that are
    reset, slow answers, shards that are not listed any more."""

    def __init__(self, upstream_url, directory):
        program = pathlib.Path(__file__).with_name("kinesis_proxy.js")
        self._process = Process(["node", program, upstream_url], directory / "kinesis_proxy.log",
                                directory, dict(os.environ))

        def ready():
            assert self._process.alive(), self._process.log_text()
            return self._process.log_text().endswith("}\n")
        wait_for("the proxy before Kinesis", ready)
        ports = json.loads(self._process.log_text())
        self.url = f"http://127.0.0.1:{ports['proxy']}"
        self._control = f"http://127.0.0.1:{ports['control']}"

    def rules(self, *rules):
        """From now on these; see kinesis_proxy.js."""
        self._ask("/rules", json.dumps(rules).encode())

    def seen(self, operation, fault):
        """How often the fault was made."""
        return self._ask("/seen")["counts"].get(operation, {}).get(fault, 0)

    def failures(self):
        """Of the proxy itself, with their traces."""
        return self._ask("/seen")["failures"]

    def _ask(self, path, body=None):
        with urllib.request.urlopen(self._control + path, body, timeout=SECONDS) as answer:
            return json.load(answer)

    def close(self):
        self._process.end()
