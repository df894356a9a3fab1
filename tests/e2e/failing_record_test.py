#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What one record costs that fails without end: without max_attempts its shard, or with parallel its
key, waits alone; with bad_record::stop the worker ends, and others take its shards over, or wait for
the lock of 3.x's leader."""
import collections
import time
import typing

from harness import settings
from harness.case import DaemonCase, main
from harness.journal import Position

SHARDS = 4
RECORDS_A_SECOND = 400
KEY = "key-7"
WAIT = 10  # seconds
MANY = 200  # records that each of the other shards processes meanwhile
WINDOW = 200  # accounted_child's window_records


class Held(typing.NamedTuple):
    """The record that fails."""

    shard: str
    position: Position
    number: int  # of its key


class FailingRecord(DaemonCase):
    def test_a_record_that_is_tried_without_end_holds_its_shard_alone(self):
        # On a busy machine its lease is not to expire, nor the daemon's patience to end.
        worker, held = self.start_and_hold("retry", failoverTimeMillis="10000", timeoutInSeconds="600")
        begun, before = time.monotonic(), self.counts()
        counter = self.app.leases.read()[held.shard].counter
        others = set(before) - {held.shard}
        self.app.wait_for("records of the other shards", lambda: (
            time.monotonic() - begun > WAIT and all(
                self.counts()[shard] - before[shard] > MANY for shard in others)),
                          lambda: f"{before}, now {self.counts()}")
        waited, after = time.monotonic() - begun, self.counts()
        lease = self.app.leases.read()[held.shard]
        self.assertEqual(lease.owner, worker.name)
        self.assertGreater(lease.counter, counter)
        # What comes before the record is stored, and nothing that comes after it.
        self.wait_for_stored(held)
        ids = {record.id for journal in self.app.journals() for record in journal.records}
        self.assertFalse(ids & {f"{KEY}:{number}" for number in range(held.number, 10_000)})
        if settings.FORM == "each":
            self.assertEqual(after[held.shard], before[held.shard])
        else:
            # Of other keys, until the window is full.
            later = [r for r in self.journal(held.shard).records if r.position > held.position]
            self.assertGreater(len(later), 0)
            self.assertLess(len(later), WINDOW)
        attempts = self.journal(held.shard).attempts[held.position]
        self.assertTrue(worker.alive())

        released = time.monotonic()
        self.release()
        self.settle(self.app)
        caught_up = time.monotonic() - released
        self.assertEqual(len(self.app.journals()), SHARDS, "no child was started again")
        duplicates, _ = self.check(self.app, bounded=False, in_order=settings.FORM == "each")
        self.assertEqual(duplicates, 0)
        done = [after[shard] - before[shard] for shard in sorted(others)]
        self.figures(f"without max_attempts, {settings.FORM}: a record fails for {waited:.0f} s, {attempts} attempts; "
                     f"its shard processes {after[held.shard] - before[held.shard]} records meanwhile, the "
                     f"others {min(done)} to {max(done)} each; its lease is renewed, what precedes it is "
                     f"stored; after its success all is processed within {caught_up:.1f} s; 0 lost, "
                     f"0 duplicates")

    def test_a_stop_of_the_worker_waits_for_the_record(self):
        """Nothing can be asked of a child whose callback is open."""
        worker, held = self.start_and_hold("retry")
        self.wait_for_stored(held)
        seconds = self.app.stop_worker(worker)
        flows = self.restart(held, "another", "retry")
        self.figures(f"SIGTERM while a record is tried without end, {settings.FORM}, a single worker: "
                     f"it leaves after {seconds:.1f} s (shutdownGraceMillis is 15 s); started again at "
                     f"once with another workerId, it begins at that record, and all shards flow "
                     f"{flows:.0f} s later; 0 lost")

    def test_a_bad_record_stops_the_worker(self):
        """A single worker, which is 3.x's leader; a supervisor starts it again at once."""
        for again in ("one", "another"):
            with self.subTest(workerId=again):
                worker, held = self.start_and_hold("stop")
                failed = time.monotonic()
                status = worker.process.wait()
                left = time.monotonic() - failed
                self.assertEqual(status, 1)
                self.assertEqual(self.journal(held.shard).status, 10)
                self.wait_for_stored(held)
                flows = self.restart(held, again, "stop")
                self.figures(f"bad_record::stop, {settings.FORM}, a single worker: the child leaves with 10, "
                             f"the worker with {status} after {left:.1f} s; started again at once with "
                             f"{'the same' if again == worker.name else 'another'} workerId, it begins at "
                             f"that record, and all shards flow {flows:.0f} s later; 0 lost")

    def restart(self, held, name, policy):
        """Starts a worker, with the record no longer refused; seconds until all shards flow."""
        self.release()
        at = time.monotonic_ns()
        self.app.producer.stop()
        self.app.producer.put_round()
        begun = time.monotonic()
        self.start(name, policy)
        self.app.wait_for("records of all shards", lambda: SHARDS == len(
            {j.shard for j in self.app.journals() if j.started > at and j.records}))
        seconds = time.monotonic() - begun
        self.settle(self.app)
        first = next(j for j in self.app.journals() if j.started > at and j.shard == held.shard)
        self.assertEqual(first.records[0].id, f"{KEY}:{held.number}")
        self.check(self.app, bounded=False, in_order=settings.FORM == "each")
        self.app.kill_worker(self.app.workers[-1])
        return seconds

    def start_and_hold(self, policy, **properties):
        """Lets a record of a worker in mid-stream fail. Returns the worker and what is held."""
        self.app = application = self.application(SHARDS, proxy=self.proxy())
        application.producer.start(RECORDS_A_SECOND)
        worker = self.start("one", policy, **properties)
        application.wait_for_records(application.stream.parents())
        if policy == "stop":
            application.expect_end(worker)
        number = application.producer.rounds + 6  # it is not put yet
        self.refuse(f"{KEY}:{number}")
        [held] = application.wait_for("failures of the record", lambda: [
            Held(j.shard, position, number) for j in application.journals()
            for position in j.failing])
        return worker, held

    def refuse(self, id):
        (self.app.directory / "new").write_text(id + "\n")
        (self.app.directory / "new").rename(self.app.directory / "refused")

    def release(self):
        (self.app.directory / "refused").unlink()

    def counts(self):
        """{shard: how many of its records were processed}."""
        counts = collections.Counter()
        for journal in self.app.journals():
            counts[journal.shard] += len(journal.records)
        return counts

    def journal(self, shard):
        """Of its first child."""
        return next(j for j in self.app.journals() if j.shard == shard)

    def wait_for_stored(self, held):
        """Until what comes before the record is stored; nothing that comes after it ever is."""
        def stored():
            return self.app.leases.read()[held.shard].checkpoint

        def before():
            return max(r.position for r in self.journal(held.shard).records
                       if r.position < held.position)
        self.app.wait_for("the position before the record", lambda: stored() == before(),
                          lambda: f"{before()} was processed, {stored()} is stored")

    def start(self, name, policy, **properties):
        return self.app.start_worker(
            name, executableName=f"./accounted_child {settings.FORM} {policy} journals metrics parked",
            **properties)


if __name__ == "__main__":
    main()
