# SPDX-License-Identifier: Apache-2.0
"""Where the programs are, and which daemon is asked for."""
import argparse
import os
import pathlib
import shlex
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[4]
BUILD = pathlib.Path(os.environ.get("KCLXX_E2E_BUILD", SOURCE / "build" / "dev"))
TOOL = BUILD / "src" / "tool" / "kclxx"
SHARE_PROGRAM = BUILD / "src" / "tool" / "kclxx-share"
CHILD = BUILD / "tests" / "host" / "e2e" / "recorded_child"
ACCOUNTED_CHILD = CHILD.with_name("accounted_child")
RUNS = BUILD / "tests" / "host" / "e2e" / "runs"
# The folder of emulators that run already (services.py); without it a test starts its own.
SERVICES = os.environ.get("KCLXX_E2E_SERVICES")

# Another host: the command that is run in place of `kclxx daemon run`, with a properties file for each stream.
HOST = shlex.split(os.environ.get("KCLXX_E2E_HOST", ""))

KCL_VERSIONS = ("2", "3")


_parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
_parser.add_argument("--share", action="store_true")  # one process of recorded_child for all shards of a worker
_parser.add_argument("--stock", action="store_true")  # AWS's classes alone
_parser.add_argument("--fan-out", action="store_true")  # instead of polling
_parser.add_argument("--form")  # accounted_child, whose records fail: each, gathering or parallel
_parser.add_argument("--s3", action="store_true")  # samples/archive into S3, in place of a folder
_parser.add_argument("--kcl", type=int, default=3)
_parser.add_argument("--seed", type=int, default=1)
_parser.add_argument("--minutes", type=float, default=2)
_options, sys.argv[1:] = _parser.parse_known_args()  # unittest gets the rest
SHARE, STOCK, FAN_OUT, FORM = _options.share, _options.stock, _options.fan_out, _options.form
S3 = _options.s3
KCL, SEED, MINUTES = _options.kcl, _options.seed, _options.minutes
