#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each link in a document leads somewhere: to a file of the project, to an anchor as GitHub makes it. Links to other
hosts are listed with --list, and not followed."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pages import FENCE, ROOT, pages  # noqa: E402

LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)|<(https?://[^>\s]+)>")
OTHER_HOST = re.compile(r"[a-z]+:")


def prose(text):
    return re.sub(r"(`+)[^`].*?\1", "", FENCE.sub("", text), flags=re.DOTALL)


def anchors(text):
    """As GitHub makes them: small letters, without punctuation, a hyphen for each blank, numbered when repeated."""
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for heading in re.findall(r"^#+ +(.*?)#*$", FENCE.sub("", text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        name, count = slug, 0
        while name in found:
            count += 1
            name = f"{slug}-{count}"
        found.add(name)
    return found


def links():
    for page, text in pages().items():
        for match in LINK.finditer(prose(text)):
            yield page, match[1] or match[2]


class Links(unittest.TestCase):
    def test_each_link_leads_to_a_file_and_an_anchor_that_exist(self):
        texts, broken, count = pages(), [], 0
        for page, link in links():
            if OTHER_HOST.match(link):
                continue
            count += 1
            path, _, anchor = link.partition("#")
            target = (ROOT / page).parent / path if path else ROOT / page
            if not target.exists():
                broken.append(f"{page}: {link}: no such file")
            elif anchor and anchor not in anchors(texts.get(str(target.resolve().relative_to(ROOT)), "")):
                broken.append(f"{page}: {link}: no such anchor")
        self.assertGreater(count, 150)
        self.assertEqual([], broken)

    def test_links_to_other_hosts_are_encrypted(self):
        self.assertEqual([], [f"{page}: {link}" for page, link in links()
                              if OTHER_HOST.match(link) and not link.startswith("https:")])

    def test_each_path_in_the_maps_of_the_source_exists(self):
        """A source file stands there without its extension, and in a table of src/ without that."""
        missing, count = [], 0
        for page in ("docs/architecture.md", "docs/host/README.md", "AGENTS.md"):
            for path in re.findall(r"`([\w*.-]+/[\w*./-]*)`", FENCE.sub("", (ROOT / page).read_text())):
                count += 1
                folders = (ROOT, ROOT / "src", ROOT / "src/kclxx")
                if not any(list(folder.glob(path + end)) for folder in folders for end in ("", ".hpp", ".cpp")):
                    missing.append(f"{page}: {path}")
        self.assertGreater(count, 60)
        self.assertEqual([], missing)

    def test_anchors_are_githubs(self):
        text = "# `a::b`, and *c*\n## A (b)\n## A b\n```\n# no heading\n```\n<a id=\"p1\"></a>"
        self.assertEqual({"ab-and-c", "a-b", "a-b-1", "p1"}, anchors(text))


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(sorted({link for _, link in links() if OTHER_HOST.match(link)})))
    else:
        unittest.main()
