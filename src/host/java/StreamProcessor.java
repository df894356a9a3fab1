// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.multilang.config.MultiLangDaemonConfiguration;

/** The daemon's processor of one shard, whose child is told its stream, and whose failure is told in one line. */
final class StreamProcessor extends MultiLangShardRecordProcessor {
  private final String stream;
  // No lock: a shard has one call at a time, and the daemon calls exit() within a call.
  private String shard = "";
  private String outcome = "was not started";
  private Process child;

  StreamProcessor(MultiLangDaemonConfig config, ObjectMapper mapper, MessageWriter writer) {
    this(config.getRecordProcessorFactory().getCommandArray(), config.getExecutorService(), mapper, writer,
        config.getMultiLangDaemonConfiguration());
  }

  private StreamProcessor(String[] command, ExecutorService executor, ObjectMapper mapper, MessageWriter writer,
      MultiLangDaemonConfiguration configuration) {
    super(programOf(command, configuration), executor, mapper, writer, new MessageReader(), new DrainChildSTDERRTask(),
        configuration);
    stream = configuration == null ? "" : configuration.getStreamName();
  }

  /** Errors: LinkageError when this class cannot be used with this daemon's. */
  static void expectLoaded(ObjectMapper mapper) {
    new StreamProcessor(new String[0], null, mapper, new MessageWriter(), null);
  }

  private static ProcessBuilder programOf(String[] command, MultiLangDaemonConfiguration configuration) {
    ProcessBuilder program = new ProcessBuilder(command);
    if (configuration == null) return program;
    Map<String, String> environment = program.environment(); // src/kclxx/runtime reads these
    environment.put("KCLXX_APPLICATION_NAME", configuration.getApplicationName());
    environment.put("KCLXX_STREAM_NAME", configuration.getStreamName());
    environment.put("KCLXX_WORKER_ID", configuration.getWorkerIdentifier());
    return program;
  }

  @Override
  public void initialize(InitializationInput input) {
    shard = input.shardId();
    super.initialize(input);
  }

  @Override
  Process startProcess() throws IOException {
    try {
      child = super.startProcess();
      return child;
    } catch (IOException failed) {
      outcome = "cannot be started: " + failed.getMessage();
      throw failed;
    }
  }

  /** The daemon calls this when the child has failed, and has waited for the child's end before. */
  @Override
  void exit() {
    if (child != null) outcome = child.isAlive() ? "failed, and has not ended" : "ended with status " + child.exitValue();
    System.err.println("kclxx daemon run: the program of stream " + stream + ", " + shard + ", " + outcome
        + ": the daemon ends, with all its shards and streams");
    super.exit();
  }
}
