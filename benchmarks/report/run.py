# SPDX-License-Identifier: Apache-2.0
"""Runs the driver: clients interleaved, several repetitions, medians."""
import json
import os
import signal
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRIVER = [str(ROOT / "build/bench/benchmarks/side_by_side_driver")]
FLOOR = "floor"
# For what does not wait for its checkpoints, a child that does not wait either.
FLOOR_UNWAITED = "floor-unwaited"
UNWAITED = ("kclxx", "kclxx-shared", "kclxx-each", FLOOR_UNWAITED)
FLOORS = (FLOOR, FLOOR_UNWAITED)


def floor_of(client):
    return FLOOR_UNWAITED if client in UNWAITED else FLOOR


@dataclass(frozen=True)
class Client:
    name: str
    version: str
    command: list


class ClientFailed(Exception):
    pass


def clients():
    """Those that benchmarks/peers/setup has made."""
    text = (ROOT / "build/peers/list").read_text()
    rows = (line.split("\t") for line in text.splitlines())
    return [Client(name, version, command.split(" ")) for name, version, command in rows]


def drive(job, client):
    """One run of a driver; its figures."""
    limit = 70 + job.get("settle_seconds", 0)
    words = {**job, "decodes": client.name not in FLOORS}
    # Where a client panics at its end, the time of its backtrace does not matter.
    environment = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
    # A group of its own, so that a client that hangs can be ended with its driver, or after it.
    with subprocess.Popen([*DRIVER, json.dumps(words), *client.command], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True) as process:
        try:
            out, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise ClientFailed(f"no result within {limit:.0f} s") from None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # nothing is left of it
    if process.returncode != 0:
        raise ClientFailed(errors.strip() or f"the driver ended with {process.returncode}")
    return json.loads(out)


class Progress:
    def __init__(self, total):
        self.done, self.total, self.terminal = 0, total, sys.stderr.isatty()

    def step(self, what):
        self.done += 1
        if self.terminal:
            end = "\n" if self.done == self.total else ""
            print(f"\r\033[K{self.done} of {self.total}: {what}", end=end, file=sys.stderr, flush=True)
        elif self.done == self.total or self.done % 50 == 0:
            print(f"      {self.done} of {self.total} runs", file=sys.stderr, flush=True)


def interleaved(jobs, chosen, repetitions):
    """{workload: {client: [run, ...]}} and the failures. `jobs`: name, job, and the names of the clients it is for.

    One run of each client, then the next one of each: what slows the machine down for a while hits all of them.
    Each time another client begins, so that no client always runs after the same one."""
    runs, failures = {}, {}
    progress = Progress(repetitions * sum(client.name in names for _, _, names in jobs for client in chosen))
    for repetition in range(repetitions):
        first = repetition % len(chosen)
        for name, job, names in jobs:
            for client in chosen[first:] + chosen[:first]:
                if client.name not in names:
                    continue
                progress.step(f"{name} {client.name}")
                if (name, client.name) in failures:
                    continue
                # To settle is slow, and the same each time.
                job = {key: value for key, value in job.items() if repetition == 0 or key != "settle_seconds"}
                try:
                    run = drive(job, client)
                    runs.setdefault(name, {}).setdefault(client.name, []).append(run)
                except ClientFailed as error:
                    failures[name, client.name] = str(error)
    for name, client in failures:
        runs.get(name, {}).pop(client, None)
    return runs, failures


def _median(figure, measured):
    values = [value for value in map(figure.of, measured) if value is not None]
    return statistics.median(values) if values else None


def summary(workload, runs):
    """{client: {figure: {"value": median, "ratio": median of the ratios to the run of its floor beside it}}}"""
    result = {}
    for name, measured in runs.items():
        floors = runs.get(floor_of(name))
        row = result[name] = {}
        for figure in dict.fromkeys(workload.figures + workload.guarded):
            value = _median(figure, measured)
            if value is None:
                continue
            row[figure.key] = {"value": value}
            if figure.ratio and floors:
                pairs = [figure.of(run) / figure.of(floor) for run, floor in zip(measured, floors)]
                row[figure.key]["ratio"] = statistics.median(pairs)
    return result
