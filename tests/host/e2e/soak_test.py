#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Chaos for as long as one likes, with kclxx/processing, kclxx-share and the metrics at work: no
record is lost, and the memory and the descriptors of a process that lives through it stay flat.

    soak_test.py [--kcl 3] [--seed 1] [--minutes 20]

One worker is spared, and the process that serves its shards is measured: the others are killed,
paused and stopped, so it gets shards and loses them for the whole time. Its records are tried, and
some parked, as accounted_child does.
"""
import os
import pathlib
import statistics
import time
import typing

from harness import settings
from harness.case import main

settings.SHARE, settings.FORM = True, "parallel"  # which chaos_test asks for
import chaos_test  # noqa: E402

EVERY = 2  # seconds between two samples
WARM_UP = 1 / 6  # of the time of a process: caches and arenas fill
SETTLED = 4  # samples with equally many shards, the last of which counts


class Sample(typing.NamedTuple):
    """Of the process that serves the shards of the spared worker."""

    time: float
    pid: int
    shards: int  # launchers that wait for it
    anonymous: int  # KiB
    descriptors: int
    threads: int


def number_of(text, name):
    [line] = [line for line in text.splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1])


class Soak(chaos_test.Chaos):
    records_a_second, records_a_minute = 60, 2000  # the local Kinesis gets slower with what it holds
    pause = (8, 24)

    def test_nothing_is_lost(self):
        """And what the process needs that lives through it does not grow."""
        self.samples = []
        calm = self.live_through_chaos()
        duplicates, _ = self.check(self.app, bounded=False, in_order=False)
        parked = self.check_parked(self.app)
        flat = self.check_flat()
        put = len(self.app.producer.put)
        self.figures(f"parallel, kclxx-share, metrics; seed {settings.SEED}, {settings.MINUTES:g} minutes, "
                     f"{put} records, {parked} of them parked; {self.happened()}; "
                     f"{len(self.app.journals())} sessions; all processed {calm:.0f} s after the last of "
                     f"it; 0 lost, 0 out of order, 0 both parked and processed, {duplicates} duplicates; "
                     f"{flat}")

    def start_worker(self):
        # Each shard's threads would get one of glibc's 16 arenas, and what is free in them looks like growth.
        self.app.environment["MALLOC_ARENA_MAX"] = "1"
        super().start_worker()

    def victims(self):
        return self.running[1:]  # the first is the oldest

    def tend(self):
        super().tend()
        if not self.samples or time.monotonic() >= self.samples[-1].time + EVERY:
            self.sample()

    def sample(self):
        spared = self.running[0]
        residents = spared.residents()
        if len(residents) != 1:
            return  # it has none yet
        [pid] = residents
        process = pathlib.Path(f"/proc/{pid}")
        try:
            rollup, status = (process / "smaps_rollup").read_text(), (process / "status").read_text()
            self.samples.append(Sample(
                time.monotonic(), pid, len(spared.children()), number_of(rollup, "Anonymous"),
                len(os.listdir(process / "fd")), number_of(status, "Threads")))
        except OSError:
            pass  # it has just ended

    def check_flat(self):
        """Compares the halves of the life of the process that lived longest, after its warm-up.

        It serves now more shards, now fewer: what is compared is the need with equally many, once their
        threads have begun.
        """
        lives = {}
        for recent in zip(*(self.samples[i:] for i in range(SETTLED))):
            if len({(sample.pid, sample.shards) for sample in recent}) == 1:
                lives.setdefault(recent[-1].pid, []).append(recent[-1])
        life = max(lives.values(), key=lambda life: life[-1].time - life[0].time)
        whole = life[-1].time - life[0].time
        self.assertGreater(whole, settings.MINUTES * 60 / 2, "no process has lived for half of the time")
        begin = life[0].time + WARM_UP * whole
        middle = (begin + life[-1].time) / 2
        halves = ([s for s in life if begin <= s.time < middle], [s for s in life if s.time >= middle])
        numbers = set.intersection(*({s.shards for s in half} for half in halves))
        # With few samples a median is that of a shard which just comes or goes.
        enough = [n for n in numbers if all(sum(s.shards == n for s in half) >= 12 for half in halves)]
        self.assertTrue(enough, "no number of shards was served for long in both halves")
        changes = []
        for number in sorted(enough):
            before, after = (Sample(*map(statistics.median, zip(*(s for s in half if s.shards == number))))
                             for half in halves)
            self.assertLessEqual(after.descriptors, before.descriptors, f"descriptors, {number} shards")
            self.assertLessEqual(after.threads, before.threads, f"threads, {number} shards")
            self.assertLessEqual(after.anonymous, before.anonymous * 1.1 + 256,
                                 f"KiB of anonymous memory, {number} shards")
            changes.append(f"{number} shards: {before.anonymous:.0f} and {after.anonymous:.0f} KiB, "
                           f"{before.descriptors:.0f} and {after.descriptors:.0f} descriptors, "
                           f"{before.threads:.0f} and {after.threads:.0f} threads")
        return (f"a process that lived {whole / 60:.0f} minutes, first and second half after its warm-up: "
                + "; ".join(changes))


if __name__ == "__main__":
    main()
