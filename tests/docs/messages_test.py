#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A message that docs/messages.md explains is one of the sources."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]


def sources():
    texts = [path.read_text() for folder in ("include", "src") for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in (".cpp", ".hpp", ".java", ".js")]
    return re.sub(r'"\s*\n\s*"', "", "\n".join(texts))  # adjacent literals are one


class Messages(unittest.TestCase):
    def test_each_entry_is_a_message_of_the_sources(self):
        page, known = (ROOT / "docs/messages.md").read_text(), sources()
        entries = [entry for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
                   for entry in re.findall(r"`([^`]+)`", row)]
        self.assertGreater(len(entries), 30)
        stale = []
        for entry in entries:
            pairs = set(re.findall(r"(?=\b([a-z]{2,} [a-z]{2,})\b)", entry))
            # A single one may be put together from two literals.
            if len(pairs) > 1 and not all(pair in known for pair in pairs):
                stale.append(entry)
        self.assertEqual([], stale)


if __name__ == "__main__":
    unittest.main()
