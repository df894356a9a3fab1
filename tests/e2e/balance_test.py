#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Eight shards are shared among two workers; a third joins and leaves; nothing is lost."""
import time

from harness import settings
from harness.case import DaemonCase, main

SHARDS = 8
# The "within 60 s", and as much again for a machine that is busy with other things.
SECONDS = 120


class Balance(DaemonCase):
    def test_shares_move_when_workers_join_and_leave(self):
        self.app = self.application(SHARDS)
        producer = self.app.producer
        producer.start(800)
        self.start_worker("one")
        self.settled("all shards with the only worker", [SHARDS])
        beat = self.heartbeat()
        self.start_worker("two")
        joined, two = self.settled("an even split among two", [4, 4])
        third = self.start_worker("three")
        joined_again, three = self.settled("a split among three", [2, 3, 3])
        self.app.stop_worker(third)
        left, back = self.settled("an even split among those that are left", [4, 4])
        producer.stop()
        self.app.wait_until_processed()
        duplicates, bound = self.check(self.app)
        moves = len(self.app.journals()) - SHARDS
        self.figures(f"{len(producer.put)} records, {SHARDS} shards; each lease's "
                     f"counter rises, every {beat:.1f} s on average; a second worker joins: {two} "
                     f"after {joined:.1f} s; a third joins: {three} after {joined_again:.1f} s; it "
                     f"leaves: {back} after {left:.1f} s; leases moved {moves} times; 0 lost, "
                     f"{duplicates} duplicates (at most {bound} possible)")

    def start_worker(self, name):
        return self.app.start_worker(name, "--checkpoint-every", "300")

    def settled(self, what, even):
        """Waits until the shares are `even`, and each worker processes what it has; 3.x balances by
        throughput, so there none may have fewer than 2, a third worker 1.

        They must stay so for 3 s. Returns how long it took until then, and the shares.
        """
        started = time.monotonic()
        since = None

        def holds():
            nonlocal since
            shares = self.app.leases.shares()
            if self.is_good(shares, even) and self.processed_lately(shares):
                since = since or time.monotonic()
            else:
                since = None
            return since and time.monotonic() - since > 3 and shares
        shares = self.app.wait_for(what, holds, SECONDS, lambda: str(self.app.leases.shares()))
        return since - started, "/".join(str(share) for _, share in sorted(shares.items()))

    def heartbeat(self):
        """Until each lease was renewed four times, by the same owner. Returns the interval."""
        started, before = time.monotonic(), self.app.leases.read()

        def renewed():
            now = self.app.leases.read()
            rose = all(now[shard].counter >= lease.counter + 4 for shard, lease in before.items())
            return rose and now
        after = self.app.wait_for("renewed leases", renewed, 60,
                                  lambda: str(self.app.leases.read()))
        self.assertEqual({lease.owner for lease in after.values()}, {"one"})
        renewals = sum(after[shard].counter - lease.counter for shard, lease in before.items())
        return (time.monotonic() - started) * len(before) / renewals

    def is_good(self, shares, even):
        if settings.KCL < 3 or len(even) == 1:
            return sorted(shares.values()) == even
        least = 2 if len(even) == 2 else 1
        return (sum(shares.values()) == SHARDS and len(shares) == len(even)
                and min(shares.values()) >= least)

    def processed_lately(self, shares):
        """Whether each worker has, in the last 3 s, processed something of as many shards as it
        has."""
        now = time.monotonic_ns()
        flowing = {}
        for journal in self.app.journals():
            if journal.records and now - journal.records[-1].time < 3e9:
                flowing.setdefault(journal.worker, set()).add(journal.shard)
        return all(len(flowing.get(worker, ())) >= share for worker, share in shares.items())


if __name__ == "__main__":
    main()
