# SPDX-License-Identifier: Apache-2.0
"""scripts/coverage, once the tests are built: they run, and llvm-cov says which outcomes of branches they saw."""
import argparse
import collections
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import figures
import reasons

BUILD = ROOT / "build/coverage"
UNREACHED = ROOT / "tests/coverage/unreached"
SIMULATION = ["simulation/simulation", "--runs", "20000", "--seed", "1"]
PROCESSING_SIMULATION = ["simulation/processing_simulation", "--runs", "2000", "--seed", "1"]
# What has to see the branches of a layer, and how many of them: in per cent.
UNIT = {"protocol": [["protocol_test"]], "session": [["session_test"]], "driver": [["driver_test"]],
        "daemon_model": [["daemon_model_test"]],
        "processing": [["processing_test"], ["record_queue_test"], ["lanes_test"], ["asio_test"]]}
SIMULATED = {"session": [SIMULATION], "driver": [SIMULATION], "daemon_model": [SIMULATION],
             "processing": [PROCESSING_SIMULATION]}
GOALS = {"protocol": 95, "session": 100, "driver": 95, "daemon_model": 95, "processing": 95}


class Failed(Exception):
    pass


def folder(layer):
    return ROOT / "src" / (layer if layer == "daemon_model" else f"kclxx/{layer}")


def profile(command):
    """Runs a test, and returns what it saw. None but the first run of a program takes time."""
    program = BUILD / "tests" / command[0]
    raw, merged = Path(f"{program}.profraw"), Path(f"{program}.profdata")
    if not merged.exists():
        ran = subprocess.run([program, *command[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, cwd=BUILD, text=True, errors="replace",
                             env={**os.environ, "LLVM_PROFILE_FILE": str(raw)})
        if ran.returncode != 0:
            raise Failed(f"{program.name} failed with status {ran.returncode}: {ran.stdout[-2000:]}")
        subprocess.run(["llvm-profdata-14", "merge", "-sparse", raw, "-o", merged], check=True)
        raw.unlink()
    return program, merged


def outcomes(exported):
    """{(file, line, column, outcome): how often}, from what llvm-cov exports. A template's are added up."""
    seen = collections.Counter()
    for data in exported["data"]:
        for file in data["files"]:
            for line, column, _, _, true, false, *_ in file.get("branches", ()):
                seen[file["filename"], line, column, "true"] += true
                seen[file["filename"], line, column, "false"] += false
    return seen


def of_layer(layer, commands):
    """The outcomes of all branches in the layer's files, and how often these commands saw them."""
    seen = collections.Counter()
    for command in commands:
        program, data = profile(command)
        exported = subprocess.run(["llvm-cov-14", "export", program, f"-instr-profile={data}", folder(layer)],
                                  stdout=subprocess.PIPE, check=True)
        for key, count in outcomes(json.loads(exported.stdout)).items():
            seen[key] += count
    if not seen:
        raise Failed(f"no branch of {layer} is in {', '.join(command[0] for command in commands)}")
    return seen


def name(key):
    """How tests/coverage/unreached names an outcome: it must outlive the lines above it."""
    file, line, column, outcome = key
    text = Path(file).read_text().splitlines()[line - 1].encode()
    return f"{Path(file).relative_to(ROOT / 'src')} | {text.decode().strip()} | {text[column - 1:].decode()[:40]} | {outcome}"


def share(seen, listed):
    """(how many outcomes were seen, of how many that are not listed; the others)"""
    missed = [name(key) for key, count in sorted(seen.items()) if not count]
    unlisted = [one for one in missed if one not in listed]
    return len(seen) - len(missed), len(seen) - len(missed) + len(unlisted), unlisted


def per_cent(part, whole):
    return f"{100 * part / whole:.1f} %"


def main():
    parser = argparse.ArgumentParser(prog="scripts/coverage", add_help=False)
    parser.add_argument("--layer", default=",".join(GOALS))
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    layers = options.layer.split(",")
    if unknown := set(layers) - set(GOALS):
        parser.error(f"unknown layer '{unknown.pop()}': {', '.join(GOALS)}")
    for old in (BUILD / "tests").rglob("*.profdata"):
        old.unlink()
    listed = reasons.read(UNREACHED)
    rows, below, missed = [], [], set()
    for layer in layers:
        seen = of_layer(layer, UNIT[layer])
        hit, counted, unlisted = share(seen, listed)
        missed.update(name(key) for key, count in seen.items() if not count)
        simulated = "-"
        if layer in SIMULATED:
            its = of_layer(layer, SIMULATED[layer])
            simulated = per_cent(sum(count > 0 for count in its.values()), len(its))
        rows.append((layer, len(seen), hit, len(seen) - counted, per_cent(hit, counted), simulated))
        print(f"{layer}: {per_cent(hit, counted)} of {counted} by its unit tests, {simulated} by the simulation alone")
        for one in unlisted:
            print(f"  not seen: {one}")
        if 100 * hit < GOALS[layer] * counted:
            below.append(f"{layer} is below {GOALS[layer]} %")
    if layers == list(GOALS):
        below += [f"listed in {UNREACHED.relative_to(ROOT)}, and seen or gone: {one}" for one in listed if one not in missed]
    table = figures.table(("layer", "outcomes of branches", "seen by unit tests", "unreachable, with a reason",
                           "share of the others", "by the simulation alone"), rows)
    print(table)
    if options.write_docs:
        figures.write("scripts/coverage", table)
    for one in below:
        print(f"coverage: {one}", file=sys.stderr)
    return 1 if below else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, reasons.BadList) as error:
        sys.exit(f"coverage: {error}")
