# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition, never for a time."""
import time


class TimedOut(AssertionError):
    pass


def wait_for(what, condition, seconds, seen=lambda: "", every=0.1):
    """Polls until `condition()` is true and returns its value.

    After `seconds`, which are generous everywhere, fails with what `seen()` returns.
    """
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise TimedOut(f"waited {seconds} s in vain for {what}. {seen()}".rstrip())
        time.sleep(every)
