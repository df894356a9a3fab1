# SPDX-License-Identifier: Apache-2.0
"""scripts/bench --check: kclxx against the committed baseline, as ratios to the floor of the same run."""
import json

from run import ROOT
from workloads import WORKLOADS

PATH = ROOT / "benchmarks/baseline.json"
GUARDED_CLIENTS = ("kclxx", "kclxx-waited")
TOLERANCE = 0.15


def compared(figure, entry):
    """The number that holds on another machine."""
    return entry["ratio"] if figure.ratio else entry["value"]


def of(results):
    """The guarded figures of a run, as they are committed."""
    return {workload.name: {client: {figure.key: round(compared(figure, summary[figure.key]), 4)
                                     for figure in workload.guarded if figure.key in summary}
                            for client, summary in results["workloads"][workload.name].items()
                            if client in GUARDED_CLIENTS}
            for workload in WORKLOADS if workload.guarded and workload.name in results["workloads"]}


def load():
    return json.loads(PATH.read_text())


def save(results):
    known = load() if PATH.exists() else {}
    known.update(of(results))  # a run of some workloads leaves the others as they are
    PATH.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def worse(results):
    """What is over 15 % worse than the baseline: (workload, client, figure, then, now)."""
    found = []
    then, now = load(), of(results)
    for workload in WORKLOADS:
        for client, figures in now.get(workload.name, {}).items():
            for figure in workload.guarded:
                before = then.get(workload.name, {}).get(client, {}).get(figure.key)
                value = figures.get(figure.key)
                if before is None or value is None:
                    continue
                change = before / value if figure.higher else value / before
                if change > 1 + TOLERANCE:
                    found.append((workload.name, client, figure, before, value))
    return found
