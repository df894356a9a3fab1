# docs/moving.md: what the program is in Python, with amazon_kclpy 3.
import time

from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor


def store(data):
    print(len(data))


class Processor(processor.RecordProcessorBase):
    def initialize(self, input):
        self.last_checkpoint = time.time()

    def process_records(self, input):
        for record in input.records:
            store(record.binary_data)
        if time.time() - self.last_checkpoint > 60:
            self.checkpoint(input.checkpointer)

    def checkpoint(self, checkpointer):
        for attempt in range(5):
            try:
                checkpointer.checkpoint()
                self.last_checkpoint = time.time()
                return
            except kcl.CheckpointError as error:
                if error.value != "ThrottlingException":
                    return
                time.sleep(5)

    def lease_lost(self, input):
        pass

    def shard_ended(self, input):
        self.checkpoint(input.checkpointer)

    def shutdown_requested(self, input):
        self.checkpoint(input.checkpointer)


if __name__ == "__main__":
    kcl.KCLProcess(Processor()).run()
