# SPDX-License-Identifier: Apache-2.0
"""The documents: which there are, and what is in them."""
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)


def pages():
    """All that users read, by path."""
    paths = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")]
    paths += sorted((ROOT / "docs").rglob("*.md"))
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def blocks(text, *languages):
    """(the text before it, the block) for each block of code in one of the languages."""
    for found in FENCE.finditer(text):
        if found["language"] in languages:
            yield text[:found.start()], found["text"]
