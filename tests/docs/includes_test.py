#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each include goes the way of the tables in docs/architecture.md and docs/host/README.md.

A row names a folder (or a pattern of files; the longest that fits counts), and the folders and libraries that it may
include besides itself, the public interface and the standard library. A folder that is Pure has no header of what waits,
is shared by threads, or reaches out of the process. A command of the tool includes no other command's folder.
"""
import fnmatch
import re
import unittest

from pages import FENCE, ROOT

LIBRARIES = {"Boost": "boost/", "nlohmann_json": "nlohmann/", "CLI11": "CLI/", "libcurl": "curl/"}
EFFECTS = re.compile("thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|barrier|iostream|fstream|csignal|"
                     r"cstdio|filesystem|[a-z/]*\.h")
VECTORS = ("immintrin.h", "arm_neon.h")  # computing, not reaching out
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(.*)", re.MULTILINE)


class Row:
    def __init__(self, pattern, what, may):
        self.pattern = pattern if pattern.startswith("include/") else f"src/{pattern}"
        self.is_pure = "Pure" in what
        words = re.findall(r"[\w-]+", may)
        self.libraries = tuple(LIBRARIES[word] for word in words if word in LIBRARIES)
        self.folders = [word for word in words if word not in LIBRARIES]

    def fits(self, path):
        return fnmatch.fnmatch(path, self.pattern + ("*" if self.pattern.endswith("/") else ""))


def rows():
    tables = "".join((ROOT / page).read_text().split("## Folders")[1].split("\n## ")[0]
                     for page in ("docs/architecture.md", "docs/host/README.md"))
    return [Row(pattern, what, may) for patterns, what, may in re.findall(r"^\| (`.*?`) \| (.*?) \| (.*?) ?\|$", tables, re.MULTILINE)
            for pattern in re.findall("`(.*?)`", patterns)]


def why_not(row, path, header):
    """`header` with its quote or bracket. None when the file may include it."""
    quoted = re.match(r'"([^"]*)"', header)
    bracketed = re.match("<([^>]*)>", header)
    if not quoted and not bracketed:
        return "is not a plain include"
    name = (quoted or bracketed)[1]
    if ".." in name:
        return "goes up by a relative path"
    if quoted:
        own = row.pattern.removeprefix("src/").removeprefix("kclxx/")
        if not name.startswith(own) and name.split("/")[0] not in row.folders:
            return "is of a folder that this one must not know"
        if name.startswith("tool/") and path != "src/tool/main.cpp":
            other, mine = (text.split("/")[1] if text.count("/") > 1 else "" for text in (name, path.removeprefix("src/")))
            if other != mine and (ROOT / f"src/tool/{other}/{other}_command.cpp").exists():
                return "is of another command"
        return None
    if name.startswith("kclxx/") or name in VECTORS:
        return None
    if any(name.startswith(library) for library in LIBRARIES.values()):
        return None if name.startswith(row.libraries) else "is of a library that this folder must not know"
    if EFFECTS.fullmatch(name) and (row.is_pure or path.startswith("include/") and "." in name):
        return "is an effect, and this folder is pure"
    return None


def violations(path, text):
    fitting = [row for row in rows() if row.fits(path)]
    if not fitting:
        return [f"{path}: its folder has no row in a map"]
    row = max(fitting, key=lambda row: len(row.pattern))
    found = ((header, why_not(row, path, header)) for header in INCLUDE.findall(text))
    return [f"{path}: {header}: {reason}" for header, reason in found if reason]


class Includes(unittest.TestCase):
    def test_every_include_goes_the_way_of_the_table(self):
        found, used, count = [], set(), 0
        for path in sorted([*(ROOT / "include").rglob("*.?pp"), *(ROOT / "src").rglob("*.?pp")]):
            name = str(path.relative_to(ROOT))
            if "/templates/" in name:  # of users' projects
                continue
            count += 1
            found += violations(name, path.read_text())
            used |= {row.pattern for row in rows() if row.fits(name)}
        self.assertEqual([], found)
        self.assertEqual({row.pattern for row in rows()}, used, "a row is for files that exist")
        self.assertGreater(count, 100)

    def test_each_path_in_the_maps_exists(self):
        """A source file stands there without its extension, and in a table of src/ without that."""
        missing = []
        for page in ("docs/architecture.md", "docs/host/README.md", "AGENTS.md"):
            for path in re.findall(r"`([\w*.-]+/[\w*./-]*)`", FENCE.sub("", (ROOT / page).read_text())):
                folders = (ROOT, ROOT / "src", ROOT / "src/kclxx")
                if not any(list(folder.glob(path + end)) for folder in folders for end in ("", ".hpp", ".cpp")):
                    missing.append(f"{page}: {path}")
        self.assertEqual([], missing)

    def test_each_document_that_a_source_names_exists(self):
        files = [path for folder in ("include", "src", "samples", "properties", "scripts")
                 for path in (ROOT / folder).rglob("*") if path.is_file()]
        missing = {f"{path.relative_to(ROOT)}: {page}" for path in files
                   for page in re.findall(r"\bdocs/[\w/-]+\.\w+", path.read_text(encoding="utf-8", errors="replace"))
                   if not (ROOT / page).exists()}
        self.assertEqual(set(), missing)

    def test_an_include_against_the_table_is_found(self):
        for path, text in [("src/kclxx/io/a.cpp", '#include "protocol/a.hpp"'), ("src/kclxx/io/a.cpp", "#include <CLI/CLI.hpp>"),
                           ("src/kclxx/io/a.cpp", "  #  include   <CLI/CLI.hpp>  // why"), ("src/kclxx/io/a.cpp", "#include HEADER"),
                           ("src/kclxx/io/a.cpp", '#include "io/../session/session.hpp"'), ("src/utilities/a.cpp", ""),
                           ("src/kclxx/session/a.cpp", "#include <mutex>"), ("src/kclxx/session/a.cpp", "#include <unistd.h>"),
                           ("include/kclxx/run.hpp", "#include <boost/asio.hpp>"), ("include/kclxx/run.hpp", "#include <unistd.h>"),
                           ("include/kclxx/run.hpp", '#include "io/signals.hpp"'),
                           ("src/tool/check/a.cpp", '#include "tool/replay/faults.hpp"'),
                           ("src/tool/process/a.cpp", '#include "tool/check/rule.hpp"'),
                           ("src/tool/process/a.cpp", '#include "host/packages.hpp"')]:
            self.assertNotEqual([], violations(path, text), (path, text))
        for path, text in [("src/kclxx/io/a.cpp", "#include <sys/uio.h>\n// #include <CLI/CLI.hpp>"),
                           ("src/tool/main.cpp", '#include "tool/check/rule.hpp"\n#include "host/commands.hpp"'),
                           ("src/tool/check/a.cpp", '#include "tool/process/program.hpp"')]:
            self.assertEqual([], violations(path, text), (path, text))


if __name__ == "__main__":
    unittest.main()
