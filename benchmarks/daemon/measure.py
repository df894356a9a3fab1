# SPDX-License-Identifier: Apache-2.0
"""scripts/bench-java, once everything is built: Java's own choices and the daemon's writer against `kclxx daemon run`."""
import argparse
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KCLXX_BENCH_BUILD", ROOT / "build/bench"))
TOOL, CHILD = BUILD / "src/tool/kclxx", BUILD / "benchmarks/counting_child"
STREAM, SHARDS, LOW_RATE = "bench", 4, 100
TICKS = os.sysconf("SC_CLK_TCK")
MACHINE = "-XX:MaxRAM=4g"  # Java makes its heap at first as large as the machine suggests
# Java's options, None: its own choice, and the writer. The first is what others are compared with.
CHOICES = {"defaults, stock": (None, ["--stock"]), "defaults, ours": (None, []),
           "run, stock": (["--", MACHINE], ["--stock"]), "run, ours": (["--", MACHINE], [])}
# Bytes of a record, records of one call at full rate, as a backlog gives them (10,000 records, or 10 MB), how many records
# each of these has, and the share of --megabytes: of small records fewer bytes are as much work.
SIZES = {"100": (100, 10000, 0, 0.6), "1024": (1024, 10000, 0, 1), "20480": (20480, 500, 0, 1),
         "aggregated": (100, 1000, 100, 0.6)}
HEAPS = range(96, 513, 32)  # MB
NUMBERS = itertools.count()
MOST_SECONDS = 600  # in a heap that hardly suffices Java collects for ever
FIGURES = {
    "full": {"first": "first record, s", "cpu": "CPU s/GB", "memory": "peak MB"},
    "low": {"first": "first record, s", "first_cpu": "CPU s until then", "cpu": "CPU s/GB", "memory": "peak MB"},
}


def output_of(*command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout


@contextlib.contextmanager
def services(directory):
    """A local DynamoDB; the Kinesis beside it only names the shards for the lease tables."""
    lines = output_of(TOOL, "local", "start", "--directory", directory).splitlines()
    try:
        output_of(TOOL, "local", "create-stream", STREAM, "--shards", SHARDS, "--directory", directory)
        exports = (line.removeprefix("export ").replace("'", "").split("=", 1) for line in lines
                   if line.startswith("export "))
        yield dict(exports)
    finally:
        output_of(TOOL, "local", "stop", "--directory", directory)


class Daemon:
    """One, with a Kinesis of its own that has `size` bytes in each record."""

    def __init__(self, choice, environment, directory, name, size, rate):
        java, writer = choice
        size, records, aggregated, _ = SIZES[size]
        self.directory = directory
        (directory / "counts").mkdir(parents=True)
        (directory / "child").symlink_to(CHILD)
        self.kinesis = subprocess.Popen(
            ["node", ROOT / "benchmarks/daemon/canned_kinesis.js", *map(str, (SHARDS, records, size, rate, aggregated))],
            stdout=subprocess.PIPE, text=True)
        output_of(TOOL, "local", "create-lease-table", name, "--stream", STREAM, "--directory",
                  directory.parent / "services")
        port = self.kinesis.stdout.readline().strip()
        text = (ROOT / "properties/local.properties").read_text() + "".join(f"\n{key}={value}" for key, value in {
            "executableName": "./child counts", "applicationName": name, "streamName": STREAM, "workerId": name,
            "kinesisEndpoint": f"http://127.0.0.1:{port}", "timeoutInSeconds": 3600, "failoverTimeMillis": 10000,
            "dynamoDBEndpoint": environment["AWS_ENDPOINT_URL_DYNAMODB"]}.items())
        (directory / "properties").write_text(text)
        command = [TOOL, "daemon", "run", "properties", *writer, *(java or ())]
        variables = {**os.environ, **environment, "AWS_EC2_METADATA_DISABLED": "true"}
        # The properties have the addresses.
        variables = {key: value for key, value in variables.items()
                     if not key.startswith(("AWS_ENDPOINT_URL", "KCLXX_PROPERTY_"))}
        if java is None:  # a Java that leaves out what the tool has chosen
            real = os.path.join(os.environ["JAVA_HOME"], "bin/java") if "JAVA_HOME" in os.environ else "java"
            program = directory / "java/bin/java"
            program.parent.mkdir(parents=True)
            program.write_text('#!/bin/bash\nfor one; do [[ $one == -XX:* ]] || words+=("$one"); done\n'
                               f'exec {shlex.quote(real)} {MACHINE} "${{words[@]}}"\n')
            program.chmod(0o755)
            variables["JAVA_HOME"] = directory / "java"
        self.begin = time.monotonic()
        with open(directory / "log", "wb") as log:
            self.java = subprocess.Popen(list(map(str, command)), cwd=directory, env=variables, stdout=log,
                                         stderr=log, stdin=subprocess.DEVNULL)

    def processed(self):
        """Bytes, of all shards."""
        if self.java.poll() is not None:
            raise RuntimeError(f"the daemon ended: {(self.directory / 'log').read_text()[-2000:]}")
        return sum(int(file.read_text() or 0) for file in (self.directory / "counts").iterdir())

    def wait_for(self, size):
        while self.processed() < size:
            if time.monotonic() > self.begin + MOST_SECONDS:
                raise RuntimeError("the daemon makes no progress")
            time.sleep(0.02)

    def cpu(self):
        """User and system time."""
        fields = pathlib.Path(f"/proc/{self.java.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_mb(self):
        lines = pathlib.Path(f"/proc/{self.java.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))

    def end(self):
        self.java.send_signal(signal.SIGTERM)
        self.java.wait()
        self.kinesis.kill()
        self.kinesis.wait()


def measure(kind, daemon, megabytes, seconds):
    daemon.wait_for(1)
    result = {"first": time.monotonic() - daemon.begin, "first_cpu": daemon.cpu()}
    if kind == "full":
        daemon.wait_for(megabytes * 1e6)  # until Java has compiled what counts most
        cpu, size = daemon.cpu(), daemon.processed()
        daemon.wait_for(size + megabytes * 1e6)
        gigabytes = (daemon.processed() - size) / 1e9
        result["cpu"] = (daemon.cpu() - cpu) / gigabytes
    else:
        time.sleep(seconds)
        result["cpu"] = daemon.cpu() / daemon.processed() * 1e9
    return result | {"memory": daemon.peak_mb()}


def run(kind, size, choice, environment, work, megabytes, seconds):
    name = f"{kind}-{size}-{next(NUMBERS)}"
    daemon = Daemon(choice, environment, work / name, name, size, 0 if kind == "full" else LOW_RATE)
    try:
        return measure(kind, daemon, megabytes * SIZES[size][3], seconds)
    finally:
        daemon.end()


def show_smallest_heap(size, arguments):
    for name, writer in {"stock": ["--stock"], "ours": []}.items():
        for heap in HEAPS:
            try:
                run("full", size, (["--heap", f"{heap}m"], writer), *arguments)
            except RuntimeError:
                continue
            print(f"smallest heap, records: {size}, {name}: {heap} MB", flush=True)
            break


def show(kind, size, runs):
    """Medians, and in parentheses those of the ratios to the first choice's of the same turn."""
    print(f"\n{kind} rate, records: {size}")
    first = next(iter(runs.values()))
    for key, title in FIGURES[kind].items():
        row = []
        for choice, results in runs.items():
            value = statistics.median(one[key] for one in results)
            pairs = [one[key] / base[key] for one, base in zip(results, first) if base[key]]
            row.append(f"{choice}: {value:.4g}" + (f" ({statistics.median(pairs):.2f})" if pairs else ""))
        print(f"  {title:18} " + "   ".join(row), flush=True)


def main():
    parser = argparse.ArgumentParser(prog="bench-java", add_help=False, allow_abbrev=False)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", choices=list(FIGURES), action="append")
    parser.add_argument("--size", choices=list(SIZES), action="append")
    parser.add_argument("--heap")
    parser.add_argument("--smallest-heap", action="store_true")
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--java", action="append", default=[])
    chosen = parser.parse_args()
    for options in chosen.java:
        CHOICES[options] = (["--", MACHINE, *options.split()], [])
    if chosen.heap:
        CHOICES.clear()
        CHOICES["run"] = (["--heap", chosen.heap], ["--stock"] if chosen.stock else [])
    output_of(TOOL, "daemon", "fetch")
    work = pathlib.Path(tempfile.mkdtemp(prefix="kclxx-bench-"))
    try:
        with services(work / "services") as environment:
            arguments = environment, work, chosen.megabytes, chosen.seconds
            for size in chosen.size or SIZES if chosen.smallest_heap else ():
                show_smallest_heap(size, arguments)
            for kind in () if chosen.smallest_heap else chosen.rate or FIGURES:
                for size in chosen.size or SIZES:
                    runs = {choice: [] for choice in CHOICES}

                    def turn(choice):
                        result = run(kind, size, CHOICES[choice], *arguments)
                        print(f"{kind}, {size}, {choice}: {result}", file=sys.stderr, flush=True)
                        runs[choice].append(result)
                    for _ in range(chosen.repetitions):
                        # At a low rate at once: what else the machine does hits all of them.
                        with concurrent.futures.ThreadPoolExecutor(1 if kind == "full" else len(CHOICES)) as pool:
                            list(pool.map(turn, CHOICES))
                    show(kind, size, runs)
    finally:
        shutil.rmtree(work)


main()
