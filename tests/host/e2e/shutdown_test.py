#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: every child is asked to shut down, the last positions are stored, and a restart begins
exactly after them."""
import time

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
        application.wait_for_records(application.stream.parents())
        seconds = application.stop_worker(worker)
        asked, at = application.journals(), time.monotonic_ns()
        self.check_asked_to_stop(application, SHARDS)
        self.assertFalse(any(journal.checkpoints for journal in asked))

        application.start_worker("second", *self.OPTIONS)
        application.wait_for_records(application.stream.parents(), since=at)
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


if __name__ == "__main__":
    main()
