# SPDX-License-Identifier: Apache-2.0
"""Tests wait for a condition, never for a time."""
import time

# How long a test waits for anything before it fails: far longer than it takes on a machine that has
# ten times as much to do.
SECONDS = 600


class TimedOut(AssertionError):
    pass


def wait_for(what, condition, seen=lambda: "", every=0.1, seconds=SECONDS):
    """Polls until `condition()` is true, and returns its value. After `seconds` it fails, with the text of `seen()`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise TimedOut(f"waited {seconds} s in vain for {what}. {seen()}".rstrip())
        time.sleep(every)
