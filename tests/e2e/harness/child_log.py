# SPDX-License-Identifier: Apache-2.0
"""What kclxx writes to the daemon's log about checkpoints that failed."""
import re
import typing

from .journal import Position


class Failure(typing.NamedTuple):
    """The daemon has refused a checkpoint."""

    shard: str
    position: Position
    error: str  # the Java exception's name
    retry_after: int  # milliseconds; None: it is not tried again


_line = re.compile(r"^kclxx (\S+) (?:warning|error): the checkpoint at (\w+)/(\d+) failed: (\w+)"
                   r"(?:; retrying after (\d+) ms)?", re.MULTILINE)


def failures(text):
    return [Failure(shard, Position.parse(sequence, sub), error, int(after) if after else None)
            for shard, sequence, sub, error, after in _line.findall(text)]
