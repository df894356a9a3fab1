// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang; // the processor's constructor is the package's own

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.apache.commons.beanutils.BeanUtilsBean;
import org.apache.commons.beanutils.ConvertUtilsBean;
import software.amazon.kinesis.checkpoint.ShardRecordProcessorCheckpointer;
import software.amazon.kinesis.leases.ShardInfo;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.multilang.config.MultiLangDaemonConfiguration;
import software.amazon.kinesis.processor.Checkpointer;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.kpl.ExtendedSequenceNumber;

/**
 * Drives a child with the daemon's own classes: everything between a batch in the JVM's memory and its status, so
 * without Kinesis and DynamoDB. WholeSystem JOB COMMAND...; JOB and the result as side_by_side_driver has them. A child
 * that leaves out what JOB's has_to names fails.
 */
public final class WholeSystem {
    // Until the JVM has compiled what counts. CPU time, since on a busy machine elapsed time means nothing.
    private static final double WARM_UP_CPU_SECONDS = 5;
    private static final ExtendedSequenceNumber START = ExtendedSequenceNumber.TRIM_HORIZON;

    private final OperatingSystemMXBean system =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final MultiLangShardRecordProcessor processor;
    private final ShardRecordProcessorCheckpointer checkpointer;
    private final List<byte[]> payloads = new ArrayList<>();
    private final Path errors;
    private final boolean hasToCheckpoint;
    private final boolean hasToDecode;
    private String persisted;
    private long batch;
    private long cpuNanos;
    private Process child;

    private WholeSystem(JsonNode job, List<String> command) throws IOException {
        String duty = job.path("has_to").asText("decode");
        hasToDecode = duty.equals("decode");
        hasToCheckpoint = hasToDecode || duty.equals("checkpoint");
        errors = Files.createTempFile("kclxx-bench", ".stderr");
        errors.toFile().deleteOnExit();
        byte[] bytes = new byte[job.path("bytes").asInt()];
        Random random = new Random(1);
        for (int i = 0; i < job.path("records").asInt(); ++i) {
            random.nextBytes(bytes);
            payloads.add(bytes.clone());
        }
        processor = new MultiLangShardRecordProcessor(
                new ProcessBuilder(command).redirectError(errors.toFile()),
                threads,
                new ObjectMapper(),
                new MultiLangDaemonConfiguration(new BeanUtilsBean(), new ConvertUtilsBean())) {
            @Override
            Process startProcess() throws IOException {
                child = super.startProcess();
                return child;
            }
        };
        InvocationHandler accept = (proxy, method, arguments) -> {
            if (method.getName().equals("setCheckpoint")) {
                persisted = ((ExtendedSequenceNumber) arguments[1]).sequenceNumber();
            }
            return null;
        };
        Checkpointer leaseTable = (Checkpointer) Proxy.newProxyInstance(
                Checkpointer.class.getClassLoader(), new Class<?>[] {Checkpointer.class}, accept);
        checkpointer = new ShardRecordProcessorCheckpointer(
                new ShardInfo("shardId-000000000000", "token", Collections.emptyList(), START), leaseTable);
        checkpointer.largestPermittedCheckpointValue(START);
        checkpointer.setInitialCheckpointValue(START);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream result = System.out;
        System.setOut(System.err); // what the daemon prints
        ObjectMapper json = new ObjectMapper();
        JsonNode job = json.readTree(arguments[0]);
        WholeSystem system = new WholeSystem(job, Arrays.asList(arguments).subList(1, arguments.length));
        int status = 0; // to exit with; the pool's threads would keep the process for a minute
        try {
            result.println(json.writeValueAsString(system.measure(job)));
        } catch (IllegalStateException failure) {
            System.err.println(failure.getMessage());
            status = 1;
        }
        System.exit(status);
    }

    private Map<String, Object> measure(JsonNode job) throws IOException {
        processor.initialize(InitializationInput.builder()
                .shardId("shardId-000000000000")
                .extendedSequenceNumber(START)
                .build());
        do {
            run(0);
        } while (system.getProcessCpuTime() < WARM_UP_CPU_SECONDS * 1e9);
        cpuNanos = 0;
        double childCpu = childCpuSeconds();
        List<Double> trips = run(job.path("seconds").asDouble(1));
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("cpu_seconds", childCpuSeconds() - childCpu);
        result.put("jvm_cpu_seconds", cpuNanos / 1e9);
        result.put("jvm_bytes", memory());
        result.put("seconds", trips.stream().mapToDouble(Double::doubleValue).sum());
        result.put("batches", trips.size());
        result.put("records", (long) trips.size() * payloads.size());
        result.put("bytes", (long) trips.size() * payloads.size() * payloads.get(0).length);
        Collections.sort(trips);
        result.put("round_trip_us", Map.of("p50", 1e6 * at(trips, 0.5), "p99", 1e6 * at(trips, 0.99)));
        processor.leaseLost(LeaseLostInput.builder().build());
        checkDecoded();
        return result;
    }

    private static double at(List<Double> sorted, double share) {
        return sorted.get((int) Math.round(share * (sorted.size() - 1)));
    }

    /** The time of each call; only calls count, not the making of records. */
    private List<Double> run(double seconds) {
        List<Double> trips = new ArrayList<>();
        for (double sum = 0; sum < seconds || trips.size() < 5; sum += trips.get(trips.size() - 1)) {
            ProcessRecordsInput input = nextBatch();
            long cpu = system.getProcessCpuTime();
            long begin = System.nanoTime();
            processor.processRecords(input);
            trips.add((System.nanoTime() - begin) / 1e9);
            cpuNanos += system.getProcessCpuTime() - cpu;
            List<KinesisClientRecord> records = input.records();
            if (hasToCheckpoint && !records.get(records.size() - 1).sequenceNumber().equals(persisted)) {
                throw new IllegalStateException("the child did not checkpoint a batch");
            }
        }
        return trips;
    }

    private ProcessRecordsInput nextBatch() {
        ++batch;
        Instant now = Instant.now();
        List<KinesisClientRecord> records = new ArrayList<>(payloads.size());
        for (byte[] payload : payloads) {
            records.add(KinesisClientRecord.builder()
                    .data(ByteBuffer.wrap(payload))
                    .partitionKey("key-" + records.size())
                    .sequenceNumber(String.format("4959033827149025660855969253836157109592%08d%08d", batch, records.size()))
                    .subSequenceNumber(0)
                    .approximateArrivalTimestamp(now)
                    .build());
        }
        KinesisClientRecord last = records.get(records.size() - 1);
        checkpointer.largestPermittedCheckpointValue(new ExtendedSequenceNumber(last.sequenceNumber(), 0L));
        return ProcessRecordsInput.builder()
                .records(records)
                .millisBehindLatest(0L)
                .checkpointer(checkpointer)
                .build();
    }

    /** What the processor reports at its end must be what it was sent. */
    private void checkDecoded() throws IOException {
        long sent = batch * payloads.size() * payloads.get(0).length;
        if (hasToDecode && !Files.readAllLines(errors).contains(sent + " bytes")) {
            throw new IllegalStateException("the child did not decode all of " + sent + " bytes; its stderr: "
                    + Files.readString(errors));
        }
    }

    private double childCpuSeconds() throws IOException {
        double nanos = 0;
        try (Stream<Path> tasks = Files.list(Path.of("/proc/" + child.pid() + "/task"))) {
            for (Path task : (Iterable<Path>) tasks::iterator) {
                nanos += Double.parseDouble(Files.readString(task.resolve("schedstat")).split(" ")[0]);
            }
        }
        return nanos / 1e9;
    }

    private static long memory() throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
            return lines.filter(line -> line.startsWith("VmRSS:"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024)
                    .findFirst()
                    .orElseThrow();
        }
    }
}
