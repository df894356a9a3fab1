#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""From KCL 2 to 3 and back on one lease table, in the steps of docs/host/moving.md and with the
commands that it shows, run by the aws program: nothing is lost."""
import signal
import subprocess
import tempfile

from harness import settings
from harness.case import DaemonCase, main

SHARDS = 4
RATE = 40  # records a second: the local Kinesis reads all that it has for each answer
COMPATIBLE = "CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X"
ROWS = "the lease table has rows of KCL 3"  # what `daemon run` says of them
METADATA = ["-CoordinatorState", "-WorkerMetricStats"]  # the tables of 3.0 to 3.4


class Migration(DaemonCase):
    def test_each_step_of_the_way_and_back(self):
        application = self.start_with_kcl_2("old-1", "old-2")
        self.start(application, 3, "first-1", clientVersionConfig=COMPATIBLE + "_PHASE1")
        self.wait_for_records("old-1", "old-2", "first-1")
        self.assertEqual(self.other_rows(application), [])
        # In this step each worker can be started again, with either version.
        self.replace(application, "old-1", 2, "old-3")
        self.wait_for_records("old-2", "old-3", "first-1")
        self.stop(application, "old-2", "old-3")
        self.start(application, 3, "first-2", clientVersionConfig=COMPATIBLE + "_PHASE1")
        self.wait_for_records("first-1", "first-2")

        self.replace(application, "first-1", 3, "second-1", clientVersionConfig=COMPATIBLE)
        self.wait_for_records("first-2", "second-1")
        self.assertIn("Migration3.0", self.other_rows(application))
        self.check_cannot_start(application)
        self.replace(application, "first-2", 3, "second-2", clientVersionConfig=COMPATIBLE)
        self.wait_for_records("second-1", "second-2")
        application.producer.stop()  # the local Kinesis would read all of that for each answer
        application.wait_for("ten minutes of readiness",
                             lambda: self.version(application) == "CLIENT_VERSION_3X_WITH_ROLLBACK",
                             lambda: self.version(application), every=20, seconds=1500)
        application.producer.start(RATE)

        self.replace(application, "second-1", 3, "third-1")
        self.wait_for_records("second-2", "third-1")
        self.replace(application, "second-2", 3, "third-2")
        self.wait_for_records("third-1", "third-2")
        self.assertEqual(self.version(application), "CLIENT_VERSION_3X")
        rows = self.other_rows(application)
        self.stop(application, "third-1", "third-2")
        self.go_back(application)
        self.finish(application, "by 2.7.2, the three phases of 3.5.1, and 2.7.2 again; removed: "
                    f"{len(rows)} rows")

    def test_a_mixed_fleet_without_the_first_phase_and_back(self):
        application = self.start_with_kcl_2("old")
        self.start(application, 3, "new", clientVersionConfig=COMPATIBLE)
        self.wait_for_records("old", "new")
        self.assertEqual(self.version(application), "CLIENT_VERSION_UPGRADE_FROM_2X")
        # What it has it keeps, and takes nothing any more.
        application.wait_for("what the log says", lambda: ROWS in self.workers["old"].process.log_text())
        self.wait_for_records("old", "new")
        self.check_cannot_start(application)
        self.stop(application, "old", "new")
        self.go_back(application)
        self.finish(application, "by 2.7.2 beside 3.5.1, and by 2.7.2 again")

    def test_a_mixed_fleet_with_3_4_and_back(self):
        # Maven keeps what it did not find, here a daemon of this version: fetching again finds the tested one, too.
        with tempfile.TemporaryDirectory() as cache:
            subprocess.run([settings.TOOL, "daemon", "fetch", "--kcl", "3.4.2", "--cache", cache],
                           stdin=subprocess.DEVNULL, check=True)
        application = self.start_with_kcl_2("old")
        self.start(application, "3.4.2", "new", clientVersionConfig=COMPATIBLE)
        self.wait_for_records("old", "new")
        self.assertEqual(self.metadata_tables(application), METADATA)
        self.assertEqual(self.other_rows(application), [])
        self.replace(application, "old", 2, "again")
        self.wait_for_records("new", "again")
        self.stop(application, "new", "again")
        self.run_commands(application, "moving.md", "Back to KCL 2", 1)
        self.assertEqual(self.metadata_tables(application), [])
        self.start(application, 2, "back")
        self.wait_for_records("back")
        self.stop(application, "back")
        self.finish(application, "by 2.7.2 beside 3.4.2, and by 2.7.2 again")

    def start_with_kcl_2(self, *names):
        """The lease table is made by 2.7.2."""
        self.workers = {}
        self.app = application = self.application(SHARDS, make_leases=False)
        application.producer.start(RATE)
        for name in names:
            self.start(application, 2, name)
            self.wait_for_records(*self.workers)
        return application

    def start(self, application, kcl, name, **properties):
        application.kcl = kcl
        self.workers[name] = application.start_worker(name, "--checkpoint-every", "300", **properties)

    def stop(self, application, *names):
        for name in names:
            application.stop_worker(self.workers.pop(name))

    def replace(self, application, old, kcl, new, **properties):
        self.stop(application, old)
        self.start(application, kcl, new, **properties)

    def wait_for_records(self, *names):
        """Until each of the workers has leases, each lease an owner among them, and all flow."""
        self.app.wait_for_new_records(SHARDS, names)

    def other_rows(self, application):
        """The keys of what is no lease to KCL 2."""
        pages = application.services.dynamodb.get_paginator("scan").paginate(
            TableName=application.name, ConsistentRead=True)
        return sorted(item["leaseKey"]["S"] for page in pages for item in page["Items"]
                      if "leaseCounter" not in item)

    def metadata_tables(self, application):
        pages = application.services.dynamodb.get_paginator("list_tables").paginate()
        tables = {name for page in pages for name in page["TableNames"]}
        return [suffix for suffix in METADATA if application.name + suffix in tables]

    def version(self, application):
        return self.run_commands(application, "moving.md", "From KCL 2 to 3").strip()

    def check_cannot_start(self, application):
        """A worker of 2.7.2: the log says why, and the status is not 0."""
        self.start(application, 2, "refused")
        refused = self.workers.pop("refused")
        application.expect_end(refused)
        self.assertEqual(refused.process.wait(), -signal.SIGKILL)
        self.quote(refused.process.log_text(), ROWS)
        self.assertNotIn("refused", {j.worker for j in application.journals()})

    def go_back(self, application):
        self.run_commands(application, "moving.md", "Back to KCL 2")
        self.assertEqual(self.other_rows(application), [])
        self.start(application, 2, "back-1")
        self.wait_for_records("back-1")
        self.start(application, 2, "back-2")
        self.wait_for_records("back-1", "back-2")
        self.stop(application, "back-1", "back-2")

    def finish(self, application, how):
        # Who is asked to shut down checkpoints: what is left is what came since.
        self.start(application, 2, "last")
        self.wait_for_records("last")
        application.wait_until_processed()
        duplicates, bound = self.check(application)
        self.figures(f"{len(application.producer.put)} records, {how}; 0 lost, {duplicates} duplicates "
                     f"(at most {bound} possible)", daemons="KCL 2.7.2, 3.5.1 or 3.4.2")


if __name__ == "__main__":
    main()
