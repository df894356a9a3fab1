// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang.config;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import java.io.FileInputStream;
import java.io.InputStream;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.ScanRequest;
import software.amazon.kinesis.leases.LeaseManagementConfig;
import software.amazon.kinesis.multilang.MultiLangDaemon;

/**
 * The daemon, for one stream: a lease has a shard's number and not its stream, so two streams under one applicationName lose
 * records without an error. Each worker writes its stream's name to the leases, in an attribute that the KCL keeps and does
 * not read. One that finds only another's name does not start; one that finds both warns.
 */
public final class OneStreamDaemon implements Runnable {
  private static final String ATTRIBUTE = "kclxxStream";

  private final DynamoDbAsyncClient client;
  private final String table;
  private final String stream;

  private OneStreamDaemon(DynamoDbAsyncClient client, String table, String stream) {
    this.client = client;
    this.table = table;
    this.stream = stream;
  }

  public static void main(String[] arguments) throws Exception {
    // Until the daemon configures its log.
    ((Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME)).setLevel(Level.OFF);
    OneStreamDaemon guard = null;
    try (InputStream file = new FileInputStream(arguments[Arrays.asList(arguments).indexOf("-p") + 1])) {
      MultiLangDaemonConfiguration read = new KinesisClientLibConfigurator().getConfiguration(file);
      MultiLangDaemonConfiguration.ResolvedConfiguration resolved = read.resolvedConfiguration(() -> null);
      LeaseManagementConfig leases = resolved.getLeaseManagementConfig();
      resolved.getRetrievalConfig().kinesisClient().close();
      guard = new OneStreamDaemon(leases.dynamoDBClient(), leases.tableName(), read.getStreamName());
      guard.expectOwn(guard.mark());
    } catch (Exception unknown) {
      // The daemon says what is wrong, and tries again what may be; the start waits 10 s for the table at most.
    }
    if (guard != null) {
      Thread thread = new Thread(guard, "one-stream");
      thread.setDaemon(true);
      thread.start();
    }
    MultiLangDaemon.main(arguments);
  }

  /** Soon after the leases were made, and then now and then: they come and go with the shards. */
  @Override
  public void run() {
    boolean isTold = false;
    for (long pause = 2_000; ; ) {
      try {
        Thread.sleep(pause);
        Set<String> streams = mark();
        expectOwn(streams);
        if (!streams.isEmpty()) pause = 60_000;
        if (streams.size() > 1 && !isTold) say(streams, "and half of the records are never read");
        isTold = streams.size() > 1;
      } catch (InterruptedException end) {
        return;
      } catch (Exception later) {
        pause = Math.min(2 * pause, 60_000); // the table is not there yet, is throttled, or may not be read
      }
    }
  }

  /** Ends a worker that has come to another stream's leases. */
  private void expectOwn(Set<String> streams) {
    if (streams.isEmpty() || streams.contains(stream)) return;
    say(streams, "so it ends");
    System.exit(1);
  }

  /** The streams that the leases name, after it has named its own where none is, and no other. */
  private Set<String> mark() throws Exception {
    Set<String> streams = new TreeSet<>();
    Set<String> unnamed = new TreeSet<>();
    Map<String, AttributeValue> from = Collections.emptyMap();
    do {
      ScanRequest.Builder scan = ScanRequest.builder().tableName(table)
          .filterExpression("attribute_exists(checkpoint)").projectionExpression("leaseKey, " + ATTRIBUTE);
      if (!from.isEmpty()) scan.exclusiveStartKey(from);
      software.amazon.awssdk.services.dynamodb.model.ScanResponse page = client.scan(scan.build()).get(10, TimeUnit.SECONDS);
      for (Map<String, AttributeValue> row : page.items()) {
        if (row.containsKey(ATTRIBUTE)) streams.add(row.get(ATTRIBUTE).s());
        else unnamed.add(row.get("leaseKey").s());
      }
      from = page.lastEvaluatedKey();
    } while (!from.isEmpty());
    if (!streams.isEmpty() && !streams.contains(stream)) return streams;
    for (String key : unnamed) {
      client.updateItem(update -> update.tableName(table)
          .key(Collections.singletonMap("leaseKey", AttributeValue.builder().s(key).build()))
          .updateExpression("SET " + ATTRIBUTE + " = :stream")
          .conditionExpression("attribute_exists(leaseKey) AND attribute_not_exists(" + ATTRIBUTE + ")")
          .expressionAttributeValues(
              Collections.singletonMap(":stream", AttributeValue.builder().s(stream).build()))).get(10, TimeUnit.SECONDS);
      streams.add(stream);
    }
    return streams;
  }

  private void say(Set<String> streams, String what) {
    System.err.println("kclxx daemon run: the lease table " + table + " is of the stream " + String.join(", ", streams)
        + ", and this worker reads " + stream + ", " + what
        + ": each stream needs an applicationName or tableName of its own (docs/host/deployment.md#in-aws)");
  }
}
