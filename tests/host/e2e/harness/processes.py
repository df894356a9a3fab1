# SPDX-License-Identifier: Apache-2.0
"""Processes that end with the process that started them."""
import os
import pathlib
import signal
import subprocess

from waiting import wait_for


def members(group):
    """The living processes of a process group, by id: {pid: name}."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(errors="replace")
        except OSError:
            continue  # it is gone
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        state, _, its_group = stat[stat.rindex(")") + 2 :].split()[:3]
        if int(its_group) == group and state != "Z":
            found[int(entry.name)] = name
    return found


class Process:
    """A program in a process group of its own, its output in a file.

    The kernel kills it when the thread that started it ends, by kill -9 too (PR_SET_PDEATHSIG):
    start it on the main thread. What it has started itself ends with `end`, with the group.
    """

    def __init__(self, command, log, cwd, environment):
        self.log = log
        with open(log, "ab") as output:
            self._popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
                cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self._popen.pid

    def alive(self):
        return self._popen.poll() is None

    def status(self):
        """None while it runs; negative: the signal that ended it."""
        return self._popen.poll()

    def signal(self, number):
        self._popen.send_signal(number)

    def wait(self):
        wait_for(f"the end of process {self.pid}", lambda: not self.alive())
        return self.status()

    def group(self):
        return members(self.pid)

    def end(self):
        """Kills the whole group, and waits until nothing is left of it."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._popen.wait()
        wait_for(f"the end of process group {self.pid}", lambda: not self.group())

    def log_text(self):
        return pathlib.Path(self.log).read_text(errors="replace")
