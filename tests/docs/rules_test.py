#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/protocol.md have numbers, by which code and tests cite them."""
import re
import unittest

from pages import ROOT

STATED = [int(number) for number in
          re.findall(r'<a id="p(\d+)"></a>\*\*P\1\*\*', (ROOT / "docs/protocol.md").read_text())]


def cited(*folders):
    """{rule: a file that cites it}"""
    result = {}
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                result.update((int(number), path) for number in re.findall(r"\bP([1-9]\d{0,2})\b", text))
    return result


class Rules(unittest.TestCase):
    def test_each_number_is_used_once(self):
        self.assertGreater(len(STATED), 50)
        self.assertEqual(sorted(STATED), list(range(1, len(STATED) + 1)))

    def test_each_rule_that_is_cited_is_in_the_page(self):
        unknown = {rule: path for rule, path in cited("include", "src", "tests", "docs", "samples", "properties").items()
                   if rule not in STATED}
        self.assertEqual(unknown, {})

    def test_each_rule_is_cited_by_a_test(self):
        self.assertEqual(set(STATED) - set(cited("tests")), set())


if __name__ == "__main__":
    unittest.main()
