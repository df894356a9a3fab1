#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/protocol.md have numbers, by which code and tests cite them."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / "docs/protocol.md").read_text()
# A rule begins with its anchor and its number.
RULES = [int(number) for number in re.findall(r'<a id="p(\d+)"></a>\*\*P\1\*\*', PAGE)]


def cited_in(folder):
    """The numbers of the rules that the text files of a folder cite, by file."""
    files = {}
    for path in (ROOT / folder).rglob("*"):
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            numbers = {int(number) for number in re.findall(r"\bP([1-9]\d{0,2})\b", content.decode(errors="replace"))}
            if numbers:
                files[str(path)] = numbers
    return files


class ProtocolRules(unittest.TestCase):
    def test_each_rule_has_a_number_of_its_own_and_all_numbers_are_used(self):
        self.assertEqual(list(range(1, len(RULES) + 1)), sorted(RULES))
        self.assertEqual(PAGE.count('<a id="p'), len(RULES))
        self.assertGreater(len(RULES), 50)

    def test_each_rule_that_is_cited_is_in_the_document(self):
        files = {path: numbers for folder in ("include", "src", "tests", "docs", "samples", "properties", "scripts")
                 for path, numbers in cited_in(folder).items()}
        self.assertGreater(len(files), 20)
        self.assertEqual({}, {path: numbers - set(RULES) for path, numbers in files.items() if numbers - set(RULES)})

    def test_each_rule_is_cited_by_a_test(self):
        self.assertEqual(set(), set(RULES) - set().union(*cited_in("tests").values()))


if __name__ == "__main__":
    unittest.main()
