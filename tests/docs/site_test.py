#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/site: what makes the site's source of the documents, and what follows its links."""
import pathlib
import subprocess
import tempfile
import unittest

LIB = pathlib.Path(__file__).parents[2] / "scripts/lib/site"


def write(folder, **files):
    for name, text in files.items():
        path = pathlib.Path(folder) / name.replace("__", "/").replace("_md", ".md").replace("_cpp", ".cpp")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Stage(unittest.TestCase):
    def staged(self, **files):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        repository, site = f"{self.place.name}/a", f"{self.place.name}/b"
        write(repository, **files)
        subprocess.run([LIB / "stage", repository, site], check=True)
        return pathlib.Path(site)

    def test_links_outside_of_docs_lead_to_pages_with_the_files_text(self):
        site = self.staged(README_md="[a](docs/a.md#x) [s](src/)", docs__a_md="[b](../src/b.cpp) [r](../README.md#y)",
                           src__b_cpp="int b;\n")
        self.assertEqual("[a](a.md#x) [s](source/src.md)", (site / "index.md").read_text())
        self.assertEqual("[b](source/src/b.cpp.md) [r](index.md#y)", (site / "a.md").read_text())
        self.assertIn("````cpp\nint b;\n````", (site / "source/src/b.cpp.md").read_text())
        self.assertIn("[b.cpp](src/b.cpp.md)", (site / "source/src.md").read_text())

    def test_code_is_left_alone(self):
        text = "```cpp\nf([](../src/b.cpp) {});\n```\n`[](../src/b.cpp)`"
        self.assertEqual(text, (self.staged(docs__a_md=text, src__b_cpp="") / "a.md").read_text())

    def test_a_link_to_nothing_is_left_for_the_builder_to_report(self):
        self.assertEqual("[x](x.md)", (self.staged(docs__a_md="[x](x.md)") / "a.md").read_text())


class Links(unittest.TestCase):
    def follow(self, page):
        with tempfile.TemporaryDirectory() as site:
            pathlib.Path(site, "a.html").write_text(page)
            pathlib.Path(site, "b.html").write_text('<h1 id="there">b</h1>')
            return subprocess.run([LIB / "links", site], capture_output=True, text=True, check=False)

    def test_pages_and_anchors_that_exist_pass(self):
        done = self.follow('<a href="b.html#there"></a><a href="b.html"></a><a href="https://example.org"></a>')
        self.assertEqual((0, "2 pages, 2 links inside, 1 to other hosts, 0 broken\n"), (done.returncode, done.stdout))

    def test_a_missing_page_image_or_anchor_is_named(self):
        for link in ('<a href="c.html"></a>', '<a href="b.html#x"></a>', '<img src="c.png">'):
            done = self.follow(link)
            self.assertEqual(1, done.returncode, link)
            self.assertIn("a.html: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
