#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""samples/archive through chaos, over a disk that is full at times, or S3 behind a network that fails: each event is in one
file, and in that of its tenant and hour. tests/archive has what needs no daemon.

    archive_test.py [--s3] [--kcl 3] [--seed 1] [--minutes 2]

Needs root, for the disk, which is a tmpfs.
"""
import collections
import errno
import gzip
import json
import pathlib
import subprocess
import sys
import time

import chaos_test
from harness import settings
from harness.case import main

sys.path.insert(0, str(settings.SOURCE / "tests" / "archive"))
import s3_server  # noqa: E402

chaos_test.ACTIONS["disturb_store"] = 2
FOLDER = "disk/archive"


def event(id):
    """Of one of two hours."""
    return json.dumps({"tenant": "a/b", "at": 3_600_000 * (len(id) % 2) + 1, "id": id})


class Archive(chaos_test.Chaos):
    records_a_second, records_a_minute = 200, 8000

    def test_nothing_is_lost(self):
        calm = self.live_through_chaos()
        self.assert_none("failures of the proxy", self.app.proxy.failures)
        archived = collections.Counter(self.archived())
        put = self.app.producer.put
        self.assert_none("events that are archived twice", [id for id, times in archived.items() if times > 1])
        self.assertEqual(set(archived), set(put))
        self.figures(f"seed {settings.SEED}, {settings.MINUTES:g} minutes, {len(put)} events in {len(self.read)} files of "
                     f"{'S3' if settings.S3 else 'a folder'}; {self.happened()}; all archived {calm:.0f} s after the last of "
                     "it; 0 missing, 0 twice")

    def application(self, shards, **options):
        if not settings.S3:
            s3_server.own_mounts()
        app = super().application(shards, **options)
        app.producer.payload = event
        app.processed = lambda: set(self.archived())
        (app.directory / "archive").symlink_to(settings.BUILD / "samples/archive/archive")
        self.read = {}  # of files with their final names: their ids
        if settings.S3:
            self.start_s3(app)
        else:
            disk = app.directory / "disk"
            disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "kclxx-archive", disk], check=True)
            self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=True)
            (app.directory / FOLDER).mkdir()
            self.location = FOLDER
        return app

    def start_s3(self, app):
        import boto3
        keys = ("local", "local")  # as the harness has for Kinesis
        folder = pathlib.Path(app.directory) / "s3"
        folder.mkdir()
        server = s3_server.Server(settings.BUILD / "s3_server", folder, keys)
        self.addCleanup(server.stop)
        self.s3_proxy = s3_server.Proxy(server.port)
        self.addCleanup(self.s3_proxy.stop)
        self.s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server.port}", region_name="us-east-1",
                               aws_access_key_id=keys[0], aws_secret_access_key=keys[1])
        self.s3.create_bucket(Bucket="archive")
        app.environment["AWS_ENDPOINT_URL_S3"] = f"http://127.0.0.1:{self.s3_proxy.port}"
        app.environment["AWS_REGION"] = "us-east-1"
        self.location = "s3://archive/events"

    def new_files(self):
        """Names and contents of the files with final names that were not read yet."""
        if settings.S3:
            for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket="archive", Prefix="events/tenant="):
                for entry in page.get("Contents", []):
                    if entry["Key"] not in self.read:
                        yield entry["Key"], self.s3.get_object(Bucket="archive", Key=entry["Key"])["Body"].read()
        else:
            for path in (self.app.directory / FOLDER).glob("tenant=*/*/*/*.json.gz"):
                if str(path) not in self.read:
                    yield str(path), path.read_bytes()

    def archived(self):
        """The ids of all events in the archive, as often as they are in it."""
        for name, content in self.new_files():
            events = [json.loads(line) for line in gzip.decompress(content).splitlines()]
            folder = "/".join(name.split("/")[-4:-1])
            hours = {"tenant=a%2Fb/date=1970-01-01/hour=00": 1, "tenant=a%2Fb/date=1970-01-01/hour=01": 3_600_001}
            self.assertEqual({event["at"] for event in events}, {hours[folder]}, name)
            self.read[name] = [event["id"] for event in events]
        return [id for ids in self.read.values() for id in ids]

    def start_worker(self):
        worker = self.app.start_worker(f"worker-{len(self.app.workers)}", executableName=f"./archive {self.location} 2")
        self.app.expect_end(worker)  # chaos looks itself
        self.running.append(worker)

    def disturb_store(self):
        return self.disturb_network() if settings.S3 else self.fill_disk()

    def disturb_network(self):
        self.s3_proxy.at_random(self.random.random(), 0.3)

        def calm():
            self.s3_proxy.fault = lambda number, method: None
        self.later.append((time.monotonic() + self.random.uniform(3, 8), calm))
        return True

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
