#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Where a new application begins: at a time, by the recipe of docs/host/moving.md, and at the end of the stream, while a
shard is split; and at the begin of a stream that was split and merged."""
from harness import verdict
from harness.case import DaemonCase, main
from harness.journal import SHARD_END

MARGIN = 2  # seconds: the recipe's minutes


def arrival_of(position):
    """Seconds since 1970, which a sequence number encodes."""
    return position.sequence >> 36 & (1 << 36) - 1


class Start(DaemonCase):
    def test_at_a_time_nothing_is_missing_from_then_on(self):
        """The old application stops, a shard is split, and a new application, which has another lease table, begins
        some seconds before the record at the oldest of the old positions."""
        application = self.application(2)
        stream = application.stream
        application.producer.start(200)
        old = application.start_worker("old", "--checkpoint-every", "300")
        application.wait_for_records(stream.parents())
        application.stop_worker(old)
        begin = min(arrival_of(lease.checkpoint) for lease in application.leases.read().values()) - MARGIN
        children = self.split(stream)
        application.start_worker("new", "--checkpoint-every", "300", applicationName=f"{application.name}-new",
                                 initialPositionInStream="", initialPositionInStreamExtended=begin)
        application.wait_for_records(children)
        application.producer.stop()

        arrivals = self.arrivals(stream)
        expected = {id for id, arrival in arrivals.items() if arrival >= begin}
        self.assertEqual(set(arrivals), set(application.producer.put))
        self.assertLess(len(expected), len(arrivals), "no record is older than the beginning")
        self.wait_until_processed_by("new", application, expected)
        new = [journal for journal in application.journals() if journal.worker == "new"]
        early = {record.id for journal in new for record in journal.records} - expected
        self.assert_none("records from before the beginning", sorted(early))
        self.check_all(application, set(arrivals))
        twice = expected & {record.id for journal in application.journals() if journal.worker == "old"
                            for record in journal.records}
        self.figures(f"{len(arrivals)} records, {len(expected)} of them since the beginning, which all came, 0 earlier "
                     f"ones, {len(twice)} also processed by the old application; a split")

    def test_at_the_end_all_comes_that_is_put_once_the_worker_has_its_leases(self):
        application = self.application(2, make_leases=False)
        producer, stream = application.producer, application.stream
        producer.put_round()
        before = set(producer.put)
        application.start_worker("latest", "--checkpoint-every", "300", initialPositionInStream="LATEST")
        application.wait_for("children of both shards", lambda: len(application.journals()) == 2)
        producer.put_round()
        children = self.split(stream)
        producer.start(200)  # also before the child shards have leases
        application.wait_for_records(children)
        producer.stop()

        expected = set(producer.put) - before
        self.wait_until_processed_by("latest", application, expected)
        self.assert_none("records from before the start", sorted(before & application.processed()))
        self.check_all(application, expected)
        self.figures(f"{len(before)} records put before the start, none of which came, and {len(expected)} once the "
                     "worker had its leases, which all came; a split")

    def test_at_the_begin_of_a_resharded_stream_each_record_comes_once(self):
        application = self.application(1, make_leases=False)
        producer, stream = application.producer, application.stream
        producer.put_round()
        halves = self.split(stream)
        producer.put_round()
        stream.merge(*sorted((shard for shard in stream.shards() if shard.id in halves), key=lambda shard: shard.low))
        producer.put_round()
        application.start_worker("new", "--checkpoint-every", "300")
        self.settle(application)
        duplicates, _ = self.check(application)
        self.assertEqual(duplicates, 0)
        ended = [lease for lease in application.leases.read().values() if lease.checkpoint == SHARD_END]
        self.assertEqual(len(ended), 3)
        self.figures(f"{len(producer.put)} records of 4 shards, of which a split and a merge have closed 3")

    def split(self, stream):
        """Splits one of the shards, and returns the two that follow it."""
        stream.split(min(stream.shards(), key=lambda shard: shard.low))
        children = [shard.id for shard in stream.shards() if shard.parents]
        self.assertEqual(len(children), 2)
        return children

    def arrivals(self, stream):
        """{id: seconds since 1970} of all records in the stream."""
        arrivals = {}
        for shard in stream.shards():
            iterator = stream.kinesis.get_shard_iterator(
                StreamName=stream.name, ShardId=shard.id, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
            behind = True
            while iterator and behind:
                answer = stream.kinesis.get_records(ShardIterator=iterator)
                iterator, behind = answer.get("NextShardIterator"), answer["Records"]
                for record in answer["Records"]:
                    arrivals[record["Data"].decode().split(" ")[0]] = record["ApproximateArrivalTimestamp"].timestamp()
        return arrivals

    def wait_until_processed_by(self, worker, application, expected):
        def missing():
            return expected - {record.id for journal in application.journals() if journal.worker == worker
                               for record in journal.records}
        application.wait_for(f"the records of {worker}", lambda: not missing(),
                             lambda: f"{len(missing())} of {len(expected)} missing")

    def check_all(self, application, expected):
        put, journals = application.producer.put, application.journals()
        self.assert_none("lost records", verdict.lost(expected, journals))
        self.assert_none("altered records", verdict.altered(put, journals))
        self.assert_none("records out of order within their key", verdict.order_breaches(put, journals))


if __name__ == "__main__":
    main()
