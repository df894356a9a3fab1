#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A restart inside an aggregated (KPL) record resumes at the sub-sequence number."""
from harness.case import DaemonCase, main
from harness.producer import Put, aggregate

USER_RECORDS = 50  # in each aggregated record
CHECKPOINT = 17  # the user record of the second aggregated record that is checkpointed


class Aggregate(DaemonCase):
    def test_a_restart_resumes_at_the_sub_sequence_number(self):
        application = self.application(1)
        put = application.producer.put
        # One that is not aggregated, three that are, and another one that is not.
        self.put(application, "plain", ["plain:0"], aggregated=False)
        for number in range(3):
            key = f"aggregated-{number}"
            self.put(application, key, [f"{key}:{i}" for i in range(USER_RECORDS)])
        self.put(application, "plain", ["plain:1"], aggregated=False)

        target = f"aggregated-1:{CHECKPOINT}"
        worker = application.start_worker("first", "--only", target)
        application.wait_until_processed()
        # The record is in the journal before its checkpoint is confirmed.
        application.wait_for("the checkpoint", lambda: application.journals()[0].checkpoints)
        [first] = application.journals()
        self.assert_taken_apart(first)
        [checkpoint] = first.checkpoints
        [record] = [record for record in first.records if record.id == target]
        self.assertEqual(checkpoint.position, record.position)
        self.assertEqual(record.position.sub, CHECKPOINT)
        application.stop_worker(worker)
        self.assertEqual(application.leases.read()[first.shard].checkpoint, record.position)

        application.start_worker("second")
        after = [one.id for one in first.records if one.position > record.position]
        application.wait_for("the rest", lambda: len(application.journals()) == 2 and
                             len(application.journals()[1].records) >= len(after))
        second = application.journals()[1]
        self.assertEqual(second.start, record.position)
        self.assertEqual([one.id for one in second.records], after)
        self.assertEqual(second.records[0].position, (record.position.sequence, CHECKPOINT + 1))
        duplicates, bound = self.check(application)
        self.assertEqual(duplicates, bound)
        self.figures(f"{len(put)} user records, {3 * USER_RECORDS} of them in 3 aggregated ones; "
                     f"checkpoint at sub-sequence number {CHECKPOINT}, the restart begins with "
                     f"{second.records[0].position.sub} of the same sequence number and repeats "
                     f"just the {duplicates} after the checkpoint, 0 lost")

    def put(self, application, key, ids, aggregated=True):
        records = [(key, f"{id} data".encode()) for id in ids]
        data = aggregate(records) if aggregated else records[0][1]
        application.services.kinesis.put_record(StreamName=application.stream.name, Data=data,
                                                PartitionKey=key)
        for id in ids:
            application.producer.put[id] = Put(key, int(id.split(":")[1]))

    def assert_taken_apart(self, journal):
        """The daemon has: one sequence number, sub-sequence numbers from 0."""
        for number in range(3):
            positions = [r.position for r in journal.records if r.key == f"aggregated-{number}"]
            self.assertEqual([position.sub for position in positions], list(range(USER_RECORDS)))
            self.assertEqual(len({position.sequence for position in positions}), 1)


if __name__ == "__main__":
    main()
