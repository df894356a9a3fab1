#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/dialogue.schema.json describes what daemons and children really write.

schema_test.py [KCLXX [CHILD...]]: with the tool, generated dialogues too, and what a child answers to them.
"""
import glob
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError as error:
    print(error)
    sys.exit(77)  # skipped

ROOT = pathlib.Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/dialogue.schema.json").read_text())
KCLXX, CHILD = None, []


def validator(side):
    return jsonschema.Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{side}"}]})


SIDES = {side: validator(side) for side in ("daemon", "child")}


def lines_of(transcript):
    """(side, message) of a transcript, or of a file with the daemon's lines alone."""
    for line in pathlib.Path(transcript).read_text().splitlines():
        entry = json.loads(line)
        if "line" in entry:
            yield entry["from"], entry["line"]
        elif "action" in entry:
            yield "daemon", entry


class Schema(unittest.TestCase):
    def check(self, transcripts):
        seen = {"daemon": set(), "child": set()}
        for transcript in transcripts:
            for side, message in lines_of(transcript):
                errors = [error.message for error in SIDES[side].iter_errors(message)]
                self.assertEqual([], errors, f"{transcript}: {str(message)[:200]}")
                seen[side].add(message["action"])
        return seen

    def test_it_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_dialogues_of_the_real_daemon_with_a_child_of_kclxx(self):
        seen = self.check(glob.glob(f"{ROOT}/samples/transcripts/*.jsonl"))
        self.assertLessEqual({"initialize", "processRecords", "checkpoint", "shutdownRequested"}, seen["daemon"])
        self.assertEqual({"status", "checkpoint"}, seen["child"])

    def test_the_dialogue_of_the_package_tests(self):
        self.check([ROOT / "tests/package/dialogue.jsonl"])

    def test_what_the_real_daemon_does_with_a_line_of_a_child_agrees(self):
        """The lines of tests/conformance, which are played on the daemon's own classes: what the schema lets pass, the
        daemon takes; a line with an unknown field, which hangs the shard, does not pass."""
        passed = []
        for line in json.loads((ROOT / "tests/conformance/cases/lines.json").read_text())["lines"]:
            try:
                message = json.loads(line)
            except (ValueError, TypeError):
                continue
            if SIDES["child"].is_valid(message):
                passed.append(message)
        self.assertGreater(len(passed), 5)
        for message in passed:
            self.assertIn(set(message), ({"action", "responseFor"},
                                         {"action", "sequenceNumber", "subSequenceNumber"}))

    def test_what_it_refuses(self):
        for message in ({"action": "status"}, {"action": "status", "responseFor": "initialize", "extra": 1},
                        {"action": "checkpoint", "sequenceNumber": "1"},
                        {"action": "checkpoint", "sequenceNumber": None, "subSequenceNumber": 0},
                        {"action": "checkpoint", "sequenceNumber": "1", "subSequenceNumber": 0, "error": None},
                        {"action": "checkpoint", "sequenceNumber": 1, "subSequenceNumber": 0}, [], None):
            self.assertFalse(SIDES["child"].is_valid(message), message)
        for message in ({"action": "initialize"}, {"action": "processRecords", "records": [{"data": "eA=="}]},
                        {"action": "processRecords", "records": [{"sequenceNumber": "1", "data": "e"}]},
                        {"action": "shutdown", "reason": "OTHER"}, {"action": "checkpoint", "sequenceNumber": "1"}):
            self.assertFalse(SIDES["daemon"].is_valid(message), message)

    def test_every_message_that_is_generated_and_what_a_child_answers(self):
        if KCLXX is None:
            self.skipTest("without the tool")
        with tempfile.TemporaryDirectory() as place:
            for end in ("shutdown", "lease-lost", "shard-end"):
                subprocess.run([KCLXX, "generate", "--output", f"{place}/{end}", "--records", "200", "--aggregate", "4",
                                "--reshard", "1", "--batch", "20", "--end", end], check=True)
            made = glob.glob(f"{place}/*/*.jsonl")
            seen = self.check(made)
            self.assertEqual({"initialize", "processRecords", "leaseLost", "shardEnded", "shutdownRequested"},
                             seen["daemon"])
            if not CHILD:
                return
            for i, file in enumerate(made):
                subprocess.run([KCLXX, "replay", file, "--", KCLXX, "capture", "--output", f"{place}/captured", "--",
                                *CHILD], check=True, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seen = self.check(glob.glob(f"{place}/captured/*.jsonl"))
            self.assertEqual({"status", "checkpoint"}, seen["child"])
            self.assertIn("checkpoint", seen["daemon"])


if __name__ == "__main__":
    KCLXX, CHILD = (sys.argv[1:2] or [None])[0], sys.argv[2:]
    unittest.main(argv=sys.argv[:1])
