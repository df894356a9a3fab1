# SPDX-License-Identifier: Apache-2.0
"""samples/clickstream with a real PostgreSQL: the sums are exact whatever happens.

usage: clickstream_test.py KCLXX CLICKSTREAM
"""

import base64
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import dialogue  # noqa: E402
from waiting import SECONDS, wait_for  # noqa: E402

KCLXX = CLICKSTREAM = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARD = "shardId-000000000000"


class Postgres:
    """A cluster of its own, in a temporary directory."""

    def __init__(self):
        # Short, since a socket's path is 107 bytes at most, and where the user postgres can reach it.
        self.directory = tempfile.mkdtemp(prefix="kclxx-pg.", dir="/tmp")
        self.environment = dict({name: value for name, value in os.environ.items() if not name.startswith("PG")},
                                PGHOST=self.directory, PGUSER="postgres", PGDATABASE="postgres")
        self.process = None
        try:
            self.start()
            self.run("-f", str(ROOT / "samples" / "clickstream" / "schema.sql"))
        except BaseException:
            self.remove()
            raise

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([ROOT / "scripts" / "lib" / "run-postgres", self.directory],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for("PostgreSQL answers", self.answers)

    @property
    def log(self):
        return self.directory + ".log"

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError("PostgreSQL did not start: " + pathlib.Path(self.log).read_text())
        return subprocess.run(["psql", "-c", ""], env=self.environment, capture_output=True).returncode == 0

    def stop(self):
        self.process.send_signal(signal.SIGINT)  # it ends all connections
        self.process.wait(SECONDS)

    def remove(self):
        if self.process is not None and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.directory)
        os.unlink(self.log)

    def run(self, *arguments):
        done = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", *arguments], env=self.environment,
                              capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout.splitlines()

    def query(self, statement):
        return self.run("-c", statement)

    def sums(self):
        rows = self.query("SELECT json_build_array(page, extract(epoch FROM minute)::bigint / 60, views) FROM page_views")
        return {(page, minute): views for page, minute, views in map(json.loads, rows)}


def view(page, at):
    return json.dumps({"page": page, "at": at, "user": "u1"})


def some_views(count, seed):
    chosen = random.Random(seed)
    return [view(chosen.choice(["/", "/help", "/prix/été", "/a'b\"c\\"]), 1_600_000_000_000 + chosen.randrange(600_000))
            for _ in range(count)]


def sums_of(events):
    sums = collections.Counter()
    for event in map(json.loads, events):
        sums[event["page"], event["at"] // 60_000] += 1
    return dict(sums)


class Child(dialogue.Child):
    """A clickstream."""

    def __init__(self, directory, environment, name="child"):
        self.log = directory / f"{name}.log"
        with open(self.log, "a") as log:
            super().__init__([CLICKSTREAM], SHARD, environment, log)

    def send(self, events, first):
        """Delivers them from the sequence number `first` on, without waiting."""
        self.say(self.batch(events, first))

    def deliver(self, events, first):
        self.call(self.batch(events, first))

    def text(self):
        return self.log.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


class Clickstream(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.postgres = Postgres()
        cls.addClassCleanup(cls.postgres.remove)

    def setUp(self):
        self.postgres.query("TRUNCATE page_views, shards, parked")
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.work = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))

    def start(self, name="child"):
        child = Child(self.work, self.postgres.environment, name)
        self.stack.callback(lambda: child.process.poll() is None and child.kill())
        return child

    def lock(self, statement):
        """So that a transaction stops in the middle. Returns what unlocks it."""
        blocker = subprocess.Popen(["psql", "-XqAt"], env=self.postgres.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)

        def unlock():
            if blocker.poll() is None:
                blocker.communicate("COMMIT;\n", timeout=SECONDS)

        self.stack.callback(unlock)
        blocker.stdin.write(f"BEGIN; {statement}; SELECT 'locked';\n")
        blocker.stdin.flush()
        self.assertEqual(blocker.stdout.readline(), "locked\n")
        return unlock

    def await_waiting(self, sessions):
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        wait_for(f"{sessions} sessions wait", lambda: self.postgres.query(waiting) == [str(sessions)])

    def parked(self):
        lines = self.postgres.query("SELECT line FROM parked_lines ORDER BY split_part(position, '/', 1)::numeric")
        return [base64.b64decode(json.loads(line)["data"]).decode() for line in lines]

    def test_children_that_are_killed_have_successors_and_the_sums_are_exact(self):
        made = self.work / "made"
        made.mkdir()
        events = []
        for shard in range(6):
            actions = [{"action": "initialize", "shardId": f"shardId-{shard:012}", "sequenceNumber": "TRIM_HORIZON",
                        "subSequenceNumber": 0}]
            for batch in range(34):
                views = some_views(100, seed=100 * shard + batch)
                actions.append(Child.batch(views, 1000 * batch + 1))
                events += views
            actions.append({"action": "shardEnded"})
            (made / f"{shard}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in actions))
        done = subprocess.run([KCLXX, "replay", "--faults", "kill-at=7,kill=0.5,seed=1", *sorted(made.iterdir()),
                               "--", CLICKSTREAM], env=self.postgres.environment, capture_output=True, text=True,
                              timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.postgres.sums(), sums_of(events))
        self.assertEqual(self.parked(), [])
        successors = sum(map(int, re.findall(r"successors +(\d+)", done.stdout)))
        self.assertGreater(successors, 3, "hardly a child was killed: " + done.stdout)

    def test_a_child_that_is_killed_at_any_moment_counts_each_event_once(self):
        events = some_views(3000, seed=2)
        position = 0
        for kill in range(12):
            child = self.start(f"killed-{kill}")
            child.deliver(events[position:position + 100], position + 1)
            child.send(events[position + 100:position + 300], position + 101)
            time.sleep(random.random() * 0.02)  # somewhere in connection, transaction, commit
            child.kill()
            position += 100  # the rest is delivered again
        child = self.start("last")
        child.deliver(events[position:], position + 1)
        self.assertEqual(child.end(), 0)
        self.assertEqual(self.postgres.sums(), sums_of(events))

    def test_a_worker_that_lost_its_lease_and_does_not_know_it_counts_nothing_twice(self):
        events = some_views(400, seed=3)
        old = self.start("old")
        old.deliver(events[:100], 1)
        new = self.start("new")
        new.deliver(events[:200], 1)  # its predecessor's position was not persisted
        old.deliver(events[100:300], 101)  # a half is counted already
        self.assertEqual(self.postgres.sums(), sums_of(events[:300]))
        new.deliver(events[200:], 201)
        self.assertEqual(self.postgres.sums(), sums_of(events))
        self.assertEqual(new.end(), 0)

    def test_a_successor_waits_for_a_transaction_of_its_predecessor(self):
        first = view("!", 1_600_000_000_000)  # sorts before all others
        events = [first, *some_views(200, seed=10), first]
        old = self.start("old")
        old.deliver(events[:100], 1)
        unlock = self.lock("UPDATE page_views SET views = views WHERE page = '!'")
        old.send(events[100:], 101)
        self.await_waiting(1)
        new = self.start("new")
        new.send(events[:-1], 1)  # without the row that is locked: nothing else holds it up
        self.await_waiting(2)
        unlock()
        self.assertTrue(old.answer())
        self.assertTrue(new.answer())
        self.assertEqual(self.postgres.sums(), sums_of(events))

    def test_a_worker_that_is_suspended_in_its_transaction_does_not_stop_its_successor(self):
        events = some_views(200, seed=4)
        old = self.start("old")
        old.deliver(events[:100], 1)
        unlock = self.lock("LOCK TABLE page_views")
        old.send(events[100:], 101)  # it has the lock on the shard's row, and waits for the table
        self.await_waiting(1)
        old.process.send_signal(signal.SIGSTOP)
        unlock()
        new = self.start("new")
        new.deliver(events, 1)
        self.assertEqual(self.postgres.sums(), sums_of(events))
        old.process.send_signal(signal.SIGCONT)
        self.assertTrue(old.answer())  # its connection was closed, and its events are counted
        self.assertEqual(self.postgres.sums(), sums_of(events))
        self.assertEqual(new.end(), 0)

    def test_events_that_cannot_be_counted_are_parked_and_the_rest_is_counted(self):
        good = some_views(400, seed=5)
        bad = [
            "not JSON", '{"page":"/"}', '{"page":"/","at":"now"}', '{"page":"/","at":-1}', '{"page":7,"at":1}',
            # What only the database finds.
            view("/" + "x" * 512, 1_600_000_000_000), view("/\0", 1_600_000_000_000), view("/", 2**64 - 1),
        ]
        events = list(good)
        for index, event in enumerate(bad):
            events.insert(40 * index + 3, event)
        child = self.start()
        child.deliver(events[:250], 1)
        child.deliver(events[250:], 251)
        self.assertEqual(self.postgres.sums(), sums_of(good))
        self.assertEqual(self.parked(), bad)
        self.assertEqual(child.end(), 0)

    def test_parked_events_can_be_counted_later_beside_the_worker(self):
        long = view("/" + "x" * 599, 1_600_000_000_000)
        events = some_views(100, seed=9)
        child = self.start()
        child.deliver([*events, long], 1)
        self.assertEqual(self.parked(), [long])
        again = self.work / "again.jsonl"
        again.write_text("\n".join(self.postgres.query("SELECT line FROM parked_lines")))
        self.postgres.query("ALTER TABLE page_views ALTER page TYPE varchar(600)")
        self.addCleanup(self.postgres.query, "TRUNCATE page_views; ALTER TABLE page_views ALTER page TYPE varchar(512)")
        run = []
        for _ in range(2):  # the run goes on: what is counted is left out
            done = subprocess.run([KCLXX, "replay", "--parked", *run, again, "--", CLICKSTREAM],
                                  env=self.postgres.environment, capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stderr)
            run = re.search(r"--as \S+", done.stderr)[0].split()
            self.assertEqual(self.postgres.sums(), sums_of([*events, long]))
        child.deliver(events, 102)
        self.assertEqual(self.postgres.sums(), sums_of([*events, long, *events]))

    def test_the_shard_waits_for_a_database_that_is_away_and_nothing_is_lost(self):
        events = some_views(300, seed=6)
        child = self.start()
        child.deliver(events[:100], 1)
        self.postgres.stop()
        child.send(events[100:200], 101)
        late = self.start("late")  # it has not taken the shard: it has no batch yet
        late.send(events, 1)
        for waiting in (child, late):
            wait_for("the batch is tried again", lambda: "attempt 1 at record" in waiting.text())
        self.assertIsNone(child.process.poll())
        self.assertIsNone(late.process.poll())
        self.postgres.start()
        self.assertTrue(child.answer())
        self.assertTrue(late.answer())
        self.assertEqual(self.postgres.sums(), sums_of(events))
        self.assertEqual(self.parked(), [])

    def test_what_is_counted_is_checkpointed_at_a_stop(self):
        child = self.start()
        child.deliver(some_views(100, seed=7), 1)
        child.call({"action": "shutdownRequested"})
        self.assertEqual(child.persisted, "100")
        self.assertEqual(child.end(), 0)


if __name__ == "__main__":
    KCLXX, CLICKSTREAM = sys.argv[1:3]
    if not list(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        sys.exit("clickstream_test: PostgreSQL is missing: apt-get install postgresql")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
