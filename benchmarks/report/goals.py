# SPDX-License-Identifier: Apache-2.0
"""What kclxx is held to, as figures of one run."""
from dataclasses import dataclass

from run import FLOORS
from workloads import (CPU_BATCH, CPU_GB, IDLE, OWN_SHARD, P50, PAYLOAD, PEAK_LINE, RATE, SETTLED, SHARD_START,
                       START)

US = "kclxx"
SHARED = "kclxx-shared"
NOT_OTHERS = (US, SHARED, "kclxx-waited", "kclxx-each", "kclxx-static", "print_records", *FLOORS)


class NotMeasured(Exception):
    pass


@dataclass(frozen=True)
class Goal:
    text: str
    bound: float
    value: callable  # of all summaries
    at_least: bool = False
    digits: int = 2

    def judged(self, summaries):
        """The row of the table; None when the run lacks a figure for it."""
        try:
            value = self.value(summaries)
        except NotMeasured:
            return None
        reached = value >= self.bound if self.at_least else value <= self.bound
        sign = "≥" if self.at_least else "≤"
        return {"goal": self.text, "bound": f"{sign} {self.bound:g}", "value": f"{value:.{self.digits}f}",
                "reached": reached}


def _figure(summaries, workload, client, figure, key):
    try:
        return summaries[workload][client][figure.key][key]
    except KeyError:
        raise NotMeasured from None


def value(workload, figure, client=US):
    return lambda summaries: _figure(summaries, workload, client, figure, "value")


def to_floor(workload, figure, client=US):
    return lambda summaries: _figure(summaries, workload, client, figure, "ratio")


def to_client(workload, figure, client):
    return lambda summaries: value(workload, figure)(summaries) / _figure(summaries, workload, client, figure, "value")


def to_us(workload, figure, client):
    return lambda summaries: _figure(summaries, workload, client, figure, "value") / value(workload, figure)(summaries)


def more_than_us(workload, figure, client):
    return lambda summaries: _figure(summaries, workload, client, figure, "value") - value(workload, figure)(summaries)


def to_best_other(workload, figure):
    def ratio(summaries):
        others = [name for name in summaries.get(workload, {}) if name not in NOT_OTHERS]
        if not others:
            raise NotMeasured
        return max(to_client(workload, figure, name)(summaries) for name in others)
    return ratio


def given_back(summaries):
    return value("D", SETTLED)(summaries) / value("E", IDLE)(summaries)


GOALS = [
    Goal("A: records/s ÷ the floor's", 0.5, to_floor("A", RATE), at_least=True),
    Goal("A: records/s ÷ the Rust client's", 3, to_client("A", RATE, "rust"), at_least=True),
    Goal("A1: CPU time ÷ the floor's", 2.3, to_floor("A1", CPU_GB)),
    Goal("B1: CPU time ÷ the floor's", 1.7, to_floor("B1", CPU_GB)),
    Goal("D1: CPU time ÷ the floor's", 1.5, to_floor("D1", CPU_GB)),
    Goal("D1: payload/s ÷ the floor's", 0.7, to_floor("D1", PAYLOAD), at_least=True),
    Goal("A1: CPU time of each() ÷ that of a loop over the batch", 1.1, to_us("A1", CPU_GB, "kclxx-each")),
    Goal("B: CPU time ÷ the floor's", 2.1, to_floor("B", CPU_GB)),
    Goal("B: CPU time ÷ the Rust client's", 0.4, to_client("B", CPU_GB, "rust")),
    Goal("C1: p50 ÷ the floor's", 1.6, to_floor("C1", P50)),
    Goal("C1: p50 ÷ that of the floor that waits", 0.95, to_client("C1", P50, "floor")),
    Goal("C1: p50 ÷ the best other client's", 1, to_best_other("C1", P50)),
    Goal("C1: CPU time of a batch ÷ the floor's", 2.4, to_floor("C1", CPU_BATCH)),
    Goal("C2: p50 ÷ the floor's", 1, to_floor("C2", P50)),
    Goal("D: payload/s ÷ the floor's", 0.4, to_floor("D", PAYLOAD), at_least=True),
    Goal("D: payload/s ÷ the Rust client's", 5, to_client("D", PAYLOAD, "rust"), at_least=True),
    Goal("D: peak memory ÷ the longest line", 1.6, value("D", PEAK_LINE)),
    Goal("D: memory 2 s later ÷ that of an idle child", 1.5, given_back),
    Goal("E: start-up ÷ the floor's", 3, to_floor("E", START)),
    Goal("E: idle memory, MB", 3.9, value("E", IDLE)),
    Goal("E: idle memory of README's sample, MB", 4.3, value("E", IDLE, "print_records")),
    Goal("E: start-up when linked statically ÷ the floor's", 2, to_floor("E", START, "kclxx-static")),
    Goal("E: idle memory when linked statically, MB", 3, value("E", IDLE, "kclxx-static")),
    Goal("C1: p50 with sharing ÷ without", 1.05, to_us("C1", P50, SHARED)),
    Goal("S: own memory of an idle shard, with sharing ÷ without", 0.25, to_us("S", OWN_SHARD, SHARED)),
    Goal("S1: the first shard's start, ms more with sharing", 1, more_than_us("S1", START, SHARED)),
    Goal("S: each further shard's start, ms more with sharing", 1, more_than_us("S", SHARD_START, SHARED)),
]


def judged(summaries):
    rows = (goal.judged(summaries) for goal in GOALS)
    return [row for row in rows if row is not None]


def missed(summaries):
    return [row for row in judged(summaries) if not row["reached"]]
