// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.turbo.TurboFilter;
import ch.qos.logback.core.spi.FilterReply;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;
import org.slf4j.Marker;

/**
 * The worker of one stream: what AWS's main makes of a properties file. Every thread of the worker is in this group, since a
 * thread and a pool of threads belong to the group of the thread that makes them. So a log line can name the worker.
 */
final class StreamWorker extends ThreadGroup {
  private static final MultiLangDaemon daemon = new MultiLangDaemon();

  private MultiLangDaemonConfig config;
  private MultiLangDaemon.MultiLangRunner runner;

  private StreamWorker(String application) {
    super(application);
  }

  /**
   * `arguments`: "-p" and a properties file for each worker, after "-a" and its application's name when there are several; "-l"
   * and the configuration of the log. Returns when all workers run. Ends the process when one cannot be made.
   */
  static void startAll(String[] arguments) {
    ObjectMapper mapper = new ObjectMapper();
    // Before a file is read, which may be a pipe: what does not load shows here, and AWS's main can read it.
    StreamProcessor.expectLoaded(mapper);
    boolean hasOwnWriter = Boolean.getBoolean("kclxx.writer") && hasWorkingWriter(mapper);
    List<StreamWorker> workers = new ArrayList<>();
    List<String> files = new ArrayList<>();
    String application = "";
    for (int i = 0; i < arguments.length; i += 2) {
      String value = arguments[i + 1];
      if (arguments[i].equals("-l")) daemon.configureLogging(value);
      if (arguments[i].equals("-a")) application = value;
      if (!arguments[i].equals("-p")) continue;
      workers.add(new StreamWorker(application));
      files.add(value);
    }
    if (workers.size() > 1) ((LoggerContext) LoggerFactory.getILoggerFactory()).addTurboFilter(new Naming());
    for (int i = 0; i < workers.size(); ++i) workers.get(i).make(files.get(i), mapper, hasOwnWriter);
    // No hook and no child before every worker could be made.
    for (StreamWorker worker : workers) new Thread(worker, worker::run, "worker").start();
  }

  /** The first worker that ends ends the process, as AWS's only one does. The hooks stop the others. */
  private void run() {
    daemon.setupShutdownHook(Runtime.getRuntime(), runner, config);
    daemon.exit(daemon.submitRunnerAndWait(config, runner));
  }

  private static boolean hasWorkingWriter(ObjectMapper mapper) {
    boolean isSame = BatchMessageWriter.isSame(mapper);
    System.err.println("kclxx daemon run: " + (isSame ? "kclxx's writer writes the batches"
        : "warning: the daemon's own writer writes the batches: at the start kclxx's wrote something else"));
    return isSame;
  }

  private void make(String file, ObjectMapper mapper, boolean hasOwnWriter) {
    FutureTask<Void> task = new FutureTask<>(() -> {
      config = daemon.buildMultiLangDaemonConfig(file);
      runner = new MultiLangDaemon.MultiLangRunner(config.getMultiLangDaemonConfiguration().build(
          () -> new StreamProcessor(config, mapper, hasOwnWriter ? new BatchMessageWriter() : new MessageWriter())));
      return null;
    });
    new Thread(this, task, "make").start();
    try {
      task.get();
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof LinkageError) throw (LinkageError) failed.getCause();
      failed.getCause().printStackTrace();
      System.err.println("kclxx daemon run: the daemon does not start" + (getName().isEmpty() ? "" : " for " + getName())
          + ": " + failed.getCause().getMessage());
      daemon.exit(1);
    } catch (InterruptedException never) {
      daemon.exit(1); // nobody interrupts the main thread
    }
  }

  /** Sets %mdc{Application} to the worker's name before a line is written. */
  static final class Naming extends TurboFilter {
    @Override
    public FilterReply decide(
        Marker marker, Logger logger, Level level, String format, Object[] parameters, Throwable thrown) {
      ThreadGroup group = Thread.currentThread().getThreadGroup();
      boolean isWritten = level.isGreaterOrEqual(logger.getEffectiveLevel());
      if (isWritten && group instanceof StreamWorker) MDC.put("Application", group.getName());
      return FilterReply.NEUTRAL;
    }
  }
}
