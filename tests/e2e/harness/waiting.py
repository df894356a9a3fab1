# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition, never for a time."""
import time

# How long a test waits in vain, whatever it waits for: far longer than anything takes on a machine
# with ten times as much to do.
SECONDS = 600


class TimedOut(AssertionError):
    pass


def wait_for(what, condition, seen=lambda: "", every=0.1):
    """Polls until `condition()` is true and returns its value.

    After SECONDS, fails with what `seen()` returns.
    """
    end = time.monotonic() + SECONDS
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise TimedOut(f"waited {SECONDS} s in vain for {what}. {seen()}".rstrip())
        time.sleep(every)
