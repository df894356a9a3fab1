# SPDX-License-Identifier: Apache-2.0
"""A local Kinesis and DynamoDB, shared by the tests of one run.

As a program: `services.py start DIR` leaves them running until `services.py stop DIR`, or until
the process that called it (ctest) is gone, however it went.
"""
import os
import pathlib
import subprocess
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    __package__ = "harness"
    import harness  # noqa: F401

from . import aws, settings  # noqa: E402

_STOP_AFTER = 'while [ -e "/proc/$1" ]; do sleep 0.2; done; exec "$2" local stop --directory "$3"'


def _local(command, directory):
    done = subprocess.run([settings.TOOL, "local", command, "--directory", directory], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"kclxx local {command}: status {done.returncode}: {done.stdout}")
    return done.stdout


class Services:
    """What runs in a directory: the addresses, and clients."""

    def __init__(self, directory):
        urls = dict(line.removeprefix("export AWS_ENDPOINT_URL_").replace("'", "").split("=", 1)
                    for line in _local("env", directory).splitlines() if "AWS_ENDPOINT_URL_" in line)
        self.kinesis_url, self.dynamodb_url = urls["KINESIS"], urls["DYNAMODB"]
        self.kinesis = aws.client("kinesis", self.kinesis_url)
        self.dynamodb = aws.client("dynamodb", self.dynamodb_url)


def start(directory, caller):
    """Starts both. They end with `stop`, or when the process `caller` is gone."""
    _local("start", directory)
    # In a session of its own: it outlives a Ctrl-C to end them.
    subprocess.run(["setsid", "--fork", "sh", "-c", _STOP_AFTER, "sh", str(caller), settings.TOOL, directory], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stop(directory):
    print(_local("stop", directory))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("start", "stop"):
        sys.exit("usage: services.py start|stop DIRECTORY")
    directory = pathlib.Path(sys.argv[2]).resolve()
    start(directory, os.getppid()) if sys.argv[1] == "start" else stop(directory)
