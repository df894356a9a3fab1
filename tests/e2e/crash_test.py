#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a worker and of a child in mid-stream: the other worker takes the shards over, from
the last position that is stored."""
import os
import signal
import time
import unittest

from harness import settings
from harness.case import DaemonCase, main

SHARDS = 4
CHECKPOINT_EVERY = 15  # seconds; far more than there are between batches on a busy machine
UNCONFIRMED = 50  # records that no checkpoint covers yet when something is killed


class Crash(DaemonCase):
    def test_a_killed_worker_is_replaced(self):
        """In 3.x a worker that does not assign the leases."""
        application = self.start()
        leader = application.leases.leader()
        victim = next(w for w in application.workers if w.name != leader)
        self.check_killed_worker(application, victim, "a worker", lambda: None)

    @unittest.skipIf(settings.KCL < 3, "no leader before 3.x")
    def test_a_killed_leader_is_replaced(self):
        application = self.start()
        leader = application.leases.leader()
        [victim] = [w for w in application.workers if w.name == leader]
        # Its lock would last two minutes.
        self.check_killed_worker(application, victim, "the leader, its lock deleted",
                                 application.leases.forget_leader)
        self.assertNotEqual(application.leases.leader(), leader)

    def check_killed_worker(self, application, victim, what, afterwards):
        children = self.wait_for_unconfirmed(application, victim)
        at = time.monotonic_ns()
        application.kill_worker(victim)
        afterwards()
        shards = {child.shard for child in children}
        seconds = self.wait_for_takeover(application, shards, at)
        # The end of their input made them leave, of themselves.
        application.wait_for("the end of its children",
                             lambda: not any(child.alive() for child in children))
        self.assertFalse([child for child in children if child.status is None])
        self.settle(application)
        self.assertNotIn(victim.name, application.leases.shares())
        self.figures(f"kill -9 of {what} with {len(shards)} of {SHARDS} shards: they flow again "
                     f"after {self.span(seconds.values())}; "
                     f"{self.verdicts(application, at, children)}")

    def test_a_killed_child_ends_its_worker(self):
        """The thread that waits for its answer calls System.exit. The shutdown hook asks all other
        children to shut down, and waits for that thread too, which never comes back: as a rule
        the daemon leaves when shutdownGraceMillis is over, with status 1, and renews the killed
        child's lease until then. A supervisor would start it again; the test does so when the
        other worker has taken over, to tell the two apart."""
        application = self.start()
        leader = application.leases.leader()
        worker = next(w for w in application.workers if w.name != leader)
        victim, *others = self.wait_for_unconfirmed(application, worker)
        others = {child.shard for child in others}
        application.expect_end(worker)
        at = time.monotonic_ns()
        os.kill(victim.pid, signal.SIGKILL)
        status = worker.process.wait()
        left = (time.monotonic_ns() - at) / 1e9
        self.assertEqual(status, 1)
        seconds = self.wait_for_takeover(application, others | {victim.shard}, at)
        again = application.start_worker("again", *self.OPTIONS)
        begun = time.monotonic()
        application.wait_for_records({again.name}, of="worker")
        back = time.monotonic() - begun
        self.settle(application)
        rest = (f", the worker's {len(others)} others after "
                f"{self.span([seconds[shard] for shard in others])}" if others else "")
        self.figures(f"kill -9 of a child: its worker leaves with status {status} after "
                     f"{left:.1f} s; the child's shard flows again after "
                     f"{seconds[victim.shard]:.1f} s{rest}; started again, it has "
                     f"shards {back:.1f} s later; {self.verdicts(application, at, [victim])}")

    OPTIONS = ("--checkpoint-every", str(CHECKPOINT_EVERY * 1000))

    def start(self):
        """Two workers in mid-stream, each with shards, whose leases they renew."""
        application = self.application(SHARDS, proxy=self.proxy())
        application.producer.start(600)
        for name in ("one", "two"):
            application.start_worker(name, *self.OPTIONS)

        def flows():
            alive = [j for j in application.journals() if j.alive() and len(j.records) > 100]
            return ({j.worker for j in alive} == {"one", "two"}
                    and {j.shard for j in alive} == set(application.leases.read()))
        application.wait_for("records of both workers", flows)
        self.wait_for_heartbeats(application)
        return application

    def wait_for_heartbeats(self, application):
        """Until the counter of each lease has risen without a checkpoint."""
        seen, beaten = application.leases.read(), set()

        def beat():
            for shard, lease in application.leases.read().items():
                if lease.checkpoint == seen[shard].checkpoint and \
                        lease.counter > seen[shard].counter:
                    beaten.add(shard)
                seen[shard] = lease
            return beaten == set(seen)
        application.wait_for("heartbeats", beat)

    def unconfirmed(self, journal):
        return sum(record.position > journal.confirmed() for record in journal.records)

    def wait_for_unconfirmed(self, application, worker):
        """The children of a worker, in a moment at which one has processed records that are not
        checkpointed, nor will be soon: so the kill makes others repeat something."""
        def is_between(journal):
            latest = max([journal.started] + [c.time for c in journal.checkpoints])
            return (journal.confirmed().sequence > 0  # no sentinel: there was a checkpoint
                    and time.monotonic_ns() - latest < CHECKPOINT_EVERY * 2 / 3 * 1e9
                    and self.unconfirmed(journal) >= UNCONFIRMED)

        def children():
            found = [j for j in application.journals() if j.worker == worker.name and j.alive()]
            found.sort(key=is_between, reverse=True)
            return found if found and is_between(found[0]) else None

        def seen():
            return "; ".join(f"{j}: {self.unconfirmed(j)} without a checkpoint"
                             for j in application.journals() if j.alive())
        return application.wait_for("records without a checkpoint", children, seen, 0.02)

    def wait_for_takeover(self, application, shards, at):
        """{shard: seconds from `at` to the first record that a new child processed}."""
        seconds = {}

        def flow():
            for j in application.journals():
                if j.started > at and j.records and j.shard in shards:
                    seconds.setdefault(j.shard, (j.records[0].time - at) / 1e9)
            return set(seconds) == shards
        application.wait_for("the killed one's shards", flow,
                             lambda: f"{sorted(shards - set(seconds))} do not flow")
        return seconds

    def verdicts(self, application, at, killed):
        self.check_starts(application)
        duplicates, bound = self.check(application)
        journals = application.journals()
        later = {record.id for j in journals if j.started > at for record in j.records}
        repeated = sum(record.id in later for j in killed for record in j.records)
        self.assertGreater(repeated, 0, "the kill did not come in mid-stream")
        begun = sum(j.started > at for j in journals)
        return (f"{len(application.producer.put)} records, {begun} children begun after it, each "
                f"exactly at the stored position; 0 lost, {duplicates} duplicates (at most {bound} "
                f"possible), {repeated} of them because of the kill, the others when leases moved")

    def span(self, seconds):
        seconds = sorted(seconds)
        return f"{seconds[0]:.1f} to {seconds[-1]:.1f} s"


if __name__ == "__main__":
    main()
