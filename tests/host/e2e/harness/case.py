# SPDX-License-Identifier: Apache-2.0
"""The base of the tests: emulators, folders, figures, and nothing left behind."""
import base64
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from . import services, settings, verdict
from .application import Application
from .journal import ACCOUNTED_ATTEMPTS, ACCOUNTED_AT_ONCE, failures_of
from .proxy import KinesisProxy, Proxy

sys.path.insert(0, str(settings.SOURCE / "tests" / "docs"))
import pages  # noqa: E402


ACCOUNTED_METRICS = {"attempts": "kclxx_record_duration_seconds_count", "retries": "kclxx_retries_total",
                     "parked": "kclxx_parked_records_total"}


class DaemonCase(unittest.TestCase):
    services = None
    _own_services = None  # their directory, when no other process has started them
    folder = None  # of this program's run; removed when all went well
    _count = 0  # of its applications, of all tests

    @classmethod
    def setUpClass(cls):
        if DaemonCase.services is None:
            if not settings.SERVICES:
                DaemonCase._own_services = DaemonCase.folder / "emulators"
                services.start(DaemonCase._own_services, os.getpid())
            DaemonCase.services = services.Services(settings.SERVICES or DaemonCase._own_services)

    def setUp(self):
        self.started = time.monotonic()

    def proxy(self, seed=1):
        proxy = Proxy(self.services.dynamodb_url, seed)
        self.addCleanup(proxy.close)
        return proxy

    def kinesis_proxy(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="kinesis_proxy-", dir=DaemonCase.folder))
        proxy = KinesisProxy(self.services.kinesis_url, directory)
        self.addCleanup(proxy.close)
        return proxy

    def application(self, shards, **options):
        """A stream and a lease table of its own, also beside other tests on the same emulators."""
        DaemonCase._count += 1
        kcl = options.get("kcl", settings.KCL)
        name = f"{type(self).__name__}-{kcl}-{os.getpid()}-{self._count}".replace("_", "-")
        directory = DaemonCase.folder / f"{self._testMethodName}-{self._count}"
        directory.mkdir(parents=True)
        application = Application(self.services, directory, shards, name=name, **options)
        self.addCleanup(application.end)
        self.addCleanup(application.producer._stop.set)
        return application

    def check(self, application, *, bounded=True, in_order=True):
        """What holds whatever happened; returns (duplicates, the most there may be).

        `bounded`: the journals have the checkpoints. `in_order`: a child processes one by one."""
        put, journals = application.producer.put, application.journals()
        self.assert_none("lost records", verdict.lost(put, journals))
        self.assert_none("altered records", verdict.altered(put, journals))
        self.assert_none("records out of order within their key",
                         verdict.order_breaches(put, journals))
        if in_order:
            self.assert_none("steps back within a child", verdict.backward_steps(journals))
        self.assert_none("wrong starts", verdict.wrong_starts(journals))
        if application.proxy:
            self.assert_none("failures of the proxy", application.proxy.failures)
            self.assert_none("children of a reshard that began too early", verdict.early_children(
                journals, application.stream.parents(), application.proxy.ends(application.name)))
        if application.kinesis_proxy:
            self.assert_none("failures of Kinesis' proxy", application.kinesis_proxy.failures())
        duplicates = verdict.duplicates(journals)
        bound = verdict.duplicate_bound(journals)
        if bounded:
            self.assert_none("shards with too many duplicates",
                             verdict.excess_duplicates(journals))
        return duplicates, bound

    def settle(self, application):
        """Until all was processed, and the table has the last positions; no more records come."""
        application.wait_until_processed()

        def unsettled():
            return verdict.unsettled(application.journals(), application.leases.read())
        application.wait_for("the last positions", lambda: not unsettled(),
                             lambda: "; ".join(unsettled()))

    def check_parked(self, application):
        """Of accounted_child: parked is what always fails, and nothing else. Returns how many; needs the proxy."""
        journals = application.journals()
        self.assert_none("records that were both parked and processed", verdict.parked_and_processed(journals))
        self.assert_none("positions that were stored too early", verdict.stored_too_early(
            journals, application.proxy.stored_in(application.name)))
        lines = [json.loads(line) for path in (application.directory / "parked").glob("*.parked.jsonl")
                 for line in path.read_text().splitlines()]
        more = [line["attempts"] - ACCOUNTED_ATTEMPTS for line in lines]
        self.assertGreaterEqual(min(more), 0)
        self.assertLessEqual(sum(more), sum(journal.accounts["not_parked"] for journal in journals))
        parked = {base64.b64decode(line["data"]).decode().split(" ")[0] for line in lines}
        self.assertEqual(parked, {id for id in application.producer.put if failures_of(id) == ACCOUNTED_ATTEMPTS})
        return len(parked)

    def check_accounts(self, application):
        """Of accounted_child, a process for each shard: the metrics of those that have ended are what their journals
        have. Returns the sums."""
        sums = collections.Counter()
        for journal in application.journals():
            if journal.status is None:  # killed: its last file is older than it is
                continue
            [path] = (application.directory / "metrics" / str(journal.pid)).glob("kclxx.*.prom")
            written = {name: sum(map(int, re.findall(rf"^{metric}\{{.*\}} (\d+)$", path.read_text(), re.MULTILINE)))
                       for name, metric in ACCOUNTED_METRICS.items()}
            if settings.FORM == "gathering":
                del written["attempts"]  # each is of many records
            # What ends after the lease is no event; at the end of a shard nothing does.
            most = 0 if "shard_ended" in journal.events else ACCOUNTED_AT_ONCE[settings.FORM]
            for name in written.keys() - {"parked"}:
                late = journal.accounts[name] - written[name]
                self.assertIn(late, range(most + 1), f"{name} of {journal}")
                written[name] += late
            self.assertEqual(written, {name: journal.accounts[name] for name in written}, journal)
            sums += written
        return sums

    def check_asked_to_stop(self, application, shards):
        """Each child was asked to shut down, has left with 0, and its last position is stored."""
        journals = application.journals()
        self.assertEqual(len(journals), shards)
        for journal in journals:
            self.assertIn("shutdown_requested", journal.events, journal)
            self.assertEqual(journal.status, 0, journal)
        self.check_all_stored(application)

    def check_all_stored(self, application):
        self.assert_none("shards whose last position was not stored",
                         verdict.unsettled(application.journals(), application.leases.read()))

    def run_commands(self, application, page, title, which=0):
        """What is printed by those of a section of a page, which are for an application of the name `my-app`."""
        text = (settings.SOURCE / "docs" / "host" / page).read_text()
        section = re.search(rf"^## {title}\n(.*?)(?:^## |\Z)", text, re.DOTALL | re.MULTILINE)[1]
        commands = [block for _, block in pages.blocks(section, "sh")][which]
        commands = commands.replace("my-app", application.name)
        programs = application.directory / "bin"
        programs.mkdir(exist_ok=True)
        (programs / "aws").write_text(
            f"#!/bin/sh\nexec {shutil.which('aws')} --region us-east-1 --endpoint-url {application.dynamodb_url} \"$@\"\n")
        (programs / "aws").chmod(0o755)
        return subprocess.run(["sh", "-euc", commands], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}).stdout

    def assert_none(self, what, findings):
        if findings:
            lines = "\n  ".join(map(str, findings[:10]))
            self.fail(f"{len(findings)} {what}:\n  {lines}")

    def quote(self, log, text):
        """The last line of a daemon's log that has the text, in the test's output."""
        lines = [line for line in log.splitlines() if text in line]
        self.assertTrue(lines, f"no line of the log has {text!r}")
        print(f"LOG {lines[-1][:300]}", flush=True)

    def figures(self, text, daemons=f"KCL {settings.KCL}"):
        """The line with what was measured."""
        print(f"\nFIGURES {type(self).__name__}, {daemons}: {text}; "
              f"{time.monotonic() - self.started:.0f} s", flush=True)


def main():
    """Runs the tests of the program. On failure the logs and journals stay, and it prints where."""
    settings.RUNS.mkdir(parents=True, exist_ok=True)
    name = pathlib.Path(sys.argv[0]).stem
    DaemonCase.folder = pathlib.Path(
        tempfile.mkdtemp(prefix=f"{name}-kcl{settings.KCL}-", dir=settings.RUNS))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))  # so that cleanups run
    succeeded = False
    try:
        try:
            program = unittest.main(module="__main__", exit=False, verbosity=2)
        finally:
            if DaemonCase._own_services:
                services.stop(DaemonCase._own_services)
        succeeded = program.result.wasSuccessful()
    finally:
        if succeeded:
            shutil.rmtree(DaemonCase.folder)
        else:
            print(f"logs and journals: {DaemonCase.folder}", flush=True)
    sys.exit(not succeeded)
