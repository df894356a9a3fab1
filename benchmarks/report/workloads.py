# SPDX-License-Identifier: Apache-2.0
"""What is measured: the workloads as jobs of the driver (benchmarks/driver/measure.hpp), and the
figures that are read off a run."""
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One column. `higher`: whether more is better; `ratio` compares with the floor, which is the only
    comparison that holds on another machine."""

    key: str
    title: str
    of: callable
    higher: bool = False
    ratio: bool = True
    digits: int = 1


def _round_trip(share):
    return lambda run: run["round_trip_us"][share]


RATE = Figure("records_per_second", "records/s", lambda r: r["records"] / r["seconds"], higher=True, digits=0)
PAYLOAD = Figure("payload_mb_per_second", "MB/s", lambda r: r["bytes"] / r["seconds"] / 1e6, higher=True, digits=0)
CPU_GB = Figure("cpu_seconds_per_gb", "CPU s/GB", lambda r: r["cpu_seconds"] / r["bytes"] * 1e9, digits=2)
CPU_BATCH = Figure("cpu_us_per_batch", "CPU µs/batch", lambda r: r["cpu_seconds"] / r["batches"] * 1e6)
P10 = Figure("p10_us", "p10 µs", _round_trip("p10"))
P50 = Figure("p50_us", "p50 µs", _round_trip("p50"))
P99 = Figure("p99_us", "p99 µs", _round_trip("p99"), ratio=False)
PEAK = Figure("peak_mb", "peak MB", lambda r: r["peak_bytes"] / 1e6, ratio=False)
PEAK_LINE = Figure("peak_to_line", "peak ÷ line", lambda r: r["peak_bytes"] / r["line_bytes"], ratio=False, digits=2)
SETTLED = Figure("settled_mb", "2 s later MB",
                 lambda r: r["settled_bytes"] / 1e6 if "settled_bytes" in r else None, ratio=False)
START = Figure("start_ms", "start ms", lambda r: r["start_us"]["p50"] / 1e3, digits=2)
LIFE = Figure("life_cpu_ms", "CPU ms of a life", lambda r: r["life_cpu_seconds"] * 1e3, digits=2)
OWN = Figure("own_mb", "of it its own MB", lambda r: r["own_bytes"] / 1e6, ratio=False, digits=2)
ALL_P50 = Figure("p50_ms", "p50 ms", lambda r: r["round_trip_us"]["p50"] / 1e3, ratio=False)
OWN_BUSY = Figure("busy_kib_per_shard", "own KiB, after batches", ratio=False,
                  of=lambda r: r["busy"]["own_bytes"] / r["shards"] / 1024)
THREADS = Figure("threads", "threads", lambda r: r["busy"]["threads"], ratio=False, digits=0)
DESCRIPTORS = Figure("descriptors", "descriptors", lambda r: r["busy"]["descriptors"], ratio=False, digits=0)
IDLE = Figure("idle_mb", "idle MB", lambda r: r["idle_bytes"] / 1e6)


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    job: dict
    figures: tuple
    guarded: tuple = ()  # what `scripts/bench --check` compares: what others on the machine disturb least
    cpus: int = 1
    only: tuple = ()  # clients; empty: all
    besides: tuple = ("kclxx-shared", "kclxx-each")  # clients that are left out

    def among(self, clients):
        """Those of the clients' names that take part."""
        return [name for name in clients if name not in self.besides and (not self.only or name in self.only)]


def _pinned(job, driver, child):
    """Across cores a wake-up costs tens of microseconds and hides all else, so that is measured apart."""
    cpus = sorted(os.sched_getaffinity(0))
    return dict(job, driver_cpu=cpus[min(driver, len(cpus) - 1)], child_cpu=cpus[min(child, len(cpus) - 1)])


SHARDS = 1000
SMALL = {"records": 10, "bytes": 100}
BATCHES = {"A": {"records": 1000, "bytes": 100}, "B": {"records": 1000, "bytes": 1024},
           "D": {"records": 500, "bytes": 20480}}
THROUGHPUT = (RATE, PAYLOAD, CPU_GB, P50, P99, PEAK)
LATENCY = (P50, P99, CPU_BATCH, RATE, PAYLOAD, CPU_GB, PEAK)

WORKLOADS = [
    Workload("A", "1,000 records of 100 B a batch", BATCHES["A"], THROUGHPUT),
    Workload("B", "1,000 records of 1 KiB a batch", BATCHES["B"], THROUGHPUT),
    Workload("C1", "10 records of 100 B a batch, all on one core", _pinned(SMALL, 0, 0), LATENCY, (P10, CPU_BATCH),
             besides=("kclxx-each",)),
    Workload("C2", "10 records of 100 B a batch, daemon and child on a core each", _pinned(SMALL, 0, 1), LATENCY,
             cpus=2, besides=("kclxx-each",)),
    Workload("D", "500 records of 20 KiB a batch", dict(BATCHES["D"], settle_seconds=2),
             (*THROUGHPUT, PEAK_LINE, SETTLED), (PEAK_LINE,)),
    Workload("E", "start-up and idle: from before the process exists to its answer to initialize", {"starts": 20},
             (START, LIFE, IDLE, OWN), (LIFE, IDLE)),
    Workload("S", f"{SHARDS:,} shards at once, 200 records of 100 B a batch; memory and what is open: of all processes",
             {"shards": SHARDS, "records": 200, "bytes": 100},
             (RATE, CPU_GB, ALL_P50, OWN_BUSY, THREADS, DESCRIPTORS), only=("kclxx", "kclxx-shared"), besides=()),
] + [
    # On two cores the CPU time depends on whether the reader meets the writer at the pipe's lock, from run to run. D's
    # line is larger than the cores' own caches, so the floor's time there depends on the other users of the host.
    Workload(f"{name}1", f"as {name}, all on one core", _pinned(BATCHES[name], 0, 0), THROUGHPUT, (P10, CPU_GB),
             only=("floor", "floor-unwaited", "kclxx", "kclxx-waited", "rust", "kclxx-each"),
             besides=() if name == "A" else ("kclxx-each",))
    for name in ("A", "B")
]
