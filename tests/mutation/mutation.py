# SPDX-License-Identifier: Apache-2.0
"""scripts/mutation, once the tests are built: each mutant is compiled, linked into the tests and run."""
import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import mutants

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/dev"

SIMULATION = ["--runs", "20000", "--seed", "1", "--jobs", "1"]
FIRST_FAILURE = ["--abort"]  # is enough
# In each layer the tests that have to notice, the cheapest first.
TESTS = {"session": {"session_test": FIRST_FAILURE, "simulation": SIMULATION, "driver_test": FIRST_FAILURE,
                     "testing_test": FIRST_FAILURE},
         "driver": {"driver_test": FIRST_FAILURE, "simulation": SIMULATION, "testing_test": FIRST_FAILURE,
                    "runtime_test": FIRST_FAILURE},
         "processing": {"processing_test": FIRST_FAILURE, "processing_parts_test": FIRST_FAILURE,
                        "processing_simulation": ["--runs", "500", "--seed", "1", "--jobs", "1"],
                        "lanes_test": FIRST_FAILURE, "asio_test": FIRST_FAILURE},
         "sharing": {"sharing_test": FIRST_FAILURE, "resident_test": FIRST_FAILURE,
                     "sharing_process_test": ["~[many]", *FIRST_FAILURE]}}
# Tests that start a program: it gets the mutant, and they get its path in the environment.
STARTED = {"sharing_process_test": ("test_child", "KCLXX_TEST_CHILD")}


class Failed(Exception):
    pass


@dataclass(frozen=True)
class Outcome:
    mutant: mutants.Mutant
    verdict: str  # a test's name, "timeout of" one, "does not compile", "same code" or "survived"

    @property
    def counts(self):
        return self.verdict not in ("does not compile", "same code")


def sources(layer):
    return sorted((ROOT / "src/kclxx" / layer).glob("*.cpp"))


def layers():
    return [layer for layer in TESTS if sources(layer)]


def compile_command(source):
    """The compiler's words for the layer's own object, without the object and the source."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if entry["file"] == str(source) and f"/kclxx_{source.parent.name}.dir/" in entry["command"]:
            words = [word for word in words if not word.endswith("ccache")]
            if ccache := shutil.which("ccache"):
                words.insert(0, ccache)
            at = words.index("-o")
            del words[at:at + 2]
            words.remove("-c")
            words.remove(str(source))
            # Assertions show what would else be undefined, such as the value of an empty optional.
            return [*words, "-g0", "-D_GLIBCXX_ASSERTIONS", "-c"]
    raise Failed(f"{source.name} is not compiled in build/dev; run cmake --preset dev")


def linked(test):
    """What has the mutant: the test, or what it starts."""
    return STARTED[test][0] if test in STARTED else test


def link_command(test):
    text = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", test], capture_output=True, text=True)
    lines = [line for line in text.stdout.splitlines() if re.search(rf" -o tests/(unit|simulation|children)/{test} ", line)]
    if not lines:
        raise Failed(f"build/dev does not know how to link {test}: {text.stdout[-200:]}{text.stderr}")
    command = lines[-1].removeprefix(": && ").split(" && ")[0]
    return shlex.split(command)


def with_objects(words, objects, program):
    """The layer's objects, {source: object}, in place of the originals; of a library's, before it."""
    result = list(words)
    for source, made in objects.items():
        name = f"{source.parent.name}/{source.name}.o"
        result = [str(made) if word.endswith(name) else word for word in result]
        if str(made) not in result:
            result.insert(next(i for i, word in enumerate(result) if word.endswith(".o")), str(made))
    result[result.index("-o") + 1] = str(program)
    return result


def running_in(session):
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            state, _, _, its_session, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(its_session) == session and state != "Z":
                yield int(stat.parent.name)


def run(words, limit, **options):
    """The exit status; None when it took too long. Everything that it started is killed, whatever its group."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True, **options) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            while left := list(running_in(process.pid)):
                for one in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(one, signal.SIGKILL)


def cpu_time_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def new_folder():
    """Tests keep their files there, and play another user, who has to get in."""
    folder = tempfile.TemporaryDirectory(prefix="kclxx-mutant-")
    os.chmod(folder.name, 0o711)
    return folder


class Layer:
    def __init__(self, name):
        self.name, self.tests = name, TESTS[name]
        self.compilers = {source: compile_command(source) for source in sources(name)}
        self.links = {test: link_command(linked(test)) for test in self.tests}
        self.folder = new_folder()
        self.originals, self.limits, self.cpu_limits = {}, {}, {}

    def compile(self, source, text, folder):
        """The object; None when it does not compile. The file has the same name, for the same symbols."""
        (folder / source.name).write_text(text)
        made = folder / "mutant.o"
        return made if run([*self.compilers[source], source.name, "-o", made.name], 300, cwd=folder) == 0 else None

    def measure(self):
        """The tests pass unchanged, in this form too; and how long they take."""
        self.limits = self.cpu_limits = {test: 600 for test in self.tests}
        for source in self.compilers:
            folder = Path(self.folder.name) / source.stem
            folder.mkdir()
            self.originals[source] = self.compile(source, source.read_text(), folder)
            if self.originals[source] is None:
                raise Failed(f"{source.name} does not compile unchanged")
        limits, cpu_limits = {}, {}
        for test in self.tests:
            start, cpu_start = time.monotonic(), cpu_time_of_children()
            if (verdict := self.verdict_of(test, {}, Path(self.folder.name))) is not None:
                raise Failed(f"{test} fails without a mutant: {verdict}")
            # A mutant may be slow for no fault of its own, on a busy machine. One that spins is known by its CPU time.
            limits[test] = 30 + 10 * (time.monotonic() - start)
            cpu_limits[test] = 5 + int(5 * (cpu_time_of_children() - cpu_start))
        self.limits, self.cpu_limits = limits, cpu_limits

    def verdict_of(self, test, mutated, folder):
        program = folder / linked(test)
        objects = {**self.originals, **mutated}
        if run(with_objects(self.links[test], objects, program), 300, cwd=BUILD) != 0:
            return "does not compile"
        started = BUILD / "tests/process" / test if test in STARTED else program
        words = ["prlimit", f"--cpu={self.cpu_limits[test]}", str(started), *self.tests[test]]
        environment = {**os.environ, "TMPDIR": str(folder)}
        if test in STARTED:
            environment[STARTED[test][1]] = str(program)
        status = run(words, self.limits[test], cwd=BUILD, env=environment)
        program.unlink()
        return None if status == 0 else f"timeout of {test}" if status is None else test

    def try_out(self, mutant):
        source = ROOT / "src" / mutant.file
        with new_folder() as folder:
            made = self.compile(source, mutants.mutated(source.read_text(), mutant), Path(folder))
            if made is None:
                return Outcome(mutant, "does not compile")
            if made.read_bytes() == self.originals[source].read_bytes():
                return Outcome(mutant, "same code")
            for test in self.tests:
                if (verdict := self.verdict_of(test, {source: made}, Path(folder))) is not None:
                    return Outcome(mutant, verdict)
        return Outcome(mutant, "survived")


def score(outcomes):
    """(killed, of those that could be)"""
    counted = [one for one in outcomes if one.counts]
    return sum(one.verdict != "survived" for one in counted), len(counted)


def described(mutant):
    return f"survived: {mutant.file}:{mutant.number}\n  - {mutant.before}\n  + {mutant.after}"


def report(outcomes):
    """Prints the score of each file, and the survivors."""
    by_file = {}
    for one in outcomes:
        by_file.setdefault(one.mutant.file.removeprefix("kclxx/"), []).append(one)
    for name, those in [*sorted(by_file.items()), ("all", outcomes)]:
        killed, counted = score(those)
        print(f"{name:38}{killed:5} of {counted:5} killed")
    for one in outcomes:
        if one.verdict == "survived":
            print(described(one.mutant))


def chosen_mutants(names, sample, files=()):
    chosen = {}
    for name in names:
        every = [m for source in sources(name) if not files or source.name in files
                 for m in mutants.of(str(source.relative_to(ROOT / "src")), source.read_text())]
        chosen[name] = sorted(every, key=lambda m: m.rank)[:sample] if sample else every
    return chosen


def main():
    parser = argparse.ArgumentParser(prog="mutation", add_help=False, allow_abbrev=False)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--layer", default="")
    parser.add_argument("--file", default="")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only-arguments", action="store_true")
    chosen = parser.parse_args()
    names = [name for name in chosen.layer.split(",") if name] or layers()
    for name in names:
        if name not in TESTS or not sources(name):
            parser.error(f"there is no layer '{name}'; there are {', '.join(layers())}")
    files = [name for name in chosen.file.split(",") if name]
    if unknown := set(files) - {source.name for name in names for source in sources(name)}:
        parser.error(f"there is no file '{min(unknown)}' in {', '.join(names)}")
    todo = chosen_mutants(names, chosen.sample, files)
    if chosen.only_arguments:
        return 0
    if chosen.list:
        for mutant in sum(todo.values(), []):
            print(f"{mutant.file}:{mutant.number}: {mutant.before} => {mutant.after}")
        return 0
    outcomes = []
    for name, those in todo.items():
        layer = Layer(name)
        layer.measure()
        with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
            for one in pool.map(layer.try_out, those):
                outcomes.append(one)
                print(f"\r{len(outcomes)} of {sum(map(len, todo.values()))}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report(outcomes)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"mutation: {error}")
