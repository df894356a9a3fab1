#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: every child is asked to shut down, the last positions are stored, and a restart begins
exactly after them."""
from harness import verdict
from harness.case import DaemonCase, main

SHARDS = 4


class Shutdown(DaemonCase):
    # kclxx alone checkpoints, and not before it is asked to shut down: an hour is never over here.
    OPTIONS = ("--automatic", "3600000")

    def test_a_restart_begins_exactly_after_what_was_processed(self):
        self.restart()

    def test_what_is_gathered_is_handed_over_before_the_restart(self):
        """Batches of 70 records, with a linger of an hour: the last of each child has fewer."""
        self.assertTrue(any(len(j.records) % 70 for j in self.restart("--gather", "70")))

    def restart(self, *first_options):
        """Returns the journals of the children that were asked to shut down."""
        application = self.application(SHARDS)
        producer = application.producer
        producer.start(800)
        worker = application.start_worker("first", *self.OPTIONS, *first_options)
        self.wait_until_each_shard_flows(application, SHARDS)
        seconds = application.stop_worker(worker)
        asked = application.journals()
        self.assertEqual(len(asked), SHARDS)
        for journal in asked:
            self.assertIn("shutdown_requested", journal.events, journal)
            self.assertEqual(journal.status, 0, journal)
            self.assertFalse(journal.checkpoints)
        self.assert_none("shards whose last position was not stored",
                         verdict.unsettled(asked, application.leases.read()))

        application.start_worker("second", *self.OPTIONS)
        self.wait_until_each_shard_flows(application, 2 * SHARDS)
        producer.stop()
        application.wait_until_processed()
        ends = {journal.shard: journal.records[-1].position for journal in asked}
        for journal in application.journals()[SHARDS:]:
            self.assertEqual(journal.start, ends[journal.shard], journal)
        duplicates, _ = self.check(application, bounded=False)
        self.assertEqual(duplicates, 0)
        self.figures(f"{len(producer.put)} records, {SHARDS} of {SHARDS} children were asked to "
                     f"shut down and stored their last position, SIGTERM to exit {seconds:.1f} s, "
                     f"0 lost, {duplicates} duplicates")
        return asked

    def wait_until_each_shard_flows(self, application, journals):
        """In mid-stream: each child has had several batches."""
        def flows():
            found = application.journals()
            return len(found) >= journals and all(
                len({record.time for record in j.records}) > 5 and len(j.records) > 50
                for j in found)

        def seen():
            return "; ".join(f"{j}: {len(j.records)} records" for j in application.journals())
        application.wait_for("records on each shard", flows, seen)


if __name__ == "__main__":
    main()
