#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Random kills, pauses, reshards and throttling while records flow: nothing is lost. What happens
when is decided by a seed; what is hit then depends on the state of the moment too.

    chaos_test.py [--kcl 3] [--seed 1] [--minutes 2] [--share] [--form each|gathering|parallel]

With a form 1 % of the records fail for good, and 5 % twice: all are processed or parked, and the metrics are
what happened.

In less than a minute not everything can happen that must, and the test fails.
"""
import collections
import os
import random
import signal
import time

from harness import settings
from harness.case import DaemonCase, main

WORKERS = 3
AGGREGATED = 9  # so many user records are in every second Kinesis record
MOST_SHARDS, FEWEST_SHARDS = 8, 3
# What can happen, and how often within a bag of 16: each kind comes up.
ACTIONS = {"kill_worker": 3, "kill_child": 2, "stop_worker": 2, "pause_worker": 2, "split": 2,
           "merge": 2, "throttle": 3}
if settings.SHARE:
    ACTIONS["kill_resident"] = 2


class Chaos(DaemonCase):
    records_a_second, records_a_minute = 250, 10000  # put; so many at least
    pause = (2, 6)  # seconds between two actions

    def test_nothing_is_lost(self):
        calm = self.live_through_chaos()
        duplicates, bound = self.check(self.app, bounded=not settings.FORM, in_order=settings.FORM in (None, "each"))
        put = len(self.app.producer.put)
        failing = ""
        if settings.FORM:
            failing = f"{settings.FORM}, {self.check_parked(self.app)} records parked, none of them processed, "
            failing += f"metrics as in the journals: {dict(self.check_accounts(self.app))}; "
        shared = "one process for all shards of a worker, " if settings.SHARE else ""
        self.figures(f"{shared}{failing}seed {settings.SEED}, {settings.MINUTES:g} minutes, {put} records, most of "
                     f"them aggregated; {self.happened()}; "
                     f"{len(self.app.journals())} sessions; all processed {calm:.0f} s after the "
                     f"last of it; 0 lost, 0 out of order, 0 child shards early, {duplicates} "
                     f"duplicates (at most {bound} possible)")

    def live_through_chaos(self):
        """Returns how many seconds after the end of it all was processed."""
        self.random = random.Random(settings.SEED)
        self.app = self.application(4, proxy=self.proxy(settings.SEED), keys=60,
                                    aggregated=AGGREGATED)
        self.counts = collections.Counter()
        self.later = []  # (when, what is to be done then)
        self.leaving = []  # workers that got SIGTERM
        self.running = []
        self.app.producer.start(self.records_a_second)
        for _ in range(WORKERS):
            self.start_worker()
        self.app.wait_for("the first records", self.app.processed)
        self.rage(settings.MINUTES * 60)
        return self.calm_down()

    def happened(self):
        """How often each thing did, for the figures."""
        done = ", ".join(f"{name.replace('_', ' ')} {self.counts[name]}"
                         for name in [*ACTIONS, "exited on its own"])
        proxy = self.app.proxy
        return f"{done}; {proxy.throttled} of {proxy.requests} DynamoDB requests throttled"

    def rage(self, seconds):
        """For so long; longer until enough records were put, on a slow machine, and until it was
        chaos: each action has hit something, and DynamoDB has refused something."""
        end = time.monotonic() + seconds
        due, bag = time.monotonic(), []
        while time.monotonic() < end or self.missing():
            self.assertLess(time.monotonic(), end + 2 * seconds,
                            f"still missing: {', '.join(self.missing())}")
            self.tend()
            if time.monotonic() >= due:
                if not bag:
                    bag = [name for name, times in ACTIONS.items() for _ in range(times)]
                    self.random.shuffle(bag)
                action = bag.pop()
                if getattr(self, action)():
                    self.counts[action] += 1
                due = time.monotonic() + self.random.uniform(*self.pause)
            time.sleep(0.3)  # the pace of the loop; nothing is expected to be done then

    def missing(self):
        """What must have happened before the test may state that nothing was lost in spite of it."""
        missing = [name for name in ACTIONS if not self.counts[name]]
        if not self.app.proxy.throttled:
            missing.append("a DynamoDB request that was throttled")
        put, least = len(self.app.producer.put), settings.MINUTES * self.records_a_minute
        if put < least:
            missing.append(f"{least - put:.0f} records")
        return missing

    def tend(self):
        """What is due, and what a supervisor does: it starts workers again that have ended."""
        self.app.producer.check()
        for when, action in self.later[:]:
            if time.monotonic() >= when:
                self.later.remove((when, action))
                action()
        for worker in [worker for worker in self.running if not worker.alive()]:
            self.counts["exited on its own"] += 1
            self.replace(worker)
        # The lock of a leader that was killed lasts two minutes, which would be most of the test.
        if settings.KCL == 3:
            leader = self.app.leases.leader()
            if leader in (worker.name for worker in self.app.workers if not worker.alive()):
                self.app.leases.forget_leader()

    def calm_down(self):
        """Ends all disturbances; returns how long it then took until all was processed."""
        for _, action in self.later:
            action()
        self.later.clear()
        self.app.proxy.throttle(0)
        start = time.monotonic()
        self.app.wait_until_processed(self.tend)
        for worker in self.leaving:
            worker.process.wait()
        return time.monotonic() - start

    def start_worker(self):
        name = f"worker-{len(self.app.workers)}"
        if settings.FORM:
            worker = self.app.start_worker(
                name, executableName=f"./accounted_child {settings.FORM} journals metrics parked")
        else:
            worker = self.app.start_worker(name, "--checkpoint-every", "300", "--delay", "100")
        self.app.expect_end(worker)  # this test looks itself
        self.running.append(worker)

    def replace(self, worker):
        """`worker` has ended, or will. Another one comes."""
        self.running.remove(worker)
        self.start_worker()

    def victims(self):
        """The workers that can be hit."""
        return self.running

    # What can happen. Each returns whether it did.

    def kill_worker(self):
        worker = self.random.choice(self.victims())
        worker.kill()
        self.replace(worker)
        return True

    def kill_one_of(self, processes):
        if processes:
            try:
                os.kill(self.random.choice(sorted(processes)), signal.SIGKILL)
            except ProcessLookupError:
                return False  # it has just left
        return bool(processes)

    def kill_child(self):
        """The daemon then ends the whole worker; `tend` starts another one."""
        return self.kill_one_of([pid for worker in self.victims() for pid in worker.children()])

    def kill_resident(self):
        """All launchers of the worker then leave, and the daemon ends the worker."""
        return self.kill_one_of([pid for worker in self.victims() for pid in worker.residents()])

    def stop_worker(self):
        worker = self.random.choice(self.victims())
        worker.process.signal(signal.SIGTERM)
        self.leaving.append(worker)
        self.replace(worker)
        return True

    def pause_worker(self):
        """For longer than it takes to lose its leases: it comes back as one that does not know."""
        worker = self.random.choice(self.victims())
        worker.process.signal(signal.SIGSTOP)

        def go_on():
            if worker.alive():
                worker.process.signal(signal.SIGCONT)
        self.later.append((time.monotonic() + self.random.uniform(3, 8), go_on))
        return True

    def split(self):
        shards = [shard for shard in self.app.stream.shards() if shard.open]
        shard = self.random.choice(shards)
        if len(shards) < MOST_SHARDS:
            self.app.stream.split(shard)
        return len(shards) < MOST_SHARDS

    def merge(self):
        shards = sorted((shard for shard in self.app.stream.shards() if shard.open),
                        key=lambda shard: shard.low)
        low = self.random.randrange(len(shards) - 1)
        if len(shards) > FEWEST_SHARDS:
            self.app.stream.merge(shards[low], shards[low + 1])
        return len(shards) > FEWEST_SHARDS

    def throttle(self):
        checkpoints_only = self.random.random() < 0.5
        share = self.random.uniform(0.5, 1) if checkpoints_only else self.random.uniform(0.1, 0.5)
        self.app.proxy.throttle(share, checkpoints_only)
        self.later.append((time.monotonic() + self.random.uniform(3, 8),
                           lambda: self.app.proxy.throttle(0)))
        return True


if __name__ == "__main__":
    main()
