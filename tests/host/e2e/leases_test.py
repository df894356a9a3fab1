#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""kclxx leases, with the real aws program, on tables that daemons of 2.x and 3.x write: it finds
nothing while all is well, and names the cause when it is not."""
import datetime
import json
import os
import re
import shutil
import subprocess
import time

from harness import settings
from harness.aws import Stream
from harness.case import DaemonCase, main

SHARDS = 4
RATE = 40  # records a second
COMPATIBLE = "CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X"
INTERVAL = "4"  # seconds; leases are renewed each 0.7 s with properties/local.properties


class Leases(DaemonCase):
    def test_an_owner_that_was_killed_with_each_version(self):
        for kcl in (2, 3, "3.4.2"):
            with self.subTest(kcl=kcl):
                application = self.begin(kcl)
                worker = self.start(application, kcl, "host-1")
                self.wait_for_owners(application, "host-1")
                application.wait_for("a checkpoint", lambda: any(
                    one.checkpoint.sequence > 0 for one in application.leases.read().values()))
                found = self.leases(application)
                self.assertEqual([one["state"] for one in found["leases"]], ["ok"] * SHARDS)
                self.assertTrue(all(one["moves"] for one in found["leases"]), found)
                self.assertFalse(found["stuck"], found)
                ages = [one["checkpoint"]["age_seconds"] for one in found["leases"]]
                self.assertLess(max(age for age in ages if age is not None), 60)
                if str(kcl).startswith("3"):
                    self.assertEqual(found["leader"]["owner"], "host-1")
                    self.assertEqual(found["client_version"], "CLIENT_VERSION_3X")
                self.assertEqual(found["unreadable_by_kcl_2"],
                                 ["Leader", "Migration3.0", "host-1"] if kcl == 3 else [])
                self.assertEqual([(one["worker"], one["leases"]) for one in found["workers"]], [("host-1", SHARDS)])
                self.check_stream(application)

                application.kill_worker(worker)
                found = self.leases(application, status=1)
                causes = {one["cause"].partition(" for ")[0] for one in found["leases"]}
                self.assertEqual(causes, {"host-1 has not renewed it"})
                if str(kcl).startswith("3"):
                    self.assertIn("the leader host-1 has ended", found["notes"][0]["text"])
                application.producer.stop()
        self.figures("the owner was named with each version", daemons="KCL 2.7.2, 3.5.1, 3.4.2")

    def test_a_shard_that_ended_and_lost_its_children(self):
        application = self.begin(2)
        self.start(application, 2, "host-1")
        self.wait_for_owners(application, "host-1")
        shard = application.stream.shards()[0]
        application.stream.split(shard)
        application.wait_for("the children", lambda: len(application.leases.read()) == SHARDS + 2)
        found = self.leases(application, table="-")
        self.assertEqual(self.lease(found, shard.id)["state"], "ended")
        self.stop_all(application)
        children = [one["shard"] for one in found["leases"] if shard.id in one["parents"]]
        self.assertEqual(len(children), 2)
        for child in children:
            application.services.dynamodb.delete_item(TableName=application.name,
                                                      Key={"leaseKey": {"S": child}})
        found = self.leases(application, table="-", status=1)
        self.assertIn("none of its children has a lease", self.lease(found, shard.id)["cause"])
        out, _ = self.run_leases(application, application.name, "--rewind", "TRIM_HORIZON", "--shard", shard.id, "--stream",
                                 application.stream.name, "--kinesis-endpoint-url", application.kinesis_url, "--yes", status=0)
        self.addCleanup(os.unlink, re.search(r"the old rows are in (.*)", out)[1])
        self.start(application, 2, "host-2")
        application.wait_for("the children again",
                             lambda: set(children) <= set(application.leases.read()))
        self.leases(application)

    def test_a_hand_over_that_stays(self):
        application = self.begin(3)
        self.start(application, 3, "host-1")
        self.wait_for_owners(application, "host-1")
        self.stop_all(application)
        shard = application.stream.shards()[0].id
        application.services.dynamodb.update_item(
            TableName=application.name, Key={"leaseKey": {"S": shard}},
            UpdateExpression="SET checkpointOwner = :old, leaseOwner = :next",
            ExpressionAttributeValues={":old": {"S": "host-1"}, ":next": {"S": "host-2"}})
        found = self.lease(self.leases(application, status=1), shard)
        self.assertEqual((found["state"], found["checkpoint_owner"]), ("stuck", "host-1"))
        self.assertRegex(found["cause"], r"host-1 has to hand it over to host-2, and has not for [3-9]\d")

    def test_rows_that_a_worker_of_2_x_cannot_read(self):
        application = self.begin(2)
        self.start(application, 2, "old")
        self.wait_for_owners(application, "old")
        self.start(application, 3, "new", clientVersionConfig=COMPATIBLE)
        self.wait_for_owners(application, "old", "new")
        found = self.leases(application)
        self.assertIn("Migration3.0", found["unreadable_by_kcl_2"])
        self.assertEqual(found["client_version"], "CLIENT_VERSION_UPGRADE_FROM_2X")

    def test_a_rewind_by_time_brings_all_records_since_then(self):
        for kcl in (2, 3):
            with self.subTest(kcl=kcl):
                application = self.begin(kcl)
                self.start(application, kcl, "host-1")
                application.wait_for("records before the time",
                                     lambda: application.producer.rounds >= 3 and len(application.processed()) > 400)
                time.sleep(2)  # so that the first records are in an earlier second of aws
                since = datetime.datetime.now(datetime.timezone.utc)
                before = set(application.producer.put)
                application.wait_for("records after the time", lambda: len(application.producer.put) > len(before) + 400)
                self.settle(application)
                self.stop_all(application)
                wanted = set(application.producer.put) - before
                positions = application.leases.read()

                rewind = ["--rewind", since.isoformat(timespec="milliseconds"), "--stream", application.stream.name,
                          "--kinesis-endpoint-url", application.kinesis_url]
                out, _ = self.run_leases(application, application.name, *rewind, status=0)
                self.assertIn("again: from", out)
                self.assertEqual(application.leases.read(), positions)
                out, _ = self.run_leases(application, application.name, *rewind, "--yes", status=0)
                self.assertIn(f"{SHARDS} of {SHARDS} rows were written", out)
                saved = re.search(r"the old rows are in (.*)", out)[1]
                self.addCleanup(os.unlink, saved)
                self.run_leases(application, application.name, "--restore", saved, "--yes", status=0)
                self.assertEqual({shard: lease.checkpoint for shard, lease in application.leases.read().items()},
                                 {shard: lease.checkpoint for shard, lease in positions.items()})
                out, _ = self.run_leases(application, application.name, *rewind, "--yes", status=0)
                self.addCleanup(os.unlink, re.search(r"the old rows are in (.*)", out)[1])

                self.start(application, kcl, "host-2")

                def again():
                    return {record.id for journal in application.journals() if journal.worker == "host-2"
                            for record in journal.records}
                application.wait_for("the records again", lambda: wanted <= again(),
                                     lambda: f"{len(wanted - again())} of {len(wanted)} missing")
                self.assertFalse({id for id in again() if id.endswith(":0")}, "records of the first round came again")
        self.figures("all records since the time came again", daemons="KCL 2.7.2, 3.5.1")

    def test_what_cannot_be_read_is_told(self):
        application = self.begin(3)
        _, error = self.run_leases(application, "none-of-" + application.name, status=5)
        self.assertIn("there is no table none-of-", error)
        application.dynamodb_url = "http://127.0.0.1:1"
        _, error = self.run_leases(application, application.name, status=5)
        self.assertRegex(error, "^kclxx leases: aws ended with exit status [0-9]+: Could not connect")

    def check_stream(self, application):
        """Each row is of the application's stream, and none of another stream with the same shards."""
        options = [application.name, "--kinesis-endpoint-url", application.kinesis_url, "--stream"]
        self.run_leases(application, *options, application.stream.name, status=0)
        younger = Stream(application.services.kinesis, application.name + "-younger", SHARDS)
        out, _ = self.run_leases(application, *options, younger.name, status=1)
        self.assertIn(f"stuck: rows that the stream {younger.name} cannot have: shardId-000000000000 at ~", out)

    def begin(self, kcl):
        application = self.application(SHARDS, kcl=kcl)
        application.producer.start(RATE)
        return application

    def start(self, application, kcl, name, **properties):
        application.kcl = kcl
        return application.start_worker(name, "--checkpoint-every", "300", **properties)

    def stop_all(self, application):
        application.producer.stop()
        for worker in application.workers:
            application.stop_worker(worker)

    def wait_for_owners(self, application, *names):
        def are_there():
            return (set(application.leases.shares()) == set(names)
                    and all(one.owner and one.counter > 1 for one in application.leases.read().values()))
        application.wait_for(f"leases of {', '.join(names)}", are_there,
                             lambda: str(application.leases.read()))

    def lease(self, found, shard):
        return next(one for one in found["leases"] if one["shard"] == shard)

    def leases(self, application, table=None, status=0):
        """`table`: "-" is a scan from stdin."""
        out, _ = self.run_leases(application, table or application.name, "--json", status=status)
        return json.loads(out)

    def run_leases(self, application, table, *options, status):
        endpoint = ["--endpoint-url", application.dynamodb_url, "--region", "us-east-1"]
        scan = subprocess.DEVNULL
        if table == "-":
            scan = open(application.directory / "scan.json", "w+")  # closed with the process
            self.addCleanup(scan.close)
            subprocess.run([shutil.which("aws"), "dynamodb", "scan", "--table-name", application.name,
                            "--output", "json", *endpoint], check=True, stdout=scan)
            scan.seek(0)
        else:
            options = [*options, "--interval", INTERVAL, *endpoint]
        run = subprocess.run([settings.TOOL, "leases", table, *options], stdin=scan,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        print(run.stdout + run.stderr, flush=True)
        self.assertEqual(run.returncode, status)
        return run.stdout, run.stderr


if __name__ == "__main__":
    main()
