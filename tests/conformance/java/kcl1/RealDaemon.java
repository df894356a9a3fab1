// SPDX-License-Identifier: Apache-2.0
package com.amazonaws.services.kinesis.multilang; // the constructor and what is overridden are the package's own

import com.amazonaws.auth.AWSCredentialsProvider;
import com.amazonaws.services.kinesis.clientlibrary.interfaces.ICheckpoint;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.BoundedCheckpointer;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.KinesisClientLibConfiguration;
import com.amazonaws.services.kinesis.clientlibrary.lib.worker.ShutdownReason;
import com.amazonaws.services.kinesis.clientlibrary.types.ExtendedSequenceNumber;
import com.amazonaws.services.kinesis.clientlibrary.types.InitializationInput;
import com.amazonaws.services.kinesis.clientlibrary.types.ProcessRecordsInput;
import com.amazonaws.services.kinesis.clientlibrary.types.ShutdownInput;
import com.amazonaws.services.kinesis.clientlibrary.types.UserRecord;
import com.amazonaws.services.kinesis.model.Record;
import com.fasterxml.jackson.databind.JsonNode;
import com.google.common.util.concurrent.MoreExecutors;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import kclxx.oracle.Daemon;
import kclxx.oracle.Events;
import kclxx.oracle.Mapper;
import kclxx.oracle.Oracle;
import kclxx.oracle.Store;

/** The record processor and the checkpointer of KCL 1, called as the KCL's tasks call them. */
public final class RealDaemon extends MultiLangRecordProcessor implements Daemon {
    private final Process child;
    private final Events events;
    private final ICheckpoint leaseTable;
    private BoundedCheckpointer checkpointer;

    public RealDaemon(Process child, Store store, Events events) {
        super(
                new ProcessBuilder(),
                MoreExecutors.newDirectExecutorService(), // on one thread the events come in one order
                new Mapper(events),
                new KinesisClientLibConfiguration("application", "stream", (AWSCredentialsProvider) null, "worker"));
        this.child = child;
        this.events = events;
        InvocationHandler set = (proxy, method, arguments) -> {
            ExtendedSequenceNumber position = (ExtendedSequenceNumber) arguments[1];
            store.set(
                    position.getSequenceNumber(),
                    position.getSubSequenceNumber(),
                    "com.amazonaws.services.kinesis.clientlibrary.exceptions");
            return null;
        };
        leaseTable = (ICheckpoint)
                Proxy.newProxyInstance(ICheckpoint.class.getClassLoader(), new Class<?>[] {ICheckpoint.class}, set);
    }

    public static void main(String[] arguments) throws Exception {
        Oracle.main(arguments, RealDaemon::new);
    }

    @Override
    Process startProcess() {
        return child;
    }

    @Override
    void exit() {
        events.workerEnds();
    }

    @Override
    public void call(JsonNode call) {
        switch (call.path("call").asText()) {
            case "initialize" -> initialize(call);
            case "processRecords" -> processRecords(call);
            case "leaseLost" -> shutdown(ShutdownReason.ZOMBIE);
            case "shardEnded" -> shardEnded();
            case "shutdownRequested" -> shutdownRequested(checkpointer);
            default -> throw new IllegalArgumentException("no such call: " + call);
        }
    }

    // As InitializeTask does it.
    private void initialize(JsonNode call) {
        String shard = call.path("shardId").asText();
        ExtendedSequenceNumber position = position(call);
        checkpointer = new BoundedCheckpointer(shard, position, leaseTable);
        initialize(new InitializationInput().withShardId(shard).withExtendedSequenceNumber(position));
    }

    // As ProcessTask does it, apart from the filter: scripts hold only records after the last checkpoint.
    private void processRecords(JsonNode call) {
        List<Record> records = new ArrayList<>();
        ExtendedSequenceNumber largest = checkpointer.getLargestPermittedCheckpointValue();
        for (JsonNode record : call.path("records")) {
            records.add(record(record));
            ExtendedSequenceNumber position = position(record);
            if (largest == null || largest.compareTo(position) < 0) {
                largest = position;
            }
        }
        checkpointer.setLargestPermittedCheckpointValue(largest);
        JsonNode behind = call.path("millisBehindLatest");
        processRecords(new ProcessRecordsInput()
                .withRecords(records)
                .withMillisBehindLatest(behind.isNumber() ? behind.asLong() : null)
                .withCheckpointer(checkpointer));
    }

    // As KinesisShutdownTask does it.
    private void shardEnded() {
        checkpointer.setSequenceNumberAtShardEnd(checkpointer.getLargestPermittedCheckpointValue());
        checkpointer.setLargestPermittedCheckpointValue(ExtendedSequenceNumber.SHARD_END);
        shutdown(ShutdownReason.TERMINATE);
    }

    private void shutdown(ShutdownReason reason) {
        shutdown(new ShutdownInput().withShutdownReason(reason).withCheckpointer(checkpointer));
    }

    @Override
    public boolean shardFinished() {
        return checkpointer != null
                && ExtendedSequenceNumber.SHARD_END.equals(checkpointer.getLastCheckpointValue());
    }

    private static ExtendedSequenceNumber position(JsonNode node) {
        JsonNode number = node.path("sequenceNumber");
        return number.isTextual()
                ? new ExtendedSequenceNumber(number.asText(), node.path("subSequenceNumber").asLong(0))
                : null;
    }

    // A record as the KCL hands it over, after de-aggregation: a UserRecord, with sub-sequence number 0 or more.
    private static Record record(JsonNode record) {
        JsonNode data = record.path("data");
        JsonNode arrival = record.path("approximateArrivalTimestamp");
        try {
            Record plain = new Record()
                    .withData(data.isTextual() ? ByteBuffer.wrap(data.binaryValue()) : null)
                    .withPartitionKey(record.path("partitionKey").textValue())
                    .withSequenceNumber(record.path("sequenceNumber").textValue())
                    .withApproximateArrivalTimestamp(arrival.isNumber() ? new Date(arrival.asLong()) : null);
            long sub = record.path("subSequenceNumber").asLong(0);
            return new OfAggregate(plain, sub);
        } catch (IOException e) {
            throw new IllegalArgumentException("the data is not base64: " + record, e);
        }
    }

    private static final class OfAggregate extends UserRecord {
        private static final long serialVersionUID = 1;

        OfAggregate(Record record, long subSequenceNumber) {
            super(true, record, subSequenceNumber, null);
        }
    }
}
