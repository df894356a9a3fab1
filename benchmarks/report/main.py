# SPDX-License-Identifier: Apache-2.0
"""scripts/bench, once everything is built."""
import argparse
import json
import os
import platform
import re
import subprocess
import sys

import run
from workloads import WORKLOADS

OUT = run.ROOT / "build/bench"
QUIET = 0.5  # load; above it rates mean little
# --check compares kclxx with the committed baseline, as ratios to the floor of the same run.
BASELINE = run.ROOT / "benchmarks/baseline.json"
GUARDED_CLIENTS = ("kclxx", "kclxx-waited")
TOLERANCE = 0.15


def arguments():
    parser = argparse.ArgumentParser(prog="bench", add_help=False, allow_abbrev=False)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--workload", default="")
    parser.add_argument("--client", default="")
    for flag in ("--check", "--update-baseline"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--only-arguments", action="store_true")
    chosen = parser.parse_args()
    if chosen.repetitions < 1:
        parser.error("--repetitions must be 1 or more")
    return chosen


def pick(text, known, what):
    """The names in a comma-separated list; an unknown one is an error that lists the known ones."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            print(f"bench: no {what} '{name}'; there are: {', '.join(known)}", file=sys.stderr)
            sys.exit(2)
    return names or list(known)


def compared(figure, entry):
    """The number that holds on another machine."""
    return entry["ratio"] if figure.ratio else entry["value"]


def guarded():
    """(workload, figures) of all that is compared."""
    return [(w.name, w.guarded) for w in WORKLOADS if w.guarded]


def baseline_of(results):
    """The guarded figures of a run, as they are committed."""
    return {name: {client: {figure.key: round(compared(figure, summary[figure.key]), 4)
                            for figure in figures if figure.key in summary}
                   for client, summary in results["workloads"][name].items()
                   if client in GUARDED_CLIENTS}
            for name, figures in guarded() if name in results["workloads"]}


def load_baseline():
    return json.loads(BASELINE.read_text())


def text_of(baseline):
    """As JSON, with a line for all figures of one thing."""
    text = json.dumps(baseline, indent=2, sort_keys=True)
    return re.sub(r"{([^{}]*)}", lambda figures: "{" + " ".join(figures[1].split()) + "}", text) + "\n"


def save_baseline(results):
    names = {name for name, _ in guarded()}
    known = {name: figures for name, figures in (load_baseline() if BASELINE.exists() else {}).items() if name in names}
    known.update(baseline_of(results))  # a run of some workloads leaves the others as they are
    BASELINE.write_text(text_of(known))


def pairs(results):
    """(workload, client, figure, then, now) for all that is guarded; then is None where the baseline has nothing."""
    then, now = load_baseline(), baseline_of(results)
    for name, figures in guarded():
        for client, values in now.get(name, {}).items():
            for figure in figures:
                if figure.key in values:
                    before = then.get(name, {}).get(client, {}).get(figure.key)
                    yield name, client, figure, before, values[figure.key]


def worse(results):
    """What is over 15 % worse than the baseline: (workload, client, figure, then, now)."""
    return [(name, client, figure, then, now) for name, client, figure, then, now in pairs(results)
            if then is not None and (then / now if figure.higher else now / then) > 1 + TOLERANCE]


def missing(results):
    """What the baseline has nothing to compare with: (workload, client, figure)."""
    return [(name, client, figure) for name, client, figure, then, _ in pairs(results) if then is None]


def measure(workloads, clients, repetitions):
    """The summary of each workload, and the failures."""
    jobs = [(w.name, w.job, w.among([c.name for c in clients])) for w in workloads]
    runs, failures = run.interleaved(jobs, clients, repetitions)
    summaries = {w.name: run.summary(w, runs[w.name]) for w in workloads if w.name in runs}
    return summaries, failures


def check(results, clients, repetitions):
    """Exit status. What looks worse is measured again, with nothing else running, before it counts."""
    suspects = worse(results)
    if suspects:
        names = {name for name, *_ in suspects}
        print(f"bench: measured again, since it looks worse than the baseline: {', '.join(sorted(names))}")
        few = [c for c in clients if c.name in run.FLOORS or c.name in {client for _, client, *_ in suspects}]
        again, failures = measure([w for w in WORKLOADS if w.name in names], few, 2 * repetitions)
        if failures:
            sys.exit(f"bench: failed when measured again: {failures}")
        still = {(name, client, figure.key) for name, client, figure, *_ in worse({"workloads": again})}
        suspects = [(name, client, figure, *numbers) for name, client, figure, *numbers in suspects
                    if (name, client, figure.key) in still]
    for name, client, figure, before, value in suspects:
        what = f"{figure.title} ÷ the floor's" if figure.ratio else figure.title
        print(f"bench: worse than the baseline, twice: {name}, {client}: {what} is {value:.3f}, was {before:.3f}")
    lacking = missing(results)
    for name, client, figure in lacking:
        print(f"bench: no baseline for {name}, {client}: {figure.title}; scripts/bench --update-baseline makes one")
    if not suspects:
        print("bench: nothing is over 15 % worse than benchmarks/baseline.json")
    return 1 if suspects or lacking else 0


def selection(chosen):
    """The workloads and clients to measure, and what is skipped, with the reason."""
    skipped = (run.ROOT / "build/peers/skipped").read_text().splitlines()
    everyone = run.clients()
    workloads = [w for w in WORKLOADS if w.name in pick(chosen.workload, [w.name for w in WORKLOADS], "workload")]
    names = pick(chosen.client, [c.name for c in everyone], "client")
    if chosen.check:
        workloads = [w for w in workloads if w.guarded]
        names = [name for name in names if name in GUARDED_CLIENTS]
    floors = {run.floor_of(name) for name in names}
    clients = [c for c in everyone if c.name in {*names, *floors}]
    cores = len(os.sched_getaffinity(0))
    for workload in workloads:
        if workload.cpus > cores:
            skipped.append(f"{workload.name}: it needs {workload.cpus} cores, here is {cores}")
    return [w for w in workloads if w.cpus <= cores], clients, skipped


def machine():
    """What the figures depend on; the load shows whether it was in use otherwise."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                 platform.machine())
    commit = subprocess.run(["git", "-C", run.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(),
            "load_before": os.getloadavg()[0], "commit": commit.stdout.strip() or "unknown"}


def cell(figure, entry):
    if entry is None:
        return "-"
    text = f"{entry['value']:,.{figure.digits}f}"
    return f"{text} ({entry['ratio']:.2f})" if "ratio" in entry else text


def rows(workload, summary):
    """The heading, and a line for each client: the floors first, then as they were run."""
    heading = ["client"] + [figure.title for figure in workload.figures]
    names = sorted(summary, key=lambda name: name not in run.FLOORS)
    return [heading] + [[name] + [cell(figure, summary[name].get(figure.key)) for figure in workload.figures]
                        for name in names]


def text_table(workload, summary):
    table = rows(workload, summary)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines_ = [f"{workload.name}: {workload.title}"]
    for row in table:
        cells = [f"{text:>{width}}" for text, width in zip(row[1:], widths[1:])]
        lines_.append("  ".join(["", row[0].ljust(widths[0]), *cells]))
    return "\n".join(lines_) + "\n"


def show(results, failures):
    for workload in WORKLOADS:
        if workload.name in results["workloads"]:
            print(text_table(workload, results["workloads"][workload.name]))
    print("In parentheses: the ratio to floor-unwaited for what does not wait for its checkpoints (kclxx), else to "
          "floor. All of it: build/bench/results.json")
    for line in results["skipped"]:
        print(f"skipped: {line}")
    for (workload, client), error in failures.items():
        print(f"bench: {client} failed in {workload}: {error}", file=sys.stderr)


def main():
    chosen = arguments()
    if chosen.only_arguments:
        pick(chosen.workload, [w.name for w in WORKLOADS], "workload")
        return 0
    workloads, clients, skipped = selection(chosen)
    load = os.getloadavg()[0]
    if load > QUIET:
        print(f"bench: the machine is busy, load {load:.1f}: trust CPU times, not rates", file=sys.stderr)

    results = {"machine": machine(), "repetitions": chosen.repetitions, "skipped": skipped,
               "clients": {c.name: c.version for c in clients}}
    results["workloads"], failures = measure(workloads, clients, chosen.repetitions)
    (OUT / "results.json").write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    show(results, failures)

    status = 1 if failures else 0
    if chosen.check:
        status = check(results, clients, chosen.repetitions) or status
    if chosen.update_baseline and not failures:
        save_baseline(results)
        print("bench: written: benchmarks/baseline.json")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("bench: interrupted")
