#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/site/links: a link to nothing is found."""
import pathlib
import subprocess
import tempfile
import unittest

LIB = pathlib.Path(__file__).parents[2] / "scripts/lib/site"


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
