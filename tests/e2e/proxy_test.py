#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The proxy in front of DynamoDB: it changes nothing, refuses what it is asked to, and counts it."""
import http.client
import http.server
import json
import socket
import threading
import unittest
import zlib

from harness.journal import Position
from harness.proxy import Proxy


class Upstream:
    """Answers each request with its own body, and remembers what it was asked."""

    def __init__(self):
        upstream = self
        self.asked = []
        self.hang_up_after = None  # so many requests on a connection, without saying so

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                upstream.asked.append((dict(self.headers), body))
                self.send_response(418 if body == b"refuse" else 200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("x-amz-crc32", str(zlib.crc32(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()
                self.close_connection = upstream.hang_up_after == len(upstream.asked)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def checkpoint(sequence="100", shard="s"):
    return json.dumps({
        "TableName": "t", "Key": {"leaseKey": {"S": shard}},
        "AttributeUpdates": {"checkpoint": {"Value": {"S": sequence}, "Action": "PUT"}}}).encode()


class ProxyInFrontOfDynamoDB(unittest.TestCase):
    def setUp(self):
        self.upstream = Upstream()
        self.addCleanup(self.upstream.close)
        self.proxy = Proxy(self.upstream.url, seed=3)
        self.addCleanup(self.proxy.close)
        self.connection = http.client.HTTPConnection(self.proxy.url.removeprefix("http://"))
        self.addCleanup(self.connection.close)

    def ask(self, body, call="a", operation="UpdateItem"):
        self.connection.request("POST", "/", body, {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}", "amz-sdk-invocation-id": call})
        answer = self.connection.getresponse()
        return answer, answer.read()

    def test_bytes_pass_unchanged_over_one_connection(self):
        sockets = set()
        for operation, body in (("Scan", bytes(range(256))), ("Scan", b""), ("Scan", b"refuse"),
                                ("UpdateItem", checkpoint())):
            answer, content = self.ask(body, operation=operation)
            sockets.add(self.connection.sock)
            self.assertEqual((content, self.upstream.asked[-1][1]), (body, body))
            self.assertEqual(answer.status, 418 if body == b"refuse" else 200)
            self.assertEqual(answer.headers["x-amz-crc32"], str(zlib.crc32(body)))
        self.assertEqual(len(sockets), 1)
        self.assertEqual(self.upstream.asked[0][0]["X-Amz-Target"], "DynamoDB_20120810.Scan")
        self.assertEqual([one.position for one in self.proxy.stored], [Position(100, 0)])

    def test_a_connection_that_dynamodb_has_closed_is_opened_again(self):
        self.upstream.hang_up_after = 1
        for body in (b"one", b"two"):
            self.assertEqual(self.ask(body, operation="Scan")[1], body)

    def test_a_share_of_the_checkpoints_is_refused_and_counted(self):
        self.proxy.throttle(0.5)
        statuses = [self.ask(checkpoint(), call=str(i))[0].status for i in range(100)]
        self.assertEqual(set(statuses), {200, 400})
        self.assertEqual(self.proxy.throttled, statuses.count(400))
        self.assertEqual(len(self.proxy.stored), statuses.count(200))
        self.assertLess(abs(statuses.count(400) - 50), 25)
        for _ in range(20):
            self.assertEqual(self.ask(b"x", operation="Scan")[0].status, 200)
        self.proxy.throttle(0)
        self.assertEqual([self.ask(checkpoint())[0].status for _ in range(20)], [200] * 20)

    def test_a_refusal_has_the_form_of_dynamodbs(self):
        self.proxy.throttle(1)
        answer, content = self.ask(checkpoint())
        self.assertEqual((answer.status, answer.headers["Content-Type"]),
                         (400, "application/x-amz-json-1.0"))
        self.assertEqual(answer.headers["x-amz-crc32"], str(zlib.crc32(content)))
        self.assertTrue(json.loads(content)["__type"].endswith(
            "#ProvisionedThroughputExceededException"))

    def test_of_a_share_of_the_calls_every_request_is_refused(self):
        self.proxy.throttle(0, calls=0.5)
        tries = {str(i): [self.ask(checkpoint(), call=str(i))[0].status for _ in range(5)]
                 for i in range(40)}
        self.assertEqual({tuple(statuses) for statuses in tries.values()},
                         {(200,) * 5, (400,) * 5})
        for id, call in self.proxy.calls.items():
            self.assertEqual((call.requests, call.failed(), call.stored),
                             (5, tries[id][0] == 400, tries[id][0] == 200))
        refused = next(id for id, statuses in tries.items() if statuses[0] == 400)
        self.proxy.throttle(0)
        self.assertEqual(self.ask(checkpoint(), call=refused)[0].status, 200, "it is off again")
        self.assertFalse(self.proxy.calls[refused].failed())

    def test_all_requests_are_refused_only_when_that_is_asked_for(self):
        self.proxy.throttle(1, checkpoints_only=False)
        self.assertEqual(self.ask(b"x", operation="Scan")[0].status, 400)
        self.assertEqual(self.upstream.asked, [])

    def test_a_failure_of_its_own_is_kept(self):
        with self.assertRaises(ConnectionError):
            self.ask(b"{")  # no JSON
        [failure] = self.proxy.failures
        self.assertIn("JSONDecodeError", failure)

    def test_a_worker_that_is_killed_within_a_request_is_no_failure_of_the_proxy(self):
        request = (b"POST / HTTP/1.1\r\nContent-Length: 150\r\n"
                   b"X-Amz-Target: DynamoDB_20120810.UpdateItem\r\n\r\n" + checkpoint())
        address = self.proxy.url.removeprefix("http://").split(":")
        for length in range(len(request)):
            with socket.create_connection(address) as worker:
                worker.sendall(request[:length])
                worker.shutdown(socket.SHUT_WR)
                while worker.recv(4096):  # until the proxy has done with it
                    pass
        self.assertEqual((self.proxy.failures, self.upstream.asked), ([], []))


if __name__ == "__main__":
    unittest.main()
