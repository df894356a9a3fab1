#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The emulators' keeper, with a stand-in for `kclxx local`: what goes wrong is reported, and where."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from harness import services

# Its answers are in the files that are named like the commands; the last line is the status.
TOOL = '''#!/bin/sh
echo "$2" >>"$(dirname "$0")/asked"
. "$(dirname "$0")/$2"
'''
ADDRESSES = '''echo "export AWS_ENDPOINT_URL_KINESIS='http://127.0.0.1:1'"
echo "export AWS_ENDPOINT_URL_DYNAMODB='http://127.0.0.1:2'"
'''


class KeeperOfEmulators(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name) / "services"
        self.tool = pathlib.Path(folder.name) / "src" / "tool"
        self.tool.mkdir(parents=True)
        (self.tool / "kclxx").write_text(TOOL)
        (self.tool / "kclxx").chmod(0o755)
        os.environ["KCLXX_E2E_BUILD"] = folder.name  # for the keeper
        self.answer(start=ADDRESSES, stop="")

    def answer(self, **commands):
        for command, answer in commands.items():
            (self.tool / command).write_text(answer)

    def asked(self):
        return (self.tool / "asked").read_text().split()

    def start(self):
        return services.Emulators(self.directory, os.getpid())

    def has_addresses(self):
        return (self.directory / "addresses").exists()

    def test_it_starts_and_ends_them(self):
        emulators = self.start()
        self.assertEqual(emulators.services.kinesis_url, "http://127.0.0.1:1")
        self.assertTrue(self.has_addresses())
        emulators.end()
        self.assertEqual(self.asked(), ["start", "stop"])
        self.assertFalse(self.has_addresses())

    def test_emulators_that_cannot_be_ended_are_an_error(self):
        self.answer(stop="echo 'java will not go'; exit 3")
        emulators = self.start()
        with self.assertRaisesRegex(AssertionError, "status 3: java will not go"):
            emulators.end()
        self.assertTrue(self.has_addresses(), "a stop from elsewhere would take them for ended")

    def test_emulators_that_do_not_start_are_an_error(self):
        self.answer(start="echo 'no java'; exit 4")
        with self.assertRaisesRegex(AssertionError, "status 4: no java"):
            self.start()

    def test_what_fails_after_the_start_is_reported_and_they_are_ended(self):
        self.answer(start="echo something else")
        with self.assertRaisesRegex(AssertionError, "KeyError: 'KINESIS'"):
            self.start()
        self.assertEqual(self.asked(), ["start", "stop"])

    def test_they_end_when_the_caller_is_gone(self):
        caller = subprocess.Popen([sys.executable, "-c", ""])
        caller.wait()
        keeper = subprocess.run([sys.executable, "-B", services.__file__, "keep",
                                 self.make_directory(), str(caller.pid)])
        self.assertEqual((keeper.returncode, self.asked()), (0, ["start", "stop"]))

    def make_directory(self):
        self.directory.mkdir()
        return self.directory


if __name__ == "__main__":
    unittest.main()
