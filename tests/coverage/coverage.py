# SPDX-License-Identifier: Apache-2.0
"""scripts/coverage, once the tests are built: they run, and llvm-cov reports which outcomes of branches they saw."""
import argparse
import collections
import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import figures
import reasons

BUILD = ROOT / "build/coverage"
UNREACHED = ROOT / "tests/coverage/unreached"
SIMULATION = ["simulation/simulation", "--runs", "20000", "--seed", "1"]
PROCESSING_SIMULATION = ["simulation/processing_simulation", "--runs", "2000", "--seed", "1"]


@dataclass(frozen=True)
class Layer:
    unit: tuple  # the programs of its unit tests
    goal: int  # what they have to see of the outcomes that are not listed, in per cent
    simulation: tuple = ()

    @property
    def commands(self):
        return [[f"unit/{name}"] for name in self.unit]


LAYERS = {"protocol": Layer(("protocol_test",), 95),
          "session": Layer(("session_test",), 100, SIMULATION),
          "driver": Layer(("driver_test",), 95, SIMULATION),
          "daemon_model": Layer(("daemon_model_test",), 95, SIMULATION),
          "processing": Layer(("processing_test", "record_queue_test", "lanes_test", "asio_test"), 95,
                              PROCESSING_SIMULATION)}


class Failed(Exception):
    pass


@dataclass(frozen=True, order=True)
class Outcome:
    """One of the two ways on from a condition, which is named by where it begins and ends."""
    file: str
    line: int
    column: int
    end: tuple
    value: str


def folder(layer):
    return ROOT / "src" / (layer if layer == "daemon_model" else f"kclxx/{layer}")


@functools.cache
def lines_of(file):
    return tuple(line.encode() for line in Path(file).read_text().splitlines())


def condition(outcome, lines):
    """Its text, as far as it is on the line where it begins. llvm counts columns in bytes."""
    ends_here = outcome.end[0] == outcome.line
    return lines[outcome.line - 1][outcome.column - 1:outcome.end[1] - 1 if ends_here else None].decode()


def is_constant(outcome, lines):
    """What the compiler decides is no branch, but llvm-cov exports it as one."""
    before = lines[outcome.line - 1][:outcome.column - 1].decode()
    return before.endswith("if constexpr (") or condition(outcome, lines) in ("true", "false")


def name(outcome, lines):
    """How tests/coverage/unreached names it: it must outlive other lines' coming and going."""
    stripped = [line.decode().strip() for line in lines]
    above = reasons.above(stripped, outcome.line)
    where = f"{above} / {stripped[outcome.line - 1]}" if above else stripped[outcome.line - 1]
    return " | ".join((outcome.file, where, condition(outcome, lines).strip(), outcome.value))


def outcomes(exported):
    """{outcome: how often}, from what llvm-cov exports. A template's instances are added up."""
    seen = collections.Counter()
    for data in exported["data"]:
        for file in data["files"]:
            for line, column, end_line, end_column, true, false, *_ in file.get("branches", ()):
                for value, count in (("true", true), ("false", false)):
                    seen[Outcome(file["filename"], line, column, (end_line, end_column), value)] += count
    return seen


@functools.cache
def profile(program, *arguments):
    """Runs a test, and returns where it reports what it saw, processes that it forked included."""
    path = BUILD / "tests" / program
    for old in path.parent.glob(f"{path.name}.*.profraw"):
        old.unlink()
    ran = subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, cwd=BUILD, text=True, errors="replace",
                         env={**os.environ, "LLVM_PROFILE_FILE": f"{path}.%m.profraw"})
    if ran.returncode != 0:
        raise Failed(f"{path.name} failed with status {ran.returncode}: {ran.stdout[-2000:]}")
    merged = f"{path}.profdata"
    subprocess.run(["llvm-profdata-14", "merge", "-sparse", *path.parent.glob(f"{path.name}.*.profraw"), "-o", merged],
                   check=True)
    return path, merged


def of_layer(layer, commands):
    """How often these commands saw each outcome of the conditions in the layer's files."""
    seen = collections.Counter()
    for command in commands:
        program, data = profile(*command)
        exported = subprocess.run(["llvm-cov-14", "export", program, f"-instr-profile={data}", folder(layer)],
                                  stdout=subprocess.PIPE, check=True)
        seen.update(outcomes(json.loads(exported.stdout)))
    if not seen:
        raise Failed(f"no branch of {layer} is in {', '.join(command[0] for command in commands)}")
    found = collections.Counter()
    for outcome, count in seen.items():
        lines = lines_of(outcome.file)
        if not is_constant(outcome, lines):
            found[outcome] = count
    return found


def missed(seen):
    """The names of what was not seen; files are named from src on."""
    names = []
    for outcome in sorted(seen):
        if not seen[outcome]:
            text = name(outcome, lines_of(outcome.file))
            names.append(text.removeprefix(f"{ROOT / 'src'}/"))
    return names


def share(total, missing, listed):
    """(how many outcomes were seen, of how many that are not listed)"""
    unlisted = sum(one not in listed for one in missing)
    return total - len(missing), total - len(missing) + unlisted


def per_cent(part, whole):
    """Rounded down: 100 % are all."""
    return f"{1000 * part // whole / 10:.1f} %"


HEADING = ("layer", "outcomes", "seen by unit tests", "not seen", "cannot be seen", "unit tests' share",
           "the simulation's share")


def main():
    parser = argparse.ArgumentParser(prog="coverage", add_help=False, allow_abbrev=False)
    parser.add_argument("--layer", default=",".join(LAYERS))
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    layers = [one for one in options.layer.split(",") if one]
    for one in layers:
        if one not in LAYERS:
            parser.error(f"there is no layer '{one}'; there are {', '.join(LAYERS)}")
    if options.write_docs and layers != list(LAYERS):
        parser.error("--write-docs needs all layers")
    listed = reasons.read(UNREACHED)
    rows, wrong, unseen = [], [], set()
    for one in layers:
        layer = LAYERS[one]
        seen = of_layer(one, layer.commands)
        missing = missed(seen)
        unseen.update(missing)
        hit, counted = share(len(seen), missing, listed)
        simulated = None
        if layer.simulation:
            its = of_layer(one, [layer.simulation])
            simulated = per_cent(sum(count > 0 for count in its.values()), len(its))
        rows.append((one, len(seen), hit, counted - hit, len(seen) - counted, per_cent(hit, counted), simulated))
        for text in missing:
            if text not in listed:
                print(f"not seen: {text}")
        if 100 * hit < layer.goal * counted:
            wrong.append(f"the unit tests of {one} see less than {layer.goal} %")
        here = str(folder(one).relative_to(ROOT / "src")) + "/"
        wrong += [f"listed in {UNREACHED.relative_to(ROOT)}, and seen or gone: {text}" for text in listed
                  if text.startswith(here) and text not in unseen]
    table = figures.table(HEADING, rows)
    print(table)
    if options.write_docs:
        figures.write("scripts/coverage", table)
    for text in wrong:
        print(f"coverage: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, reasons.BadList) as error:
        sys.exit(f"coverage: {error}")
