# SPDX-License-Identifier: Apache-2.0
"""The text files, the alert rules and the dashboard, with Debian's promtool, node_exporter and Prometheus.

usage: monitoring_test.py CHILD    a child that accepts any batch
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import dialogue  # noqa: E402
from waiting import SECONDS, wait_for  # noqa: E402

CHILD = None
MONITORING = pathlib.Path(__file__).resolve().parents[2] / "docs" / "host" / "monitoring"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(port, path, **parameters):
    query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}{query}", timeout=SECONDS) as answer:
        return answer.read().decode()


def answers(port, path):
    try:
        return get(port, path) is not None
    except (OSError, urllib.error.URLError):
        return False


class Child(dialogue.Child):
    def __init__(self, shard, directory, *arguments, **environment):
        variables = dict(os.environ, KCLXX_METRICS_DIR=str(directory), KCLXX_APPLICATION_NAME="billing",
                         KCLXX_STREAM_NAME="orders")
        variables.update(environment)
        self.sequence = 1
        super().__init__([CHILD, *arguments], shard, variables, subprocess.PIPE)

    def deliver(self, count):
        self.call(self.batch(["0123456789"] * count, self.sequence, 1500))
        self.sequence += count

    def end(self):
        self.process.stdin.close()
        with self.process.stderr:
            self.log = self.process.stderr.read()
        return super().end()

    def die(self):
        """The daemon breaks off in a line: the child leaves with a status that is not 0."""
        self.process.stdin.write("{")
        return self.end()


class Monitoring(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.work = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.metrics = self.work / "metrics"
        self.metrics.mkdir()

    def start(self, name, *arguments):
        log = self.stack.enter_context(open(self.work / f"{name}.log", "w"))
        process = subprocess.Popen([name, *arguments], stdout=log, stderr=log)

        def end():
            process.terminate()
            process.wait(SECONDS)

        self.stack.callback(end)
        return process

    def node_exporter(self):
        port = free_port()
        self.start("prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                   f"--collector.textfile.directory={self.metrics}", f"--web.listen-address=127.0.0.1:{port}")
        wait_for("node_exporter answers", lambda: answers(port, "/metrics"))
        return port

    def scraped(self):
        """What node_exporter makes of the files, each of which promtool accepts."""
        for name in self.names():
            checked = subprocess.run(["promtool", "check", "metrics"], input=(self.metrics / name).read_text(),
                                     capture_output=True, text=True, check=False)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))
        lines = get(self.node_exporter(), "/metrics").splitlines()
        self.assertIn("node_textfile_scrape_error 0", lines)
        return lines

    def names(self):
        return sorted(path.name for path in self.metrics.iterdir())

    def test_promtool_and_node_exporter_accept_the_files(self):
        for shard in range(2):
            child = Child(f"shardId-{shard}", self.metrics)
            child.deliver(3)
            child.deliver(2)
            child.call({"action": "shutdownRequested"}, ["ThrottlingException"])
            self.assertEqual(child.die(), 12)
        scraped = self.scraped()
        for shard in range(2):
            labels = f'application="billing",shard="shardId-{shard}",stream="orders"'
            self.assertIn(f"kclxx_records_total{{{labels}}} 5", scraped)
            self.assertIn(f"kclxx_record_bytes_total{{{labels}}} 50", scraped)
            self.assertIn(f"kclxx_batches_total{{{labels}}} 2", scraped)
            self.assertIn(f"kclxx_behind_latest_seconds{{{labels}}} 1.5", scraped)
            self.assertTrue(any(line.startswith('kclxx_checkpoint_errors_total{application="billing",'
                                                'error="ThrottlingException",' + f'shard="shardId-{shard}"')
                                and line.endswith(" 1") for line in scraped))
        times = [line for line in scraped if line.startswith("node_textfile_mtime_seconds{")]
        self.assertEqual(len(times), 3)  # of two shards, and of the leases
        stream = 'application="billing",'
        self.assertIn(f'kclxx_leases_gained_total{{{stream}stream="orders"}} 2', scraped)
        self.assertIn(f'kclxx_leases_ended_total{{{stream}reason="failed",stream="orders"}} 2', scraped)
        self.assertIn(f'kclxx_leases_ended_total{{{stream}reason="lost",stream="orders"}} 0', scraped)

    def test_node_exporter_accepts_the_own_figures_of_one_program_on_two_streams(self):
        streams = (("billing", "orders"), ("billing-eu", "orders-eu"))
        for application, stream in streams:
            child = Child("shardId-0", self.metrics, "own_metrics", KCLXX_APPLICATION_NAME=application,
                          KCLXX_STREAM_NAME=stream)
            child.deliver(1)
            self.assertEqual(child.die(), 12)
            self.assertEqual(child.log.count("is left out"), 2, child.log)
        scraped = self.scraped()
        for application, stream in streams:
            own, last = f'application="{application}",', f'shard="shardId-0",stream="{stream}"'
            self.assertIn(f"clicks_total{{{own}" + r'page="a \"quoted\"\nline \\",' + f"{last}}} 5", scraped)
            self.assertIn(f"queue_depth{{{own}{last}}} NaN", scraped)
            self.assertTrue(any(line.startswith(f"kclxx_process_id{{{own}{last}}}") for line in scraped))
        self.assertNotIn("was collected before", (self.work / "prometheus-node-exporter.log").read_text())

    def test_an_observer_that_hangs_or_throws_changes_nothing_for_the_daemon(self):
        for argument, logged in (("hanging_observer", "an observer, or the directory of the metrics, took too long"),
                                 ("throwing_observer", "an observer failed: no disk (logged once)")):
            child = Child("shardId-7", self.metrics, argument)
            for _ in range(100):
                child.deliver(3)
            child.call({"action": "shardEnded"})
            self.assertEqual(child.end(), 0)
            self.assertEqual(child.log.count(logged), 1, child.log)
            self.assertEqual(self.names(), ["kclxx-leases.billing.orders.prom"])

    def test_the_alert_rules_are_right(self):
        for arguments in (["check", "rules", MONITORING / "kclxx-alerts.yml"],
                          ["test", "rules", pathlib.Path(__file__).with_name("alerts_test.yml")]):
            checked = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_prometheus_answers_each_query_of_the_dashboard(self):
        children = [Child(f"shardId-{i}", self.metrics, "fast_metrics") for i in range(2)]
        exporter = self.node_exporter()
        configuration = self.work / "prometheus.yml"
        configuration.write_text(f"""
global: {{ scrape_interval: 500ms, evaluation_interval: 500ms }}
rule_files: ["{MONITORING / 'kclxx-alerts.yml'}"]
scrape_configs:
  - job_name: node
    static_configs: [{{ targets: ["127.0.0.1:{exporter}"] }}]
""")
        port = free_port()
        self.start("prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={self.work / 'tsdb'}",
                   f"--web.listen-address=127.0.0.1:{port}")
        wait_for("Prometheus is ready", lambda: answers(port, "/-/ready"))

        def query(expression):
            expression = expression.replace("$application", ".*").replace("$__rate_interval", "10s")
            result = json.loads(get(port, "/api/v1/query", query=expression))
            self.assertEqual(result["status"], "success", expression)
            return result["data"]["result"]

        def has_rate():
            for child in children:
                child.deliver(1)
            return len(query("rate(kclxx_records_total[10s]) > 0")) == 2

        wait_for("Prometheus has a rate for two shards", has_rate)
        self.assertNotIn("kclxx_worker", get(port, "/api/v1/label/__name__/values"))
        dashboard = json.loads((MONITORING / "kclxx-dashboard.json").read_text())
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertGreater(len(queries), 15)
        for expression in queries:
            result = query(expression)
            # What is filtered by its value has nothing to show when all is well.
            if not re.search(r" > 0$", expression):
                self.assertTrue(result, expression)
        rules = json.loads(get(port, "/api/v1/rules"))["data"]["groups"][0]["rules"]
        self.assertEqual([rule["health"] for rule in rules], ["ok"] * 6)
        for child in children:
            self.assertEqual(child.end(), 0)


if __name__ == "__main__":
    CHILD = sys.argv.pop(1)
    for program in ("promtool", "prometheus", "prometheus-node-exporter"):
        if shutil.which(program) is None:
            sys.exit(f"monitoring_test: {program} is missing: apt-get install prometheus prometheus-node-exporter")
    unittest.main(verbosity=2)
