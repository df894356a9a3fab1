#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The same program under the daemons of KCL 1.x, 2.x and 3.x, one after the other, as in an upgrade
in place: each continues exactly where the one before has stopped."""
import time

from harness.case import DaemonCase, main

SHARDS = 2


class KclVersions(DaemonCase):
    def test_each_version_goes_on_where_the_one_before_has_stopped(self):
        # The lease table, too, is made by the KCL, by the oldest.
        application = self.application(SHARDS, make_leases=False)
        producer = application.producer
        producer.start(400)
        counts = []
        for kcl in (1, 2, 3):
            application.kcl = kcl
            before, at = application.journals(), time.monotonic_ns()
            worker = application.start_worker(f"kcl{kcl}", "--automatic", "3600000")
            # A daemon that finds no lease table waits for up to 40 s in case that others make it too.
            application.wait_for_records(application.stream.parents(), since=at)
            if kcl == 3:
                application.wait_until_processed()
            application.stop_worker(worker)
            journals = application.journals()[len(before):]
            self.assertEqual({journal.worker for journal in journals}, {f"kcl{kcl}"})
            self.check_all_stored(application)
            counts.append(sum(len(journal.records) for journal in journals))
        duplicates, _ = self.check(application, bounded=False)
        self.assertEqual(duplicates, 0)
        one, two, three = counts
        self.figures(f"{len(producer.put)} records: {one} by a 1.x daemon, {two} by a 2.x, {three} "
                     "by a 3.x, each in place of the one before, with its lease table and the same "
                     f"program; 0 lost, {duplicates} duplicates", daemons="KCL 1, 2, 3")


if __name__ == "__main__":
    main()
