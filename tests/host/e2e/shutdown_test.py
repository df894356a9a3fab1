#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: every child is asked to shut down, the last positions are stored, and a restart begins
exactly after them. The same as process 1 of a container, as far as a pid namespace is one."""
import os
import pathlib
import signal
import time

from harness import settings
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


# Not --mount-proc, which needs / to be a mount point: in a chroot it is none.
PID_NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation", "unchanged",
                 *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c",
                 'mount --make-private /proc && mount -t proc proc /proc && exec "$@"', "sh"]


class Process1(DaemonCase):
    def test_process_1_stops_gracefully_and_has_each_line_of_its_children_once_in_its_log(self):
        application = self.application(2)
        program = application.directory / "child"
        program.write_text('#!/bin/sh\necho "hello from the child of $KCLXX_APPLICATION_NAME, $KCLXX_WORKER_ID" >&2\n'
                           f"exec {settings.TOOL} capture --output captured -- ./recorded_child journals --automatic 3600000\n")
        program.chmod(0o755)
        application.producer.start(400)
        worker = application.start_worker("first", inside=PID_NAMESPACE, executableName="./child")
        application.wait_for_records(application.stream.parents())
        application.wait_until_processed()

        unshare = worker.process.pid
        [daemon] = pathlib.Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        status = pathlib.Path(f"/proc/{daemon}/status").read_text()
        self.assertRegex(status, r"^Name:\tjava\n")
        self.assertRegex(status, r"\nNSpid:.*\t1\n")
        application.expect_end(worker)
        os.kill(int(daemon), signal.SIGTERM)
        self.assertEqual(worker.process.wait(), 143)
        self.check_asked_to_stop(application, 2)
        self.check(application, bounded=False)
        hello = [line for line in worker.process.log_text().splitlines() if "hello" in line]
        self.assertEqual(hello, [f"hello from the child of {application.name}, first"] * 2)
        captured = [path.read_text() for path in (application.directory / "captured").iterdir()]
        self.assertEqual(['"responseFor":"shutdownRequested"' in text for text in captured], [True] * 2)
        self.figures(f"as process 1: {len(application.producer.put)} records, 2 of 2 children were asked to shut down")


if __name__ == "__main__":
    main()
