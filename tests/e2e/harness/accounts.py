# SPDX-License-Identifier: Apache-2.0
"""For which records accounted_child's handler fails."""
import re

from .journal import ACCOUNTED_ATTEMPTS

ALWAYS = ACCOUNTED_ATTEMPTS


def failures_of(id):
    """How often, whoever processes it: as in accounted_child.cpp."""
    index, number = map(int, re.search(r"-(\d+):(\d+)$", id).groups())
    rest = (index + number) % 100
    return ALWAYS if rest == 0 else 2 if rest <= 5 else 0
