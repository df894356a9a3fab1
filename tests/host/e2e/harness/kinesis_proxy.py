# SPDX-License-Identifier: Apache-2.0
"""Is in front of Kinesis, and makes its faults: throttling, errors of KMS, iterators that expire,
connections that are reset, slow answers, shards that are not listed any more."""
import json
import os
import pathlib
import urllib.request

from .processes import Process
from waiting import SECONDS, wait_for


class KinesisProxy:
    def __init__(self, upstream_url, directory):
        program = pathlib.Path(__file__).with_suffix(".js")
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
