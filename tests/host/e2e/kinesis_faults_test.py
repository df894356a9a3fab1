#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Kinesis throttles, refuses, expires, resets and is slow; a parent shard was trimmed; a stream has
1,500 shards, and lists 100 at a time: nothing is lost, and the log of `kclxx daemon run` says what
happened."""
import hashlib

from harness.case import DaemonCase, main

SHARDS = 4
TIMES = 10  # each fault is made at least so often
# Faults of GetRecords, how many of the calls have them, and what the log then has. The SDK tries a
# throttled call four times, before the log has it; an iterator that has expired is renewed silently.
READ_FAULTS = [
    ("ProvisionedThroughputExceededException", 0.8, "ProvisionedThroughputExceededException: "),
    ("KMSThrottlingException", 0.5, "KmsThrottlingException: "),
    ("KMSAccessDeniedException", 0.5, "KmsAccessDeniedException: "),
    ("ExpiredIteratorException", 0.3, ""),
    ("InternalFailure", 0.5, "KinesisException: InternalFailure"),
    ("reset", 0.2, "An error occurred on the connection: "),
    ("slow", 0.5, ""),
]


class KinesisFaults(DaemonCase):
    def test_reads_that_fail_lose_nothing(self):
        application = self.start(SHARDS)
        proxy = application.kinesis_proxy
        for fault, share, said in READ_FAULTS:
            renewed = proxy.seen("GetShardIterator", "requests")
            self.make("GetRecords", fault, share, said)
            if fault == "ExpiredIteratorException":
                self.assertGreaterEqual(proxy.seen("GetShardIterator", "requests") - renewed, TIMES)
            application.wait_for_new_records(SHARDS)
        self.settle(application)
        self.assertEqual(len(application.journals()), SHARDS, "a lease was lost")
        self.finish(f"of {proxy.seen('GetRecords', 'requests')} GetRecords " + ", ".join(
            f"{proxy.seen('GetRecords', fault)} had {fault}" for fault, *_ in READ_FAULTS))

    def test_a_listing_that_is_throttled_delays_the_start(self):
        self.start(SHARDS, flows=False, make_leases=False, rules=[
            {"operation": "ListShards", "fault": "LimitExceededException", "share": 1}])
        self.make("ListShards", "LimitExceededException", 1, "LimitExceededException")
        self.assertEqual(self.app.journals(), [])
        self.app.wait_for_new_records(SHARDS)
        self.settle(self.app)
        self.finish(f"ListShards was throttled {TIMES} times at the start")

    def test_a_trimmed_parent_does_not_hold_its_children(self):
        """The lease table has all of them, the parent's end was never stored: the worker was away for longer
        than the retention."""
        [parent] = self.make_application(1, make_leases=False).stream.shards()
        self.app.stream.split(parent)
        self.app.leases.create(self.app.stream.shards())
        self.app.kinesis_proxy.rules(
            {"operation": "ListShards", "fault": "trimmed", "share": 1, "shard": parent.id},
            {"operation": "GetShardIterator", "fault": "ResourceNotFoundException", "share": 1,
             "shard": parent.id})
        self.start_worker()
        self.app.wait_for_new_records(2)
        self.app.wait_until_processed()
        [ended] = [j for j in self.app.journals() if j.shard == parent.id]
        self.assertIn("shard_ended", ended.events)
        self.assertEqual(ended.records, [])
        for child in (j for j in self.app.journals() if j.shard != parent.id):
            self.assertGreater(child.started, ended.events["shard_ended"])
        # At WARN the log has no more than that: a gap in the records goes unnoticed.
        self.assertIn("Child process exited with value: 0", self.worker.process.log_text())
        self.finish("a parent that was trimmed ended without a record, before its children began")

    def test_a_stream_of_1500_shards_gets_a_lease_for_each(self):
        self.make_application(1500, make_leases=False, keys=2000)
        self.start_worker(maxLeasesForWorker=str(SHARDS))
        application = self.app
        shards = {shard.id: shard for shard in application.stream.shards()}
        application.wait_for("leases", lambda: set(application.leases.read()) == set(shards),
                             lambda: f"{len(application.leases.read())} leases", every=1)
        application.wait_for("shards", lambda: len(application.journals()) == SHARDS)
        application.producer.stop()
        own = [shards[j.shard] for j in application.journals()]

        def is_own(key):
            place = int.from_bytes(hashlib.md5(key.encode()).digest(), "big")
            return any(shard.low <= place <= shard.high for shard in own)
        expected = {id for id, put in application.producer.put.items() if is_own(put.key)}
        self.assertTrue(expected)
        application.wait_for("their records", lambda: expected <= application.processed())
        self.assert_none("records of other shards", sorted(application.processed() - expected))
        pages = application.kinesis_proxy.seen("ListShards", "requests")
        self.assertGreaterEqual(pages, 15)
        self.figures(f"1500 shards in {pages} calls of ListShards; {len(expected)} records in the "
                     f"{SHARDS} shards of the worker, 0 lost")
        application.stop_worker(self.worker)
        # Other tests that share the emulators would be slower.
        self.services.kinesis.delete_stream(StreamName=application.stream.name)

    def make_application(self, shards, **options):
        self.app = self.application(shards, kinesis_proxy=self.kinesis_proxy(), **options)
        return self.app

    def start_worker(self, **properties):
        self.app.producer.start(200)
        self.worker = self.app.start_worker("one", "--checkpoint-every", "300", **properties)

    def start(self, shards, flows=True, rules=(), **options):
        self.make_application(shards, **options).kinesis_proxy.rules(*rules)
        self.start_worker()
        if flows:
            self.app.wait_for_new_records(shards)
        return self.app

    def make(self, operation, fault, share, said):
        """Until the fault was made often enough, and the log has said so."""
        proxy, log = self.app.kinesis_proxy, self.worker.process.log_text
        begin, before = len(log()), proxy.seen(operation, fault)
        proxy.rules({"operation": operation, "fault": fault, "share": share, "milliseconds": 2000})
        self.app.wait_for(
            fault, lambda: proxy.seen(operation, fault) >= before + TIMES and said in log()[begin:],
            lambda: f"{proxy.seen(operation, fault) - before} times; log: {log()[begin:][:1000]}")
        proxy.rules()
        if said:
            self.quote(log()[begin:], said)

    def finish(self, what):
        duplicates, bound = self.check(self.app)
        self.figures(f"{len(self.app.producer.put)} records; {what}; 0 lost, {duplicates} duplicates "
                     f"(at most {bound} possible)")


if __name__ == "__main__":
    main()
