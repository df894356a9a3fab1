#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What became of each record, through kills, a split, a merge, retries, parked records and refused
checkpoints: all are processed or parked, and the figures in the text files are those of the run."""
import base64
import collections
import json
import os
import re
import signal
import time

from harness import settings
from harness.case import DaemonCase, main
from harness.journal import ACCOUNTED_ATTEMPTS, failures_of

SHARDS = 4
RECORDS_A_SECOND = 400
SAMPLE = re.compile(r'^(\w+)\{(.*)\} (\S+)$')
COUNTED = {"kclxx_batches_total": "batches", "kclxx_records_total": "records",
           "kclxx_record_bytes_total": "bytes", "kclxx_checkpoints_total": "checkpoints",
           "kclxx_record_duration_seconds_count": "attempts", "kclxx_retries_total": "retries",
           "kclxx_parked_records_total": "parked"}


def figures_of(text):
    """What a text file has, as a Counter; errors under their names."""
    figures = collections.Counter()
    for line in text.splitlines():
        sample = SAMPLE.match(line)
        if not sample:
            continue
        name, labels, value = sample.groups()
        if name in COUNTED:
            figures[COUNTED[name]] = int(value)
        elif name == "kclxx_checkpoint_errors_total":
            figures[re.search('error="([^"]*)"', labels)[1]] = int(value)
    return +figures


def of_dialogue(lines):
    """The counts after each line of a transcript, the last being those of all of it."""
    counts, asked = collections.Counter(), False
    yield +counts
    for entry in lines:
        line = entry.get("line")
        if not isinstance(line, dict):
            continue
        action = line.get("action")
        if asked and entry["from"] == "daemon":
            if action == "checkpoint":
                counts[line.get("error") or "checkpoints"] += 1
            else:
                counts["not answered"] += 1
            asked = False
        elif action == "checkpoint" and entry["from"] == "child":
            asked = True
        if action == "processRecords":
            counts["batches"] += 1
            counts["records"] += len(line["records"])
            counts["bytes"] += sum(len(base64.b64decode(one["data"] or "")) for one in line["records"])
        yield +counts
    if asked:  # the daemon died first
        yield +(counts + collections.Counter({"not answered": 1}))


def of_handler(journal):
    """The counts after each line of a journal."""
    counts = collections.Counter()
    yield +counts
    for event in journal.accounts:
        if event == "failed":
            counts["retries"] += 1
        if event in ("failed", "failed for good", "succeeded"):
            counts["attempts"] += 1
        if event == "parked":
            counts["parked"] += 1
        yield +counts


class Accounting(DaemonCase):
    def test_every_record_is_processed_or_parked(self):
        """1 % of the records fail for good, 5 % twice. A worker is killed, a shard split."""
        application = self.prepare(keys=100, aggregated=3)
        producer = application.producer
        self.start("first", 5000)
        self.start("second", 5000)
        application.wait_for_records({"first", "second"}, of="worker")
        victim = next(w for w in application.workers if w.name != application.leases.leader())
        at = time.monotonic_ns()
        taken = {j.shard for j in application.journals() if j.worker == victim.name and j.alive()}
        application.kill_worker(victim)
        split = next(shard for shard in application.stream.shards() if shard.id not in taken)
        application.stream.split(split)
        new = {shard.id for shard in application.stream.shards() if split.id in shard.parents}
        application.wait_for_records(taken | new, since=at)
        producer.stop()
        if producer.rounds % 2:
            producer.put_round()  # the shares are exact after two
        self.settle(application)
        self.figures(f"{settings.FORM}: {self.check_all_accounted(producer.put)}; kill -9 of a worker with "
                     f"{len(taken)} of {SHARDS} shards, a split", f"KCL {settings.KCL}")

    def check_all_accounted(self, put):
        """Returns what was seen."""
        application, journals = self.app, self.app.journals()
        always = {id for id in put if failures_of(id) == ACCOUNTED_ATTEMPTS}
        twice = {id for id in put if failures_of(id) == 2}
        self.assertEqual((len(always) * 100, len(twice) * 100), (len(put), len(put) * 5))
        self.check_starts(application)
        duplicates, _ = self.check(application, bounded=False, in_order=settings.FORM == "each")
        self.check_parked(application)
        for journal in journals:
            self.assert_none("records with more or fewer attempts than they need", [
                f"{record.id}: {journal.attempts[record.position]}" for record in journal.records
                if journal.attempts[record.position] != min(failures_of(record.id) + 1,
                                                            ACCOUNTED_ATTEMPTS)])
        return (f"{len(put)} records, {len(always)} that always fail, all parked, and {len(twice)} that "
                f"fail twice, all processed; none both, 0 lost, 0 out of order, no position stored "
                f"before what is up to it was done; {duplicates} duplicates")

    def test_the_text_files_add_up_to_what_happened(self):
        application = self.prepare()
        first = self.start("first")
        self.start("second")
        application.wait_for_records({"first", "second"}, of="worker")

        # The child of a shard is killed; its worker ends, and is started again.
        victim = next(j for j in application.journals() if j.worker == "first" and j.alive())
        application.expect_end(first)
        os.kill(victim.pid, signal.SIGKILL)
        first.process.wait()
        self.start("third")
        application.wait_for_records({"third"}, of="worker")

        stream = application.stream
        open_shards = [shard for shard in stream.shards() if shard.open]
        stream.split(open_shards[0])
        stream.merge(open_shards[1], open_shards[2])
        application.wait_for_records(shard.id for shard in stream.shards() if shard.parents)

        # Until a child hears of refused checkpoints.
        application.proxy.throttle(0.2, calls=0.6)
        application.wait_for("refused checkpoints", lambda: self.errors()["ThrottlingException"]
                             + self.errors()["KinesisClientLibDependencyException"] >= 2,
                             lambda: str(self.errors()), every=2)
        application.proxy.throttle(0)
        application.wait_until_processed()
        # kill -9 of a JVM: its children leave of themselves.
        second = next(worker for worker in application.workers if worker.name == "second")
        if second.alive():
            application.kill_worker(second)
        application.wait_until_processed()
        application.stop_worker(application.workers[-1])
        application.wait_for("the end of all children", lambda: not any(
            j.alive() for j in application.journals()))
        self.assert_accounts(victim)

    def prepare(self, **options):
        """Workers' programs and folders, and a producer at work."""
        self.app = application = self.application(SHARDS, proxy=self.proxy(), **options)
        (application.directory / "kclxx").symlink_to(settings.TOOL)
        application.producer.start(RECORDS_A_SECOND)
        return application

    def start(self, name, failover=15000):
        return self.app.start_worker(
            name, failoverTimeMillis=str(failover),
            executableName="./kclxx capture --output transcripts -- "
                           f"./accounted_child {settings.FORM} park journals metrics parked")

    def transcript(self, journal):
        [path] = (self.app.directory / "transcripts").glob(f"{journal.shard}.*-{journal.parent}-*.jsonl")
        entries = []
        for line in path.read_text().splitlines():
            try:
                entries.append(json.loads(line))
            except json.JSONDecodeError:  # the last one, when capture was killed
                pass
        return entries

    def metrics(self, journal):
        [path] = (self.app.directory / "metrics" / str(journal.pid)).glob("*.prom")
        return figures_of(path.read_text())

    def errors(self):
        """Of all files, by name."""
        total = collections.Counter()
        for path in (self.app.directory / "metrics").glob("*/*.prom"):
            total += figures_of(path.read_text())
        return total

    def assert_accounts(self, victim):
        journals = self.app.journals()
        written, happened = collections.Counter(), collections.Counter()
        handled = {"attempts", "retries", "parked"}
        for journal in journals:
            figures = self.metrics(journal)
            dialogue, handler = list(of_dialogue(self.transcript(journal))), list(of_handler(journal))
            mine = collections.Counter({k: v for k, v in figures.items() if k in handled})
            wire = collections.Counter({k: v for k, v in figures.items() if k not in handled})
            if journal.pid == victim.pid:
                # Its last file is what had happened at one moment.
                self.assertIn(mine, handler, journal)
                self.assertIn(wire, dialogue, journal)
                happened += mine + wire
            else:
                self.assertIsNotNone(journal.status, journal)
                self.assertEqual(mine, handler[-1], journal)
                self.assertEqual(wire, dialogue[-1], journal)
                happened += handler[-1] + dialogue[-1]
            written += figures
        self.assertEqual(written, happened)
        parked = sum(len(path.read_text().splitlines())
                     for path in (self.app.directory / "parked").glob("*.parked.jsonl"))
        missing = list(of_handler(next(j for j in journals if j.pid == victim.pid)))[-1]["parked"]
        self.assertEqual(parked - missing + self.metrics(victim)["parked"], written["parked"])
        for name in ("records", "checkpoints", "retries", "parked"):
            self.assertGreater(written[name], 0, name)
        self.figures(f"{len(journals)} children of {len(self.app.workers)} workers, one of them and one "
                     f"JVM killed with -9, a split, a merge: {dict(sorted(written.items()))}, equal in "
                     f"the text files and in what happened")


if __name__ == "__main__":
    main()
