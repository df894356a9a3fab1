# SPDX-License-Identifier: Apache-2.0
"""What recorded_child wrote down.

A journal is a file per process. Each line is an event, its fields between tabs; the first one is
the time, in nanoseconds of the clock that all processes of the machine share:

    initialize SHARD SEQUENCE SUB WORKER PID     where reading begins
    record SEQUENCE SUB PARTITION_KEY ID         processed, in this order
    checkpointed SEQUENCE SUB                    the daemon has confirmed it
    refused SEQUENCE SUB ERROR                   the daemon or kclxx has refused it
    lease_lost, shard_ended, shutdown_requested  the callback was called
    attempt NUMBER succeeded|failed              accounted_child: the handler was called
    parked SEQUENCE SUB PARTITION_KEY ID         accounted_child: stored, and so processed
    exit STATUS                                  run() has returned
"""
import collections
import dataclasses
import pathlib
import re
import typing

_sentinels = {"AT_TIMESTAMP": -3, "TRIM_HORIZON": -2, "LATEST": -1, "SHARD_END": 10**200}


class Position(typing.NamedTuple):
    """Ordered as the KCL orders positions."""

    sequence: int
    sub: int

    @staticmethod
    def parse(sequence, sub):
        return Position(_sentinels[sequence] if sequence in _sentinels else int(sequence), int(sub))

    def __str__(self):
        names = {number: name for name, number in _sentinels.items()}
        return f"{names.get(self.sequence, self.sequence)}/{self.sub}"


ACCOUNTED_ATTEMPTS = 3  # of accounted_child's policy
ACCOUNTED_AT_ONCE = {"each": 1, "gathering": 100, "parallel": 8}  # records that it tries, by form
SHARD_END = Position.parse("SHARD_END", 0)


def failures_of(id):
    """How often accounted_child's handler fails for a record, whoever processes it; ACCOUNTED_ATTEMPTS: always."""
    index, number = map(int, re.search(r"-(\d+):(\d+)$", id).groups())
    rest = (index + number) % 100
    return ACCOUNTED_ATTEMPTS if rest == 0 else 2 if rest <= 5 else 0


class Record(typing.NamedTuple):
    time: int
    position: Position
    key: str
    id: str
    parked: bool = False


class Checkpoint(typing.NamedTuple):
    time: int
    position: Position
    error: str  # empty when it was confirmed


@dataclasses.dataclass
class Journal:
    """The life of one child."""

    shard: str = ""
    worker: str = ""
    pid: int = 0
    started: int = 0
    start: Position = None
    records: list = dataclasses.field(default_factory=list)
    checkpoints: list = dataclasses.field(default_factory=list)
    events: dict = dataclasses.field(default_factory=dict)  # name: time
    status: int = None
    accounts: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # of accounted_child

    def add(self, line):
        time, event, *fields = line.split("\t")
        time = int(time)
        if event in ("record", "parked"):
            self.accounts["parked"] += event == "parked"
            sequence, sub, key, id = fields
            self.records.append(Record(time, Position.parse(sequence, sub), key, id,
                                       event == "parked"))
        elif event == "initialize":
            self.shard, sequence, sub, self.worker, pid = fields
            self.pid, self.started, self.start = int(pid), time, Position.parse(sequence, sub)
        elif event in ("checkpointed", "refused"):
            error = fields[2] if event == "refused" else ""
            self.checkpoints.append(Checkpoint(time, Position.parse(*fields[:2]), error))
        elif event == "exit":
            self.events[event], self.status = time, int(fields[0])
        elif event == "attempt":
            number, how = fields
            self.accounts["attempts"] += 1
            self.accounts["retries"] += how == "failed" and int(number) < ACCOUNTED_ATTEMPTS
        elif event == "not_parked":
            self.accounts.update(["not_parked", "retries"])
        elif event in ("lease_lost", "shard_ended", "shutdown_requested"):
            self.events[event] = time
        else:
            raise ValueError(f"a journal has an event of an unknown name: {line}")

    def confirmed(self):
        """The highest position that the daemon has confirmed; where reading began if none."""
        return max([self.start] + [c.position for c in self.checkpoints if not c.error])

    def alive(self):
        return self.status is None and pathlib.Path(f"/proc/{self.pid}").exists()

    def __str__(self):
        return f"{self.shard} in process {self.pid} of {self.worker}, from {self.start}"


class Journals:
    """All journals of a folder; each call of `read` reads only what is new."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self._read = {}  # path: [bytes read, journal]
        self.ids = set()  # of all records in them

    def read(self):
        for path in self.directory.iterdir():
            self._read_on(path)
        return sorted((j for _, j in self._read.values() if j.start), key=lambda j: j.started)

    def _read_on(self, path):
        entry = self._read.setdefault(path, [0, Journal()])
        if path.stat().st_size == entry[0]:
            return
        with open(path, "rb") as file:
            file.seek(entry[0])
            # A kill can cut a write short: what has no newline did not happen.
            text, newline, _ = file.read().rpartition(b"\n")
        for line in text.decode().split("\n") if newline else ():
            entry[1].add(line)
            if entry[1].records:
                self.ids.add(entry[1].records[-1].id)
        entry[0] += len(text) + len(newline)
