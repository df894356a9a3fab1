#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Two streams in one daemon: each is an application of its own, and what happens to one stream's shards, or to a
worker, loses no record of either."""
import os
import pathlib
import re
import signal
import time

from harness import settings
from harness.case import DaemonCase, main

OPTIONS = ("--checkpoint-every", "300")


class OneDaemon(DaemonCase):
    def make_applications(self):
        applications = [self.application(2, keys=60, proxy=self.proxy(), key_name=name) for name in ("order", "event")]
        for application in applications:
            application.producer.start(200)
        return applications

    def start_worker(self, name):
        return self.applications[0].start_worker(name, *OPTIONS, others=self.applications[1:])

    def start(self):
        self.applications = self.make_applications()
        worker = self.start_worker("first")
        for application in self.applications:
            application.wait_for_records(shard.id for shard in application.stream.shards())
        return worker

    def check_names(self, worker):
        """Each child has the names of its own stream."""
        for application in self.applications:
            for journal in application.journals():
                if not journal.alive():
                    continue
                variables = pathlib.Path(f"/proc/{journal.pid}/environ").read_bytes().decode().split("\0")
                self.assertIn(f"KCLXX_STREAM_NAME={application.stream.name}", variables)
                self.assertIn(f"KCLXX_APPLICATION_NAME={application.name}", variables)
                self.assertIn(f"KCLXX_WORKER_ID={worker.name}", variables)
                self.assertEqual(journal.worker, worker.name)

    def check_each(self):
        """Returns how many records, and how many twice, each stream has."""
        counts = []
        for application in self.applications:
            duplicates, _ = self.check(application)
            counts.append(f"{len(application.producer.put)} records, {duplicates} twice, 0 lost")
        return "; ".join(counts)


class Short(OneDaemon):
    def test_each_stream_has_its_names_and_sigterm_stops_both_gracefully(self):
        worker = self.start()
        self.check_names(worker)
        for application in self.applications:
            application.wait_until_processed()
        seconds = self.applications[0].stop_worker(worker)
        for application in self.applications:
            self.check_asked_to_stop(application, 2)
            self.assertRegex(worker.process.log_text(), rf"INFO +Scheduler \[{application.name}/-\] ")
        self.figures(f"two streams in one daemon: {self.check_each()}; SIGTERM to exit {seconds:.1f} s")


class Long(OneDaemon):
    def test_a_split_a_suspended_and_a_killed_worker_lose_nothing_of_either_stream(self):
        orders, events = self.applications = self.make_applications()
        first, second = self.start_worker("first"), self.start_worker("second")
        for application in self.applications:
            application.wait_for_records(("first", "second"), of="worker")
        for application in self.applications:
            self.assertEqual({journal.worker for journal in application.journals()}, {"first", "second"})

        orders.stream.split(orders.stream.shards()[0])
        children = [shard.id for shard in orders.stream.shards() if shard.open]
        orders.wait_for_records(children)
        events.wait_for_new_records(2)

        self.forget_leader(first)
        first.process.signal(signal.SIGSTOP)
        for application, shards in ((orders, 3), (events, 2)):
            self.wait_for_all_leases(application, "second", shards)
        first.process.signal(signal.SIGCONT)
        for application, shards in ((orders, 3), (events, 2)):
            application.wait_for_new_records(shards)

        self.forget_leader(second)
        orders.kill_worker(second)
        self.forget_leader(second)
        for application in self.applications:
            application.wait_until_processed()
            self.settle(application)
        self.figures(f"a split of one stream, a suspended and a killed worker: {self.check_each()}")

    def forget_leader(self, worker):
        """Its lock would last two minutes."""
        for application in self.applications:
            if settings.KCL == 3 and application.leases.leader() == worker.name:
                application.leases.forget_leader()

    def wait_for_all_leases(self, application, owner, shards):
        def owned():
            self.forget_leader(self.applications[0].workers[0])
            return application.leases.shares().get(owner, 0) >= shards
        application.wait_for(f"{owner} with all leases", owned, lambda: str(application.leases.read()))

    def test_a_child_that_fails_ends_the_daemon_with_both_streams_and_one_line_names_it(self):
        worker = self.start()
        orders, events = self.applications
        orders.expect_end(worker)
        victim = next(journal for journal in events.journals() if journal.alive())
        os.kill(victim.pid, signal.SIGKILL)
        begun = time.monotonic()
        self.assertEqual(worker.process.wait(), 1)
        seconds = time.monotonic() - begun
        lines = re.findall(r"^kclxx daemon run: the program of .*", worker.process.log_text(), re.MULTILINE)
        self.assertEqual(lines, [f"kclxx daemon run: the program of stream {events.stream.name}, {victim.shard}, ended with "
                                 "status 137: the daemon ends, with all its shards and streams"])
        for journal in orders.journals():  # the other stream's children were asked
            self.assertIn("shutdown_requested", journal.events, journal)
        self.forget_leader(worker)
        self.start_worker("first")  # the leader's name again
        for application in self.applications:
            application.wait_until_processed()
            self.settle(application)
        self.figures(f"a killed child of one stream: {self.check_each()}; the daemon ended after {seconds:.1f} s")


if __name__ == "__main__":
    main()
