#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each command that the documents show is run here, or by another test that tests/docs/commands.txt names.

commands_test.py KCLXX WORD_COUNT PRINT_RECORDS
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

LIST = ROOT / "tests/docs/commands.txt"
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


def listed():
    """command -> "run", or the file of the test that runs it."""
    result = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            how, command = line.split(None, 1)
            result[command] = how
    return result


class Commands(unittest.TestCase):
    def test_each_command_is_run_somewhere(self):
        known, shown = listed(), list(commands())
        self.assertGreater(len(shown), 60)
        self.assertEqual([], sorted({f"{page}: {command}" for page, command in shown if command not in known}),
                         f"\nsay in {LIST.name} who runs them")

    def test_the_list_has_no_other_command(self):
        shown = {command for _, command in commands()}
        self.assertEqual([], [command for command in listed() if command not in shown])

    def test_what_runs_the_others_is_there(self):
        for command, how in listed().items():
            if how not in ("run", "reader"):
                path = ROOT / how
                self.assertTrue(path.is_file(), f"{command}: {how}")
                subcommand = re.search(r"kclxx (?:local |daemon )?([a-z-]+)", command)
                if subcommand:
                    self.assertIn(subcommand[1], path.read_text(), f"{command}: {how}")

    def test_the_commands_that_can_be_run_here(self):
        """Each page has a directory of its own, with what the commands name; each command a shell of its own."""
        if not PROGRAMS:
            self.skipTest("without the programs")
        places, known = {}, listed()
        with tempfile.TemporaryDirectory() as work:
            os.makedirs(f"{work}/bin")
            os.symlink(PROGRAMS["kclxx"], f"{work}/bin/kclxx")
            environment = {**os.environ, "PATH": f"{work}/bin:{os.environ['PATH']}", "AWS_REGION": "eu-central-1"}
            count = 0
            for page, command in commands():
                if known.get(command) != "run":
                    continue
                if page not in places:
                    places[page] = f"{work}/{len(places)}"
                    furnish(places[page])
                done = subprocess.run(["bash", "-euc", command], cwd=places[page], env=environment, text=True,
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False)
                self.assertEqual(0, done.returncode, f"{page}: {command}\n{done.stdout}\n{done.stderr}")
                count += 1
        self.assertGreater(count, 15)

    def test_the_examples_of_help_run(self):
        if not PROGRAMS:
            self.skipTest("without the programs")
        with tempfile.TemporaryDirectory() as work:
            os.makedirs(f"{work}/bin")
            os.symlink(PROGRAMS["kclxx"], f"{work}/bin/kclxx")
            environment = {**os.environ, "PATH": f"{work}/bin:{os.environ['PATH']}"}
            for subcommand in ("generate", "new", "replay"):
                place = f"{work}/{subcommand}"
                furnish(place)
                os.makedirs(f"{place}/counts")
                pathlib.Path(f"{place}/views.jsonl").write_text('{"page":"/"}\n')
                shown = subprocess.run(["kclxx", subcommand, "--help"], env=environment, text=True,
                                       capture_output=True, check=True).stdout
                examples = re.findall(r"^  (kclxx .*)", shown.partition("\nExample")[2], re.MULTILINE)
                self.assertGreater(len(examples), 1)
                for command in examples:
                    subprocess.run("rm -rf clicks", cwd=place, shell=True, check=True)
                    done = subprocess.run(["bash", "-euc", command], cwd=place, env=environment, text=True,
                                          stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False)
                    self.assertEqual(0, done.returncode, f"{command}\n{done.stdout}\n{done.stderr}")


def furnish(place):
    os.makedirs(f"{place}/captured")
    os.symlink(ROOT / "properties", f"{place}/properties")
    os.symlink(ROOT / "samples", f"{place}/samples")
    shutil.copy(ROOT / "properties/aws.properties", f"{place}/my.properties")
    os.symlink(PROGRAMS["word_count"], f"{place}/word_count")
    os.symlink(PROGRAMS["print_records"], f"{place}/my_processor")
    transcripts = sorted((ROOT / "samples/transcripts").glob("*.jsonl"))
    for transcript in transcripts:
        shutil.copy(transcript, f"{place}/captured")
    shutil.copy(transcripts[0], f"{place}/shard0.jsonl")
    with open(f"{place}/shardId-000000000003.parked.jsonl", "w", encoding="utf-8") as file:
        page = (ROOT / "docs/failures.md").read_text()
        file.write(re.search(r'^\{"application".*\n', page, re.MULTILINE)[0])
    shutil.copy(f"{place}/shardId-000000000003.parked.jsonl", f"{place}/again.jsonl")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        PROGRAMS = dict(zip(("kclxx", "word_count", "print_records"), map(os.path.abspath, sys.argv[1:4])))
    unittest.main(argv=sys.argv[:1])
