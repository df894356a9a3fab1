# SPDX-License-Identifier: Apache-2.0
"""Where the programs are, and which daemon is asked for."""
import os
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("KCLXX_E2E_BUILD", SOURCE / "build" / "e2e"))
TOOL = BUILD / "src" / "tool" / "kclxx"
CHILD = BUILD / "tests" / "e2e" / "recorded_child"
ACCOUNTED_CHILD = CHILD.with_name("accounted_child")
RUNS = BUILD / "tests" / "e2e" / "runs"
# The folder of emulators that run already (services.py); without it a test starts its own.
SERVICES = os.environ.get("KCLXX_E2E_SERVICES")

GENERATIONS = ("1", "2", "3")


def take_option(name, default):
    """Takes `name VALUE` off the command line, for unittest gets the rest."""
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    if at + 1 == len(sys.argv):
        sys.exit(f"{name} needs a value")
    value = sys.argv[at + 1]
    del sys.argv[at : at + 2]
    return value


def take_flag(name):
    """Takes `name` off the command line. Returns whether it was there."""
    if name not in sys.argv:
        return False
    sys.argv.remove(name)
    return True


SHARE = take_flag("--share")  # one process of recorded_child for all shards of a worker
FAN_OUT = take_flag("--fan-out")  # instead of polling
FORM = take_option("--form", "each")  # of processing, in accounted_child: each, gathering or parallel
KCL = int(take_option("--kcl", "3"))
SEED = int(take_option("--seed", "1"))
MINUTES = float(take_option("--minutes", "2"))
