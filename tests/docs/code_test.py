#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each block of code in the documents is in a source that is compiled, and the rules of docs/protocol.md have numbers, by
which code and tests cite them."""
import json
import re
import unittest

from pages import FENCE, ROOT, blocks, pages


def packed(text):
    """Without blanks: the width of a page is another one than that of a source."""
    return "".join(text.split())


def compiled_sources():
    """What is named in a CMakeLists.txt, and the headers beside it."""
    lists = "".join(path.read_text() for folder in ("samples", "tests", "src/tool/new/templates")
                    for path in (ROOT / folder).rglob("CMakeLists.txt"))
    for folder in ("samples", "tests", "src/tool/new/templates"):
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            name = f"{path.parent.name}/{path.name}" if path.parent.name == "code" else path.name
            if path.suffix == ".hpp" or re.search(rf"\b{re.escape(name)}\b", lists):
                yield path


def cited(*folders):
    """{rule: a file that cites it}"""
    result = {}
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                result.update((int(number), path) for number in re.findall(r"\bP([1-9]\d{0,2})\b", text))
    return result


class Code(unittest.TestCase):
    def test_each_block_of_cpp_is_in_a_source_that_is_compiled(self):
        sources = {str(path.relative_to(ROOT)): packed(path.read_text()) for path in compiled_sources()}
        count, missing = 0, []
        for page, text in pages().items():
            for _, block in blocks(text, "cpp"):
                count += 1
                if not any(packed(block) in source for source in sources.values()):
                    missing.append(f"{page}:\n{block}")
        self.assertGreater(count, 9)
        self.assertEqual([], missing, "put them into tests/docs/code, and compile that\n" + "\n".join(missing))

    def test_json_can_be_parsed(self):
        count = 0
        for page, text in pages().items():
            for _, block in blocks(text, "json"):
                with self.subTest(page):
                    json.loads(block)
                count += 1
        self.assertGreater(count, 0)

    def test_a_list_begins_after_a_blank_line_and_is_not_nested(self):
        """GitHub needs neither, MkDocs needs both."""
        wrong = [f"{page}: {item}" for page, text in pages().items() for item in
                 re.findall(r"^(?!- |\d+\. | |\||#).+\n((?:- |\d+\. ).*)|^ +- .*", FENCE.sub("", text), re.MULTILINE)]
        self.assertEqual([], wrong)

    def test_json_of_the_documents_is_json(self):
        for path in (ROOT / "docs").rglob("*.json"):
            json.loads(path.read_text())

    def test_each_rule_has_a_number_of_its_own_and_is_cited_by_a_test_and_no_other_is_cited(self):
        stated = [int(number) for number in
                  re.findall(r'<a id="p(\d+)"></a>\*\*P\1\*\*', (ROOT / "docs/protocol.md").read_text())]
        self.assertGreater(len(stated), 50)
        self.assertEqual(sorted(stated), list(range(1, len(stated) + 1)))
        unknown = {rule: path for rule, path in cited("include", "src", "tests", "docs", "samples", "properties").items()
                   if rule not in stated}
        self.assertEqual(unknown, {})
        self.assertEqual(set(stated) - set(cited("tests")), set())


if __name__ == "__main__":
    unittest.main()
