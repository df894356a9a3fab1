#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Whichever of kclxx's classes does not load, AWS's run the daemon, and one line says so: fallback_test.py KCLXX KCL."""
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

TOOL, KCL = sys.argv.pop(1), sys.argv.pop(1)
# The daemon refuses it, whichever main class reads it.
FILE = "executableName = /bin/true\napplicationName = {}\nAwsCredentialsProvider = x\nregionName = us-east-1\n"
FALLBACK = "kclxx daemon run: kclxx's classes do not load beside this daemon's, "
THEIRS = "For more information, visit: https://github.com/awslabs/amazon-kinesis-client"
OURS = "kclxx daemon run: the daemon does not start"


class Fallback(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.jars = pathlib.Path(subprocess.run([TOOL, "daemon", "fetch", "--kcl", KCL], check=True, stdin=subprocess.DEVNULL,
                                               stdout=subprocess.PIPE, text=True).stdout.strip())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in "ab":
            (self.folder / f"{name}.properties").write_text(FILE.format(f"application-{name}"))

    def run_daemon(self, *files):
        run = subprocess.run([TOOL, "daemon", "run", *(self.folder / file for file in files), "--kcl", KCL,
                              "--jars", self.folder / "jars"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, text=True)
        self.assertEqual(run.returncode, 1, run.stderr)
        return run.stderr

    def damage(self, name, *, with_checksum=False):
        """A folder of jars, with the class of that name cut in half."""
        jars = self.folder / "jars"
        jars.mkdir(exist_ok=True)
        [own] = self.own_jars()
        for file in self.jars.iterdir():
            is_copied = file.suffix == ".jar" and not file.name.startswith("kclxx-") or (
                with_checksum and file == own.with_suffix(".sha256"))
            if is_copied and not (jars / file.name).exists():
                (jars / file.name).symlink_to(file)
        with zipfile.ZipFile(own) as source, zipfile.ZipFile(jars / own.name, "w") as target:
            for entry in source.namelist():
                data = source.read(entry)
                target.writestr(entry, data[: len(data) // 2] if entry == name else data)

    def own_jars(self):
        """The jar of this tool is the one that `run` names."""
        printed = subprocess.run([TOOL, "daemon", "print-command", self.folder / "a.properties", "--kcl", KCL], check=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
        return [jar for jar in self.jars.glob("kclxx-*.jar") if jar.name in printed]

    def classes(self):
        with zipfile.ZipFile(self.own_jars()[0]) as jar:
            names = [name for name in jar.namelist() if name.endswith(".class")]
        # Java itself needs the main class, and `check` alone the reader.
        return [name for name in names if not name.endswith(("/StreamsDaemon.class", "/PropertiesReader.class"))]

    def test_one_stream_runs_with_what_is_not_damaged(self):
        self.damage("")
        whole = self.run_daemon("a.properties")
        self.assertIn(OURS, whole)
        self.assertNotIn("AWS's run", whole)
        for name in self.classes():
            with self.subTest(name):
                self.damage(name)
                said = self.run_daemon("a.properties")
                lines = [line for line in said.splitlines() if line.startswith(FALLBACK)]
                if lines:
                    self.assertEqual(len(lines), 1)
                    self.assertIn("so only AWS's run: ", lines[0])
                    self.assertIn(THEIRS, said)
                else:
                    self.assertIn("warning: the daemon's own writer writes the batches", said)
                    self.assertIn("BatchMessageWriter", name)

    def test_several_streams_do_not_start_without_the_classes_that_they_need(self):
        self.damage("")
        self.assertIn(OURS + " for application-a", self.run_daemon("a.properties", "b.properties"))
        for name in self.classes():
            if "BatchMessageWriter" in name:
                continue
            with self.subTest(name):
                self.damage(name)
                said = self.run_daemon("a.properties", "b.properties")
                self.assertIn(FALLBACK + "and several streams in one process need them: ", said)

    def test_a_jar_that_is_not_as_it_was_compiled_does_not_run(self):
        self.damage("software/amazon/kinesis/multilang/StreamsDaemon.class", with_checksum=True)
        said = self.run_daemon("a.properties")
        self.assertRegex(said, r"only AWS's classes run: .*/kclxx-.*\.jar is not as it was compiled\n")
        self.assertIn(THEIRS, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
