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


def guarded():
    """(workload, figures) of all that is compared."""
    return [(w.name, w.guarded) for w in WORKLOADS if w.guarded]


def of(results):
    """The guarded figures of a run, as they are committed."""
    return {name: {client: {figure.key: round(compared(figure, summary[figure.key]), 4)
                            for figure in figures if figure.key in summary}
                   for client, summary in results["workloads"][name].items()
                   if client in GUARDED_CLIENTS}
            for name, figures in guarded() if name in results["workloads"]}


def load():
    return json.loads(PATH.read_text())


def save(results):
    names = {name for name, _ in guarded()}
    known = {name: one for name, one in (load() if PATH.exists() else {}).items() if name in names}
    known.update(of(results))  # a run of some workloads leaves the others as they are
    PATH.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def _pairs(results):
    """(workload, client, figure, then, now) for all that is guarded; then is None where the baseline has nothing."""
    then, now = load(), of(results)
    for name, figures in guarded():
        for client, values in now.get(name, {}).items():
            for figure in figures:
                if figure.key in values:
                    before = then.get(name, {}).get(client, {}).get(figure.key)
                    yield name, client, figure, before, values[figure.key]


def worse(results):
    """What is over 15 % worse than the baseline: (workload, client, figure, then, now)."""
    return [(name, client, figure, then, now) for name, client, figure, then, now in _pairs(results)
            if then is not None and (then / now if figure.higher else now / then) > 1 + TOLERANCE]


def missing(results):
    """What the baseline has nothing to compare with: (workload, client, figure)."""
    return [(name, client, figure) for name, client, figure, then, _ in _pairs(results) if then is None]
