# SPDX-License-Identifier: Apache-2.0
"""scripts/cost, once everything is built: what a child does in fixed dialogues, counted."""
import argparse
import concurrent.futures
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/bench/benchmarks"
DRIVER = str(BUILD / "side_by_side_driver")
WITHOUT_TIME = str(BUILD / "libwithout_time.so")
BASELINE = ROOT / "benchmarks/cost/baseline.json"
TOLERANCE = 0.02
FIGURES = ("instructions", "allocations", "system calls")
ALLOCATORS = {"malloc", "calloc", "realloc", "aligned_alloc", "memalign", "posix_memalign"}


@dataclass(frozen=True)
class Workload:
    """`few` batches fill the buffers; what `more` batches add is what one of them costs."""

    name: str
    records: int
    bytes: int
    few: int
    more: int


WORKLOADS = [Workload("A", 1000, 100, 10, 20), Workload("B", 1000, 1024, 10, 10),
             Workload("C", 10, 100, 20, 200), Workload("D", 500, 20480, 3, 3)]
CLIENTS = {"kclxx": [str(BUILD / "kclxx_child"), "--request"],
           "kclxx-waited": [str(BUILD / "kclxx_child"), "--checkpoint"],
           "each": [str(BUILD / "kclxx_child"), "--each"]}


class Failed(Exception):
    pass


@dataclass(frozen=True)
class Counts:
    """Of one life of a child. `other_threads`: instructions of all threads but the callbacks'."""

    instructions: int
    other_threads: int
    allocations: int


def parse_callgrind(text):
    """Instructions, and calls of the C library's allocators, in one file of callgrind's."""
    instructions, allocations, names, callee = None, 0, {}, None
    for line in text.splitlines():
        if line.startswith("cfn="):
            number, name = re.fullmatch(r"cfn=\((\d+)\)(?: (.*))?", line).groups()
            callee = names.setdefault(number, name)
        elif line.startswith("fn="):
            number, name = re.fullmatch(r"fn=\((\d+)\)(?: (.*))?", line).groups()
            names.setdefault(number, name)
        elif line.startswith("calls=") and callee in ALLOCATORS:
            allocations += int(line[len("calls="):].split()[0])
        elif line.startswith("totals:"):
            instructions = int(line.split()[1])
    if instructions is None:
        raise Failed("callgrind wrote no totals")
    return instructions, allocations


def parse_strace(text, few):
    """The calls between the status of batch `few` and that of the last one."""
    statuses = [i for i, line in enumerate(text.splitlines())
                if line.startswith(("write(", "pwritev2(")) and 'status\\",\\"responseFor\\":\\"processRecords' in line]
    if len(statuses) <= few:
        raise Failed(f"strace saw {len(statuses)} statuses")
    return statuses[-1] - statuses[few - 1]


def play(workload, batches, command):
    """One fixed dialogue, with nothing of this environment in the child's."""
    job = {"records": workload.records, "bytes": workload.bytes, "batches": batches}
    done = subprocess.run([DRIVER, json.dumps(job), *command], cwd=ROOT, env={"LC_ALL": "C"}, capture_output=True,
                          text=True, timeout=300)
    if done.returncode != 0:
        raise Failed(f"{workload.name}: {done.stderr.strip()}")
    if json.loads(done.stdout)["checkpoints"] != batches:
        raise Failed(f"{workload.name}: {done.stdout.strip()} of {batches} batches")


def count_instructions(workload, batches, command):
    with tempfile.TemporaryDirectory() as folder:
        play(workload, batches, ["/usr/bin/env", f"LD_PRELOAD={WITHOUT_TIME}", "/usr/bin/valgrind", "-q",
                                 "--tool=callgrind", "--separate-threads=yes",
                                 f"--callgrind-out-file={folder}/out", *command])
        threads = {path.name: path.read_text() for path in Path(folder).glob("out-*")}
    callbacks = threads.pop("out-01")
    instructions, allocations = parse_callgrind(callbacks)
    return Counts(instructions, sum(parse_callgrind(text)[0] for text in threads.values()), allocations)


def count_system_calls(workload, command):
    """Of `more` batches, on the callbacks' thread; the tracer is no parent, so that the driver sees the child."""
    with tempfile.NamedTemporaryFile("r") as out:
        play(workload, workload.few + workload.more,
             ["/usr/bin/strace", "-D", "-qq", "-s", "300", "-o", out.name, "-E", f"LD_PRELOAD={WITHOUT_TIME}",
              *command])
        return parse_strace(out.read(), workload.few)


def of_one_batch(workload, few, all_, system_calls):
    """The figures that are compared."""
    def one(field):
        return (getattr(all_, field) - getattr(few, field)) / workload.more
    if one("other_threads") > TOLERANCE * one("instructions"):
        raise Failed(f"{workload.name}: another thread than the callbacks' takes part in a batch, with "
                     f"{one('other_threads'):.0f} of {one('instructions'):.0f} instructions")
    return {"instructions": round(one("instructions")), "allocations": round(one("allocations"), 1),
            "system calls": round(system_calls / workload.more, 1)}


def derived(figures):
    """What no single dialogue shows: a record's share of a batch, a batch without records, a life without batches."""
    many, few = figures["A"]["instructions"], figures["C"]["instructions"]
    record = (many - few) / 990
    return {"a record of 100 B": {"instructions": round(record)},
            "a batch without records": {"instructions": round(few - 10 * record)}}


def measure_all():
    """{client: {workload: {figure: count}}}"""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        counting = {(client, w): (pool.submit(count_instructions, w, w.few, command),
                                  pool.submit(count_instructions, w, w.few + w.more, command),
                                  pool.submit(count_system_calls, w, command))
                    for client, command in CLIENTS.items() for w in WORKLOADS}
    result = {}
    for client in CLIENTS:
        figures = {w.name: of_one_batch(w, *(future.result() for future in counting[client, w])) for w in WORKLOADS}
        small = WORKLOADS[2]
        life = counting[client, small][0].result().instructions - small.few * figures["C"]["instructions"]
        result[client] = {**figures, **derived(figures), "a life without batches": {"instructions": life}}
    return result


def rows(measured):
    return [(client, what, figure, value) for client, of_client in measured.items()
            for what, figures in of_client.items() for figure, value in figures.items()]


def worse(before, measured):
    """What is over 2 % above the baseline, and what it lacks: (client, workload, figure, then, now)."""
    found = []
    for client, what, figure, now in rows(measured):
        then = before.get(client, {}).get(what, {}).get(figure)
        if then is None or now > then * (1 + TOLERANCE):
            found.append((client, what, figure, then, now))
    return found


def better(before, measured):
    return [(client, what, figure, then, now) for client, what, figure, now in rows(measured)
            if (then := before.get(client, {}).get(what, {}).get(figure)) is not None and now < then * (1 - TOLERANCE)]


def machine():
    """What the counts depend on."""
    def first_line(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"architecture": platform.machine(), "avx2": bool(flags and "avx2" in flags[1].split()),
            "compiler": first_line("c++", "--version"), "libc": " ".join(platform.libc_ver()),
            "valgrind": first_line("valgrind", "--version")}


def name_of(what):
    return f"a batch of {what}" if len(what) == 1 else what


def table(measured):
    lines = [f"{'':14}{'':26}{'instructions':>14}{'allocations':>13}{'system calls':>14}"]
    for client, of_client in measured.items():
        for what, figures in of_client.items():
            cells = (figures.get(figure) for figure in FIGURES)
            text = "".join(f"{'' if cell is None else f'{cell:,}':>{width}}" for cell, width in zip(cells, (14, 13, 14)))
            lines.append(f"{client:14}{name_of(what):26}{text}".rstrip())
    return "\n".join(lines)


def text_of(baseline):
    """As JSON, with a line for all figures of one thing."""
    text = json.dumps(baseline, indent=2)
    return re.sub(r"{([^{}]*)}", lambda figures: "{" + " ".join(figures[1].split()) + "}", text) + "\n"


def compare(measured):
    """Exit status."""
    committed, here = json.loads(BASELINE.read_text()), machine()
    for key in ("architecture", "avx2"):
        if committed["machine"][key] != here[key]:
            raise Failed(f"the baseline is for {key} {committed['machine'][key]}, here it is {here[key]}; "
                         "scripts/cost --update-baseline makes one for this machine")
    found = worse(committed["counts"], measured)
    for client, what, figure, then, now in found:
        print(f"cost: {client}, {what}: {figure}: " +
              (f"{now:,}, was {then:,}: {100 * (now / then - 1):+.1f} %" if then else f"{now:,}, was {then}"))
    for client, what, figure, then, now in better(committed["counts"], measured):
        print(f"cost: better: {client}, {what}: {figure}: {now:,}, was {then:,}; --update-baseline keeps it so")
    if found and committed["machine"] != here:
        print(f"cost: the baseline was made with {committed['machine']}, this is {here}")
    if not found:
        print("cost: nothing is over 2 % above benchmarks/cost/baseline.json")
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(prog="cost", add_help=False, allow_abbrev=False)
    parser.add_argument("--update-baseline", action="store_true")
    parser.add_argument("--only-arguments", action="store_true")
    chosen = parser.parse_args()
    if chosen.only_arguments:
        return 0
    measured = measure_all()
    print(table(measured))
    (ROOT / "build/bench/cost.json").write_text(json.dumps(measured, indent=2) + "\n")
    if chosen.update_baseline:
        BASELINE.write_text(text_of({"machine": machine(), "counts": measured}))
        print("cost: written: benchmarks/cost/baseline.json")
        return 0
    return compare(measured)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, subprocess.TimeoutExpired) as error:
        sys.exit(f"cost: {error}")
