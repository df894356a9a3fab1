#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""samples/archive through chaos, with a disk that is full at times: each event is in one file, and in that of its hour.

    archive_test.py [--kcl 3] [--seed 1] [--minutes 2]

Needs root, for the disk, which is a tmpfs.
"""
import collections
import errno
import gzip
import json
import subprocess
import time

import chaos_test
from harness import settings
from harness.case import main

chaos_test.ACTIONS["fill_disk"] = 2
FOLDER = "disk/archive"


def event(id):
    """Of one of two hours."""
    return json.dumps({"at": 3_600_000 * (len(id) % 2) + 1, "id": id})


class Archive(chaos_test.Chaos):
    records_a_second, records_a_minute = 200, 8000

    def test_nothing_is_lost(self):
        calm = self.live_through_chaos()
        self.assert_none("failures of the proxy", self.app.proxy.failures)
        archived = collections.Counter(self.archived())
        put = self.app.producer.put
        self.assert_none("events that are archived twice", [id for id, times in archived.items() if times > 1])
        self.assertEqual(set(archived), set(put))
        self.figures(f"seed {settings.SEED}, {settings.MINUTES:g} minutes, {len(put)} events in {len(self.read)} files; "
                     f"{self.happened()}; all archived {calm:.0f} s after the last of it; 0 missing, 0 twice")

    def application(self, shards, **options):
        app = super().application(shards, **options)
        app.producer.payload = event
        app.processed = lambda: set(self.archived())
        disk = app.directory / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "kclxx-archive", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=True)
        (app.directory / FOLDER).mkdir()
        (app.directory / "archive").symlink_to(settings.BUILD / "samples/archive/archive")
        app.environment["KCLXX_PARKING_DIR"] = str(app.directory / "parked")
        self.read = {}  # of files with their final names: their ids
        return app

    def archived(self):
        """The ids of all events in the archive, as often as they are in it."""
        for path in (self.app.directory / FOLDER).glob("*T*/*.json.gz"):
            if path not in self.read:
                events = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
                hours = {"1970-01-01T00": 1, "1970-01-01T01": 3_600_001}
                self.assertEqual({one["at"] for one in events}, {hours[path.parent.name]}, path)
                self.read[path] = [one["id"] for one in events]
        return [id for ids in self.read.values() for id in ids]

    def start_worker(self):
        worker = self.app.start_worker(f"worker-{len(self.app.workers)}", executableName=f"./archive {FOLDER} 2")
        self.app.expect_end(worker)  # chaos looks itself
        self.running.append(worker)

    def fill_disk(self):
        filler = self.app.directory / "disk/filler"
        if filler.exists():
            return False
        try:
            with open(filler, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
        except OSError as error:
            self.assertEqual(error.errno, errno.ENOSPC)
        self.later.append((time.monotonic() + self.random.uniform(3, 8), filler.unlink))
        return True


if __name__ == "__main__":
    main()
