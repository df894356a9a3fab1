# SPDX-License-Identifier: Apache-2.0
# The least that a user of amazon_kclpy writes: decode, add up, checkpoint each batch at its last record.
import sys

from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor


class CountBytes(processor.RecordProcessorBase):
    def initialize(self, initialize_input):
        self.bytes = 0

    def process_records(self, process_records_input):
        records = process_records_input.records
        for record in records:
            self.bytes += len(record.binary_data)
        if records:
            last = records[-1]
            process_records_input.checkpointer.checkpoint(last.sequence_number, last.sub_sequence_number)

    def lease_lost(self, lease_lost_input):
        pass

    def shard_ended(self, shard_ended_input):
        shard_ended_input.checkpointer.checkpoint()

    def shutdown_requested(self, shutdown_requested_input):
        shutdown_requested_input.checkpointer.checkpoint()


if __name__ == "__main__":
    count_bytes = CountBytes()
    kcl.KCLProcess(count_bytes).run()
    sys.stderr.write("{} bytes\n".format(count_bytes.bytes))
