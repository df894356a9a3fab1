#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shell sessions with kclxx, in which programs of the session stand for Java, Maven and Node.js.

usage: sessions_test.py [--update] KCLXX FILE...

Each unindented block of a file begins a session in an empty directory, $HOME, after the commands that stand before the first
title. A line `  $ ` is run by bash (`  > ` continues it); below it is what it prints, stderr after `! `, and a status
other than 0 as `[5]`. --update writes into the file what is printed now: read the difference.
"""
import difflib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 100
SOURCE = HERE.parents[1] / "src/host"
# Hashes of the sources, which are in names, and the numbers of descriptors are left out of the golden files.
VARYING = [(r"-[0-9a-f]{12}\b", "-HASH"), (r"/(dev|proc/self)/fd/\d+", "/fd/N")]


def run(kclxx, home, command):
    environment = {"PATH": f"{home}/bin:{os.path.dirname(kclxx)}:/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8", "KCLXX": kclxx,
                   "SOURCE": str(SOURCE), "BASH_ENV": str(HERE / "sessions/functions.sh")}
    shell = subprocess.Popen(["bash", "-c", command], cwd=home, env=environment, text=True, start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, errors = shell.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        out, errors = shell.communicate()
        errors += f"it took longer than {LIMIT} s\n"
    lines = out.splitlines() + [f"! {line}" for line in errors.splitlines()]
    lines += [f"[{shell.returncode}]"] if shell.returncode else []
    for line in lines:
        for pattern, name in [(re.escape(home), "HOME"), *VARYING]:
            line = re.sub(pattern, name, line)
        yield f"  {line}\n" if line else "  <blank>\n"


def play(kclxx, text):
    """The text with what the commands print now."""
    titles = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    before = re.findall(r"^  \$ ((?:.*\n)(?:  > .*\n)*)", titles[0], re.MULTILINE)
    for session in titles:
        with tempfile.TemporaryDirectory() as folder:
            home = os.path.realpath(folder)
            if session is not titles[0]:
                for command in before:
                    for line in run(kclxx, home, command.replace("\n  > ", "\n")):
                        raise AssertionError(f"{command}: {line}")
            yield from play_session(kclxx, home, session, session is titles[0])


def play_session(kclxx, home, session, is_setup):
    is_below = False
    for part in re.findall(r"  \$ .*\n(?:  > .*\n)*|.*\n", session):
        if part.startswith("  $ "):
            yield part
            if not is_setup:
                yield from run(kclxx, home, part[4:].replace("\n  > ", "\n"))
            is_below = True
        elif not is_below or not part.strip():
            yield part
            is_below = False


def main(arguments):
    is_update = arguments[:1] == ["--update"]
    kclxx, *files = arguments[is_update:]
    status = 0
    for file in map(pathlib.Path, files):
        expected = file.read_text(encoding="utf-8")
        printed = "".join(play(os.path.abspath(kclxx), expected))
        if is_update:
            file.write_text(printed, encoding="utf-8")
        elif printed != expected:
            status = 1
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), printed.splitlines(True),
                                                       file.name, "what is printed now"))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
