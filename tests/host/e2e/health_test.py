#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""kclxx health is red for handlers that are stuck, and never for lag; then a handler asks the worker to stop, and
every child stores its last position."""
import re
import subprocess
import time

from harness import settings
from harness.case import DaemonCase, main

SHARDS = 4
STUCK_AFTER = 5  # seconds
LAG = 10  # seconds
BEHIND = re.compile(r"^kclxx_behind_latest_seconds{.*} (\S+)$", re.MULTILINE)


class Health(DaemonCase):
    def test_health_is_red_for_a_stuck_handler_alone_and_a_handler_stops_the_worker(self):
        application = self.application(SHARDS)
        self.metrics, signs = application.directory / "metrics", application.directory / "signs"
        signs.mkdir()
        application.environment["KCLXX_METRICS_DIR"] = str(self.metrics)
        self.assertEqual(self.health()[0], 0)  # no shard so far
        # 20 records a second and shard, of 100 that come.
        application.producer.start(400)
        worker = application.start_worker("first", "--automatic", "3600000", "--delay", "50000", "--signs",
                                          str(signs), maxRecords="10")
        self.always_alive(application, "lag", lambda: len(self.lags()) == SHARDS and min(self.lags()) > LAG)
        lag = min(self.lags())

        (signs / "stuck").touch()
        begun = time.monotonic()
        application.wait_for("red health", lambda: self.health()[0] == 1 and len(self.health()[1]) == SHARDS,
                             lambda: str(self.health()))
        red = time.monotonic() - begun
        for line in self.health()[1]:
            self.assertRegex(line, r"/kclxx\..*\.prom: shardId-\d+ is stuck: a handler or callback of process \d+ ")
        (signs / "stuck").unlink()
        application.wait_for("green health", lambda: self.health()[0] == 0, lambda: str(self.health()))

        application.expect_end(worker)
        application.producer.stop()
        (signs / "stop").touch()
        begun = time.monotonic()
        self.assertEqual(worker.process.wait(), 143)
        left = time.monotonic() - begun
        self.check_asked_to_stop(application, SHARDS)
        self.assertIn(", is asked to stop: all shards of this worker end", worker.process.log_text())
        self.figures(f"alive while all shards are {lag:.0f} s and more behind, red {red:.0f} s after the handlers "
                     f"are stuck; request_worker_stop to exit {left:.1f} s, {SHARDS} of {SHARDS} children stored "
                     f"their last position")

    def health(self):
        run = subprocess.run([settings.TOOL, "health", self.metrics, "--stuck-after", str(STUCK_AFTER), "--allow-empty"],
                             stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        return run.returncode, run.stdout.splitlines()

    def always_alive(self, application, what, condition):
        def checked():
            self.assertEqual(self.health()[0], 0, self.health()[1])
            return condition()
        application.wait_for(what, checked, lambda: str(self.lags()), every=1)

    def lags(self):
        return [float(BEHIND.search(file.read_text())[1]) for file in self.metrics.glob("kclxx.*.prom")]


if __name__ == "__main__":
    main()
