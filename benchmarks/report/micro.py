# SPDX-License-Identifier: Apache-2.0
"""The micro-benchmarks (benchmarks/micro): each as a ratio to its own floor, a copy and a search of its bytes."""
import json
import statistics
import subprocess

from run import ROOT
from workloads import Figure

PROGRAM = ROOT / "build/bench/benchmarks/micro/micro_benchmarks"
NAME = "micro"
CPU = Figure("cpu_ns", "CPU ns", of=None)
# One size more, in which a regression would show as well; record_queue has no floor.
LEFT_OUT = "decode/bytes:(100|1024|20480)/records:10$|records:10000|record_queue"


def measure(repetitions, seconds):
    """{benchmark: {"cpu_ns": {"value", "ratio"}}}, like the summary of a workload."""
    done = subprocess.run(
        [PROGRAM, f"--benchmark_filter=-{LEFT_OUT}", f"--benchmark_repetitions={repetitions}",
         f"--benchmark_min_time={seconds / 20}", "--benchmark_enable_random_interleaving=true",
         "--benchmark_format=json"], stdout=subprocess.PIPE, text=True, check=True)
    return ratios(json.loads(done.stdout)["benchmarks"])


def ratios(runs):
    times = {}
    for run in runs:
        if run.get("error_occurred"):
            raise SystemExit(f"bench: {run['name']}: {run['error_message']}")
        if run["run_type"] == "iteration":
            times.setdefault(run["run_name"], []).append(run["cpu_time"])
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {name: {CPU.key: {"value": value, "ratio": value / medians["floor_of_" + name]}}
            for name, value in medians.items() if not name.startswith("floor_of_")}
