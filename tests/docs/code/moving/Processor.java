// docs/moving.md: what the processor is in Java, with the KCL 3 itself.
import software.amazon.kinesis.exceptions.InvalidStateException;
import software.amazon.kinesis.exceptions.ShutdownException;
import software.amazon.kinesis.lifecycle.events.*;
import software.amazon.kinesis.processor.RecordProcessorCheckpointer;
import software.amazon.kinesis.processor.ShardRecordProcessor;

class Processor implements ShardRecordProcessor {
    private Totals totals;

    public void initialize(InitializationInput input) {
        totals = new Totals(input.shardId());
    }

    public void processRecords(ProcessRecordsInput input) {
        input.records().forEach(record -> totals.add(record.data()));
        totals.write();
        checkpoint(input.checkpointer());
    }

    public void leaseLost(LeaseLostInput input) {
        totals.forget();
    }

    public void shardEnded(ShardEndedInput input) {
        checkpoint(input.checkpointer());
    }

    public void shutdownRequested(ShutdownRequestedInput input) {
        checkpoint(input.checkpointer());
    }

    private void checkpoint(RecordProcessorCheckpointer checkpointer) {
        try {
            checkpointer.checkpoint();
        } catch (ShutdownException | InvalidStateException e) {
            System.err.println(e);
        }
    }
}

class Totals {
    Totals(String shard) {}

    void add(java.nio.ByteBuffer data) {}

    void write() {}

    void forget() {}
}
