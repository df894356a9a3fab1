# SPDX-License-Identifier: Apache-2.0
"""The figures as text, as Markdown and as plots."""
import os
import platform
import subprocess

import goals
from run import FLOORS, ROOT
from svg import bars, lines
from workloads import CPU_GB, P50, PAYLOAD, WORKLOADS


def machine():
    """What the figures depend on; the load shows whether it was in use otherwise."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                 platform.machine())
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
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
    names = sorted(summary, key=lambda name: name not in FLOORS)
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


def goals_text(results):
    """What kclxx is held to, a line each."""
    return "".join(f"  {'reached' if row['reached'] else 'MISSED '}  {row['goal']:<46} {row['bound']:>7}"
                   f"  {row['value']:>6}\n" for row in goals.judged(results["workloads"]))


def _goals_markdown(results):
    rows_ = goals.judged(results["workloads"])
    return ["", "What kclxx is held to, in this run:", "", "| | goal | here | |", "|---|---|---|---|"] + [
        f"| {row['goal']} | {row['bound']} | {row['value']} | {'reached' if row['reached'] else '**missed**'} |"
        for row in rows_]


def markdown(results):
    """The part of docs/results/performance.md between the marks."""
    about = results["machine"]
    parts = [f"One run, at commit {about['commit']}: {about['cores']} cores ({about['cpu']}), Linux {about['kernel']}, "
             f"load {about['load_before']:.1f} when it began. Medians of {results['repetitions']} interleaved "
             f"repetitions; in parentheses the ratio to the floor: to floor-unwaited for what does not wait for its "
             f"checkpoints, to floor for the rest.", ""]
    parts += ["| client | what |", "|---|---|"]
    parts += [f"| {name} | {version} |" for name, version in results["clients"].items() if version != "-"]
    parts += _goals_markdown(results)
    for workload in WORKLOADS:
        if workload.name not in results["workloads"]:
            continue
        table = rows(workload, results["workloads"][workload.name])
        parts += ["", f"**{workload.name}**: {workload.title}", ""]
        parts += ["| " + " | ".join(table[0]) + " |", "|" + "---|" * len(table[0])]
        parts += ["| " + " | ".join(row) + " |" for row in table[1:]]
    if results["skipped"]:
        parts += ["", "Skipped: " + "; ".join(results["skipped"]) + "."]
    return "\n".join(parts) + "\n"


def _bar_groups(results, figures):
    """Each figure as how many times worse than the floor it is."""
    groups = []
    for name, heading, figure in figures:
        summary = results["workloads"].get(name, {})
        ratios = [(client, row[figure.key]["ratio"]) for client, row in summary.items()
                  if client not in FLOORS and figure.key in row]
        if ratios:
            worse = [(client, 1 / ratio if figure.higher else ratio) for client, ratio in ratios]
            groups.append((heading, sorted(worse, key=lambda pair: pair[1])))
    return groups


def plots(results, folder):
    """Writes those that the run has the figures for; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    titles = {workload.name: f"{workload.name}: {workload.title}" for workload in WORKLOADS}
    wanted = {
        "cpu.svg": ("CPU time for the same payload", "times the floor's, which is 1; shorter is better",
                    [(name, titles[name], CPU_GB) for name in "ABD"]),
        "rate.svg": ("Time for the same payload", "times the floor's, which is 1; shorter is better",
                     [(name, titles[name], PAYLOAD) for name in "ABD"]),
        "latency.svg": ("Round trip of a small batch, p50", "times the floor's, which is 1; shorter is better",
                        [(name, titles[name], P50) for name in ("C1", "C2")]),
    }
    paths = []
    for name, (title, note, figures) in wanted.items():
        groups = _bar_groups(results, figures)
        if groups:
            bars(folder / name, title, note, groups)
            paths.append(folder / name)
    if results.get("series"):
        _line_plot(results["series"], folder / "linear.svg")
        paths.append(folder / "linear.svg")
    return paths


def _line_plot(series, path):
    records = {name: [(p["records"], p["cpu_us"]) for p in points] for name, points in series["records"].items()}
    sizes = {name: [(p["payload"] / p["records"], p["cpu_us"]) for p in points]
             for name, points in series["bytes"].items()}
    lines(path, "CPU time of a batch; dashed: in proportion to its size", [
        ("100 B a record", "records a batch", "µs a batch", records),
        ("10 records a batch", "bytes a record", "µs a batch", sizes)])
