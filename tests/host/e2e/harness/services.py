# SPDX-License-Identifier: Apache-2.0
"""A local Kinesis and DynamoDB, shared by the tests of one run.

As a program: `services.py start DIR` leaves them running until `services.py stop DIR`, or until
the process that called it (ctest) is gone, however it went.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    __package__ = "harness"
    import harness  # noqa: F401

from . import aws, settings  # noqa: E402
from waiting import SECONDS, wait_for  # noqa: E402



class Services:
    """Emulators that run: their addresses and clients."""

    def __init__(self, kinesis_url, dynamodb_url):
        self.kinesis_url, self.dynamodb_url = kinesis_url, dynamodb_url
        self.kinesis = aws.client("kinesis", kinesis_url)
        self.dynamodb = aws.client("dynamodb", dynamodb_url)

    @staticmethod
    def at(directory):
        return Services(**json.loads((pathlib.Path(directory) / "addresses").read_text()))


def _local(command, directory):
    return subprocess.run([settings.TOOL, "local", command, "--directory", directory],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def keep(directory, caller):
    """Has emulators running until SIGTERM, or until the process `caller` is gone."""
    stop = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.append(True))
    started = _local("start", directory)
    if started.returncode != 0:
        sys.exit(f"kclxx local start: status {started.returncode}: {started.stdout}")
    try:
        urls = dict(line.removeprefix("export AWS_ENDPOINT_URL_").replace("'", "").split("=", 1)
                    for line in started.stdout.splitlines() if "AWS_ENDPOINT_URL_" in line)
        partial = directory / "addresses.new"
        partial.write_text(json.dumps({"kinesis_url": urls["KINESIS"],
                                       "dynamodb_url": urls["DYNAMODB"]}))
        partial.rename(directory / "addresses")
        while not stop and pathlib.Path(f"/proc/{caller}").exists():
            time.sleep(0.2)
    finally:
        ended = _local("stop", directory)
        print(ended.stdout)
        if ended.returncode == 0:  # `stop` takes the file for a sign that they run
            (directory / "addresses").unlink(missing_ok=True)
    sys.exit(ended.returncode)


class Emulators:
    """Starts them; `end` ends them. They also end when the process `caller` is gone."""

    def __init__(self, directory, caller):
        self._directory = pathlib.Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._directory / "addresses").unlink(missing_ok=True)
        self._log = self._directory / "keeper.log"
        with open(self._log, "wb") as output:
            # In a session of its own: it outlives a Ctrl-C to end them.
            self._keeper = subprocess.Popen(
                [sys.executable, "-B", __file__, "keep", self._directory, str(caller)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True)
        (self._directory / "keeper").write_text(str(self._keeper.pid))

        def ready():
            if self._keeper.poll() is not None:
                raise AssertionError("the emulators did not start: " + self._log.read_text())
            return (self._directory / "addresses").exists()
        try:
            wait_for("the emulators", ready)
        except BaseException:
            self._end_keeper()  # its status contains no more than what is raised here
            raise
        self.services = Services.at(self._directory)

    def _end_keeper(self):
        self._keeper.terminate()
        return self._keeper.wait(SECONDS)

    def end(self):
        status = self._end_keeper()
        assert status == 0, f"the emulators' keeper: status {status}: {self._log.read_text()}"


def stop(directory):
    """Ends what another process has started."""
    try:
        os.kill(int((directory / "keeper").read_text()), signal.SIGTERM)
    except ProcessLookupError:
        sys.exit(f"the emulators had ended before; see {directory}/keeper.log")
    wait_for("the end of the emulators", lambda: not (directory / "addresses").exists(),
             (directory / "keeper.log").read_text)


if __name__ == "__main__":
    arguments = sys.argv[2:]
    if sys.argv[1:2] == ["keep"] and len(arguments) == 2:
        keep(pathlib.Path(arguments[0]), int(arguments[1]))
    elif sys.argv[1:2] == ["start"] and len(arguments) == 1:
        Emulators(pathlib.Path(arguments[0]).resolve(), os.getppid())
    elif sys.argv[1:2] == ["stop"] and len(arguments) == 1:
        stop(pathlib.Path(arguments[0]).resolve())
    else:
        sys.exit("usage: services.py start|stop DIRECTORY")
