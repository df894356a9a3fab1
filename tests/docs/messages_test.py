#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/messages.md has each message of the library, of kclxx-share and of the tool."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from messages import javascript_failures, literals  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = ["src/kclxx", "src/share", "src/prometheus", "src/tool"]
# Texts of these files are no messages, or explain themselves where they are printed.
LEFT_OUT = {
    "src/kclxx/observability/metrics_recorder.cpp": "families, in docs/metrics.md",
    "src/kclxx/session/action.cpp": "what a failing test prints",
    "src/tool/replay/replay_report.cpp": "the page of --report",
    "src/tool/replay/report_plot.cpp": "the page of --report",
    "src/tool/check/report.cpp": "TAP and JUnit",
    "src/tool/check/badge.cpp": "the picture of check --badge",
    "src/tool/check/report_page.cpp": "the page of check --report",
    "src/tool/html_page.cpp": "the pages of --report",
    "src/tool/local/local_command.cpp": "--help",
    "src/tool/transcript/line_summary.cpp": "JSON",
    "src/tool/daemon/property_table.inc": "keys and their hints, which daemon check prints",
}
# docs/check.md has a table of the rules; what a rule saw is printed with what was expected, and why.
LISTED = re.compile(r"src/tool/check/rules_\w+\.cpp")
# Findings of daemon check: those have an entry. Why they matter and how to mend them, whole sentences, follows them.
FINDINGS = re.compile(r"src/tool/daemon/(\w+_rules?|default_rules)\.[ch]pp")
# What `--help` prints.
HELP = {"add_option", "add_flag", "add_number", "option", "flag", "required", "add_seconds", "add_choice", "app",
        "add_command", "add_subcommand", "footer", "add_flag_callback", "passed_on_command", "print_row", "formatter"}
# Names of files and programs, parts of commands and of formats.
NO_MESSAGES = ROOT / "tests/docs/no_messages.txt"


def pieces(text):
    """What is fixed in a text: between what printf fills in, and without what another piece may end or begin with."""
    for part in re.split(r"%[-.*0-9]*(?:ll|l|z)?[a-zA-Z]|\\n", text):
        part = " ".join(part.split()).strip(" '\":;,().")
        if len(re.findall(r"(?<!\S)[\W_]*[A-Za-z]{2,}", part)) > 1:
            yield part


def texts():
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if name in LEFT_OUT or LISTED.fullmatch(name):
                continue
            if path.suffix in (".cpp", ".hpp", ".inc"):
                for text, calls in literals(path.read_text()):
                    is_sentence = text.strip()[:1].isupper() or text.endswith(".")
                    if not HELP.intersection(calls) and not (FINDINGS.fullmatch(name) and is_sentence):
                        yield from ((name, piece) for piece in pieces(text))
            elif path.suffix == ".js":
                for text in javascript_failures(path.read_text()):
                    yield from ((name, piece) for piece in pieces(text))


def described():
    page = (ROOT / "docs/messages.md").read_text()
    return " ".join(" ".join(re.findall(r"`([^`]+)`", page)).split())


class Messages(unittest.TestCase):
    maxDiff = None

    def test_each_message_of_the_sources_has_its_entry(self):
        page = described()
        allowed = set(NO_MESSAGES.read_text().splitlines())
        found = list(texts())
        self.assertGreater(len(found), 400)
        missing = sorted({f"{name}: {piece}" for name, piece in found
                          if piece not in page and piece not in allowed})
        self.assertEqual([], missing, "\nstate them in docs/messages.md, or, if they are none, in "
                         "tests/docs/no_messages.txt")

    def test_what_is_listed_as_no_message_is_in_the_sources(self):
        found = {piece for _, piece in texts()}
        self.assertEqual([], [line for line in NO_MESSAGES.read_text().splitlines() if line not in found])

    def test_each_entry_is_a_message_of_the_sources(self):
        """The other way round: an entry whose words are nowhere in the sources is stale."""
        page = (ROOT / "docs/messages.md").read_text()
        sources = " | ".join(piece for _, piece in texts())
        stale = []
        for row in re.findall(r"^\| (.*?) \|", page, re.MULTILINE):
            for entry in re.findall(r"`([^`]+)`", row):
                pairs = set(re.findall(r"(?=\b([a-z]{2,} [a-z]{2,})\b)", entry))
                if len(pairs) > 1 and sum(pair in sources for pair in pairs) * 2 < len(pairs):
                    stale.append(entry)
        self.assertEqual([], stale)

    def test_the_extractor_sees_literals_and_calls(self):
        source = 'f(g("a b" /* "x y" */ "c"), {"d"}); // "e f"\nh(R"(i j)");'
        self.assertEqual([("a bc", ("f", "g")), ("d", ("f", "")), ("i j", ("h",))], list(literals(source)))
        self.assertEqual(["no %s; log: %s", "it's"],
                         list(javascript_failures("new Failure(`no ${a}; log: ${c}`); new Error('it\\'s');")))


if __name__ == "__main__":
    unittest.main()
