// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.concurrent.ExecutorService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.kinesis.multilang.config.MultiLangDaemonConfiguration;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.ShardRecordProcessorFactory;

/**
 * In place of the daemon's class of this name, which comes later in the class path: its processors are the daemon's own, and
 * with -Dkclxx.writer=true, as src/host/daemon/launch.cpp decides, they have a BatchMessageWriter if that writes the same.
 */
public class MultiLangRecordProcessorFactory implements ShardRecordProcessorFactory {
  private static final Logger log = LoggerFactory.getLogger(MultiLangRecordProcessorFactory.class);

  private final String command;
  private final String[] commandArray;
  private final ObjectMapper objectMapper;
  private final ExecutorService executorService;
  private final MultiLangDaemonConfiguration configuration;
  private final boolean isOurs;

  public MultiLangRecordProcessorFactory(
      String command, ExecutorService executorService, MultiLangDaemonConfiguration configuration) {
    this(command, executorService, new ObjectMapper(), configuration);
  }

  public MultiLangRecordProcessorFactory(String command, ExecutorService executorService, ObjectMapper objectMapper,
      MultiLangDaemonConfiguration configuration) {
    this.command = command;
    this.commandArray = command.split(" +");
    this.executorService = executorService;
    this.objectMapper = objectMapper;
    this.configuration = configuration;
    boolean isWanted = Boolean.getBoolean("kclxx.writer");
    isOurs = isWanted && BatchMessageWriter.isSame(objectMapper);
    if (isWanted) {
      System.err.println("kclxx daemon run: " + (isOurs ? "kclxx's writer writes the batches"
          : "warning: the daemon's own writer writes the batches: at the start kclxx's wrote something else"));
    }
  }

  @Override
  public ShardRecordProcessor shardRecordProcessor() {
    log.debug("Creating new record processor for client executable: {}", command);
    return new MultiLangShardRecordProcessor(new ProcessBuilder(commandArray), executorService, objectMapper,
        isOurs ? new BatchMessageWriter() : new MessageWriter(), new MessageReader(), new DrainChildSTDERRTask(),
        configuration);
  }

  String[] getCommandArray() {
    return commandArray;
  }
}
