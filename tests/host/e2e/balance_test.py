#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Eight shards are shared among two workers; a third joins and leaves; nothing is lost. 2.x
balance the number of leases; 3.x balances load, so there each worker has at least one."""
import time

from harness import settings
from harness.case import DaemonCase, main

SHARDS = 8


class Balance(DaemonCase):
    def test_shares_move_when_workers_join_and_leave(self):
        self.app = self.application(SHARDS)
        producer = self.app.producer
        producer.start(800)
        self.start_worker("one")
        self.settled("all shards with the only worker", [SHARDS])
        beat = self.heartbeat()
        self.start_worker("two")
        joined, two = self.settled("shares of two", [4, 4])
        third = self.start_worker("three")
        joined_again, three = self.settled("shares of three", [2, 3, 3])
        self.app.stop_worker(third)
        left, back = self.settled("shares of those that are left", [4, 4])
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
        """Waits until each shard has an owner, and the shares are `even` if leases are counted.

        They must stay so until each worker has processed records of as many shards as it has.
        Returns how long it took until they were so, and the shares.
        """
        started = time.monotonic_ns()
        since, settled = started, {}

        def holds():
            nonlocal since, settled
            shares = self.app.leases.shares()
            if shares != settled:
                since, settled = time.monotonic_ns(), shares
            return self.is_good(shares, even) and self.flow(shares, since)
        self.app.wait_for(what, holds, lambda: str(self.app.leases.shares()))
        return (since - started) / 1e9, "/".join(str(share) for _, share in sorted(settled.items()))

    def heartbeat(self):
        """Until each lease was renewed four times, by the same owner. Returns the interval."""
        started, before = time.monotonic(), self.app.leases.read()

        def renewed():
            now = self.app.leases.read()
            rose = all(now[shard].counter >= lease.counter + 4 for shard, lease in before.items())
            return rose and now
        after = self.app.wait_for("renewed leases", renewed, lambda: str(self.app.leases.read()))
        self.assertEqual({lease.owner for lease in after.values()}, {"one"})
        renewals = sum(after[shard].counter - lease.counter for shard, lease in before.items())
        return (time.monotonic() - started) * len(before) / renewals

    def is_good(self, shares, even):
        if settings.KCL < 3:
            return sorted(shares.values()) == even
        return sum(shares.values()) == SHARDS and len(shares) == len(even)

    def flow(self, shares, since):
        """Whether each worker has processed something since then of as many shards as it has."""
        flowing = {}
        for journal in self.app.journals():
            if journal.records and journal.records[-1].time > since:
                flowing.setdefault(journal.worker, set()).add(journal.shard)
        return all(len(flowing.get(worker, ())) >= share for worker, share in shares.items())


if __name__ == "__main__":
    main()
