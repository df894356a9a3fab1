// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang; // the constructor and what is overridden are the package's own

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.util.concurrent.MoreExecutors;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.commons.beanutils.BeanUtilsBean;
import org.apache.commons.beanutils.ConvertUtilsBean;
import software.amazon.kinesis.checkpoint.ShardRecordProcessorCheckpointer;
import software.amazon.kinesis.leases.ShardInfo;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.multilang.config.MultiLangDaemonConfiguration;
import software.amazon.kinesis.processor.Checkpointer;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.kpl.ExtendedSequenceNumber;

/** The record processor and the checkpointer of KCL 2 and 3, called as the KCL's tasks call them. */
final class RealDaemon extends MultiLangShardRecordProcessor {
    /** The daemon's own kind of mapper (made with its defaults), which also reports what was skipped. */
    private static final class Mapper extends ObjectMapper {
        private static final long serialVersionUID = 1;
        private final transient Events events;

        Mapper(Events events) {
            this.events = events;
        }

        @Override
        public <T> T readValue(String line, Class<T> type) throws JsonProcessingException {
            try {
                return super.readValue(line, type);
            } catch (JsonProcessingException e) {
                events.add("skips", line);
                throw e;
            }
        }
    }

    private final Process child;
    private final Events events;
    private final Checkpointer leaseTable;
    private ShardRecordProcessorCheckpointer checkpointer;

    RealDaemon(Process child, Store store, Events events) {
        super(
                new ProcessBuilder(),
                MoreExecutors.newDirectExecutorService(), // on one thread the events come in one order
                new Mapper(events),
                new MultiLangDaemonConfiguration(new BeanUtilsBean(), new ConvertUtilsBean()));
        this.child = child;
        this.events = events;
        InvocationHandler set = (proxy, method, arguments) -> {
            ExtendedSequenceNumber position = (ExtendedSequenceNumber) arguments[1];
            store.set(position.sequenceNumber(), position.subSequenceNumber());
            return null;
        };
        leaseTable = (Checkpointer) Proxy.newProxyInstance(
                Checkpointer.class.getClassLoader(), new Class<?>[] {Checkpointer.class}, set);
    }

    @Override
    Process startProcess() {
        return child;
    }

    @Override
    void exit() {
        events.workerEnds();
    }

    /** Does what the KCL's task for this call does: sets the checkpointer's bounds, then calls the processor. */
    void call(JsonNode call) {
        switch (call.path("call").asText()) {
            case "initialize" -> initialize(call);
            case "processRecords" -> processRecords(call);
            case "leaseLost" -> leaseLost(LeaseLostInput.builder().build());
            case "shardEnded" -> shardEnded();
            case "shutdownRequested" -> shutdownRequested(
                    ShutdownRequestedInput.builder().checkpointer(checkpointer).build());
            default -> throw new IllegalArgumentException("no such call: " + call);
        }
    }

    // As InitializeTask does it.
    private void initialize(JsonNode call) {
        String shard = call.path("shardId").asText();
        ExtendedSequenceNumber position = position(call);
        checkpointer = new ShardRecordProcessorCheckpointer(
                new ShardInfo(shard, "token", Collections.emptyList(), position), leaseTable);
        checkpointer.largestPermittedCheckpointValue(position);
        checkpointer.setInitialCheckpointValue(position);
        initialize(InitializationInput.builder()
                .shardId(shard)
                .extendedSequenceNumber(position)
                .build());
    }

    // As ProcessTask does it, apart from the filter: scripts hold only records after the last checkpoint.
    private void processRecords(JsonNode call) {
        List<KinesisClientRecord> records = new ArrayList<>();
        ExtendedSequenceNumber largest = checkpointer.largestPermittedCheckpointValue();
        for (JsonNode record : call.path("records")) {
            records.add(record(record));
            ExtendedSequenceNumber position = position(record);
            if (largest == null || largest.compareTo(position) < 0) {
                largest = position;
            }
        }
        checkpointer.largestPermittedCheckpointValue(largest);
        JsonNode behind = call.path("millisBehindLatest");
        processRecords(ProcessRecordsInput.builder()
                .records(records)
                .millisBehindLatest(behind.isNumber() ? behind.asLong() : null)
                .checkpointer(checkpointer)
                .build());
    }

    // As ShutdownTask does it.
    private void shardEnded() {
        checkpointer.sequenceNumberAtShardEnd(checkpointer.largestPermittedCheckpointValue());
        checkpointer.largestPermittedCheckpointValue(ExtendedSequenceNumber.SHARD_END);
        shardEnded(ShardEndedInput.builder().checkpointer(checkpointer).build());
    }

    /** Whether the checkpointer has seen the end of the shard, which is what the KCL looks at after shardEnded. */
    boolean shardFinished() {
        return checkpointer != null
                && ExtendedSequenceNumber.SHARD_END.equals(checkpointer.lastCheckpointValue());
    }

    private static ExtendedSequenceNumber position(JsonNode node) {
        JsonNode number = node.path("sequenceNumber");
        return number.isTextual()
                ? new ExtendedSequenceNumber(number.asText(), node.path("subSequenceNumber").asLong(0))
                : null;
    }

    private static KinesisClientRecord record(JsonNode record) {
        JsonNode data = record.path("data");
        JsonNode arrival = record.path("approximateArrivalTimestamp");
        try {
            return KinesisClientRecord.builder()
                    .data(data.isTextual() ? ByteBuffer.wrap(data.binaryValue()) : null)
                    .partitionKey(record.path("partitionKey").textValue())
                    .sequenceNumber(record.path("sequenceNumber").textValue())
                    .subSequenceNumber(record.path("subSequenceNumber").asLong(0))
                    .approximateArrivalTimestamp(arrival.isNumber() ? Instant.ofEpochMilli(arrival.asLong()) : null)
                    .build();
        } catch (java.io.IOException e) {
            throw new IllegalArgumentException("the data is not base64: " + record, e);
        }
    }
}
