#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that the documents show: those that need nothing but the tool, the samples and the files of a page are
run, and of all others the tool must know the subcommand and the options.

commands_test.py KCLXX WORD_COUNT README_PROGRAM
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pages import ROOT, blocks, pages  # noqa: E402

RUN = re.compile(r"(cp|mkdir|mv|printf|seq|kclxx (replay|check|daemon check))\b")
# A child that furnish() does not bring; a recording that fits the child; one whole check is enough.
NOT_HERE = re.compile(r" -- (?!\./(word_count|my_processor)\b)|--expect |check -- \./my_processor")
HOST = re.compile(r"kclxx (daemon|health|leases|local)\b")  # a build can be without these commands
PROGRAMS = {}


def commands():
    """(page, command) for each line of the blocks for a shell; a line that ends with a backslash continues."""
    texts = pages()
    for page in [ROOT / "src/tool/new/templates/README.md", *sorted((ROOT / "samples").rglob("README.md"))]:
        texts[str(page.relative_to(ROOT))] = page.read_text()
    for page, text in texts.items():
        for _, block in blocks(text, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                command = " ".join(re.sub(r"(^|\s)#.*", "", line).split())
                if command:
                    yield page, command


class Commands(unittest.TestCase):
    def setUp(self):
        if not PROGRAMS:
            self.skipTest("without the programs")
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = work.name
        os.makedirs(f"{self.work}/bin")
        os.symlink(PROGRAMS["kclxx"], f"{self.work}/bin/kclxx")
        self.environment = {**os.environ, "PATH": f"{self.work}/bin:{os.environ['PATH']}", "AWS_REGION": "eu-central-1",
                            "KCLXX_PARKING_DIR": self.work}

    def run_command(self, command, place, of):
        done = subprocess.run(["bash", "-euc", command], cwd=place, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False)
        self.assertEqual(0, done.returncode, f"{of}: {command}\n{done.stdout}\n{done.stderr}")

    def test_the_tool_has_each_subcommand_and_option(self):
        count = 0
        for page, command in commands():
            if not PROGRAMS["has_host"] and HOST.search(command):
                continue
            for subcommand, rest in re.findall(r"\bkclxx ((?:daemon |local )?[a-z][a-z-]*)((?: (?!-- |[|&>]).)*)", command):
                count += 1
                shown = subprocess.run([PROGRAMS["kclxx"], *subcommand.split(), "--help"], text=True,
                                       capture_output=True, check=False)
                self.assertEqual(0, shown.returncode, f"{page}: {command}")
                for option in re.findall(r" (--[a-z-]+)", rest):
                    self.assertIn(option, shown.stdout, f"{page}: {command}")
        self.assertGreater(count, 30 if PROGRAMS["has_host"] else 15)

    def test_the_commands_that_can_be_run_here(self):
        """Each page has a directory of its own, with what the commands name; each command a shell of its own."""
        places, count = {}, 0
        for page, command in commands():
            if not RUN.match(command) or NOT_HERE.search(command) or not PROGRAMS["has_host"] and HOST.search(command):
                continue
            if page not in places:
                places[page] = f"{self.work}/{len(places)}"
                furnish(places[page])
            self.run_command(command, places[page], page)
            count += 1
        self.assertGreater(count, 10)

    def test_the_program_of_the_readme_prints_what_the_readme_shows(self):
        """The shard's name ends with random digits, and lines of the log come when they like."""
        command, shown = re.search(r"^```sh\n(printf .*?)\n```\n\n```\n(.*?)^```", pages()["README.md"],
                                   re.MULTILINE | re.DOTALL).groups()
        furnish(f"{self.work}/readme")
        printed = subprocess.run(["bash", "-euc", command], cwd=f"{self.work}/readme", env=self.environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=True).stdout
        self.assertEqual(*(sorted(re.sub(r"(shardId-\d+)-[0-9a-f]{12}", r"\1", text).splitlines()) for text in (shown, printed)))

    def test_the_examples_of_help_run(self):
        for subcommand in ("feed", "new", "replay"):
            place = f"{self.work}/{subcommand}"
            furnish(place)
            os.makedirs(f"{place}/counts")
            pathlib.Path(f"{place}/views.jsonl").write_text('{"page":"/"}\n')
            shown = subprocess.run(["kclxx", subcommand, "--help"], env=self.environment, text=True,
                                   capture_output=True, check=True).stdout
            examples = re.findall(r"^  (kclxx .*)", shown.partition("\nExample")[2], re.MULTILINE)
            self.assertGreater(len(examples), 1)
            for command in examples:
                self.run_command(f"rm -rf clicks; {command}", place, "--help")


def furnish(place):
    os.makedirs(f"{place}/captured")
    os.symlink(ROOT / "properties", f"{place}/properties")
    os.symlink(ROOT / "samples", f"{place}/samples")
    shutil.copy(ROOT / "properties/aws.properties", f"{place}/my.properties")
    os.symlink(PROGRAMS["word_count"], f"{place}/word_count")
    os.symlink(PROGRAMS["readme_program"], f"{place}/my_processor")
    transcripts = sorted((ROOT / "samples/transcripts").glob("*.jsonl"))
    for transcript in transcripts:
        shutil.copy(transcript, f"{place}/captured")
    shutil.copy(transcripts[0], f"{place}/shard0.jsonl")
    with open(f"{place}/shardId-000000000003.parked.jsonl", "w", encoding="utf-8") as file:
        page = (ROOT / "docs/failures.md").read_text()
        file.write(re.search(r'^\{"application".*\n', page, re.MULTILINE)[0])
    for name in ("again", "machine1", "machine2"):
        shutil.copy(f"{place}/shardId-000000000003.parked.jsonl", f"{place}/{name}.jsonl")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PROGRAMS = dict(zip(("kclxx", "word_count", "readme_program"), map(os.path.abspath, sys.argv[1:4])))
        usage = subprocess.run([PROGRAMS["kclxx"], "--help"], text=True, capture_output=True, check=True).stdout
        PROGRAMS["has_host"] = re.search(r"^  daemon ", usage, re.MULTILINE) is not None
    unittest.main(argv=sys.argv[:1])
