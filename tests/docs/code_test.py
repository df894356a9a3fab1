#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each block of code in the documents is in a source that is compiled."""
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pages import FENCE, ROOT, blocks, pages  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
