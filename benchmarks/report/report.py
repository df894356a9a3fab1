# SPDX-License-Identifier: Apache-2.0
"""The figures as text."""
import os
import platform
import subprocess

from run import FLOORS, ROOT


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
