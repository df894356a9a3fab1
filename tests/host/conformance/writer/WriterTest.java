// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.slf4j.LoggerFactory;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.multilang.messages.ProcessRecordsMessage;
import software.amazon.kinesis.retrieval.KinesisClientRecord;

/** BatchMessageWriter against the daemon's MessageWriter: WriterTest ROUNDS SEED. WriterTest is-same prints whether it is used. */
final class WriterTest {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final List<String> logged = new ArrayList<>();

  public static void main(String[] arguments) throws Exception {
    Logger root = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
    root.setLevel(Level.OFF);
    if (arguments[0].equals("is-same")) {
      System.out.println(BatchMessageWriter.isSame(MAPPER));
      return;
    }
    int differences = guards() + pieces() + children() + rounds(Long.parseLong(arguments[0]), Long.parseLong(arguments[1]));
    System.exit(differences == 0 ? 0 : 1);
  }

  /** Mappers that write something else are noticed. */
  @SuppressWarnings("deprecation")
  private static int guards() {
    List<ObjectMapper> odd = Arrays.asList(null,
        new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true),
        new ObjectMapper().setSerializationInclusion(JsonInclude.Include.NON_NULL),
        new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT));
    int differences = BatchMessageWriter.isSame(MAPPER) ? 0 : 1;
    for (ObjectMapper one : odd) differences += BatchMessageWriter.isSame(one) ? 1 : 0;
    System.out.println((1 + odd.size()) + " mappers, " + differences + " taken for another");
    return differences;
  }

  // --- Pieces.

  /** Counts what it is given. */
  private static final class Measure extends OutputStream {
    long written;
    int longest;

    @Override
    public void write(int b) {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int from, int length) {
      written += length;
      longest = Math.max(longest, length);
    }
  }

  /** However long a line is, it is never in memory as a whole: many records, and a single one of 10 MiB. */
  private static int pieces() throws Exception {
    int failures = 0;
    for (int[] shape : new int[][] {{10_000, 1024}, {1, 10 << 20}}) {
      Measure measure = new Measure();
      BatchMessageWriter writer = new BatchMessageWriter();
      writer.initialize(measure, "s", MAPPER, new Direct());
      boolean isWritten = writer.writeProcessRecordsMessage(plain(shape[0], shape[1])).get();
      System.out.println("a line of " + measure.written + " bytes, in pieces of at most " + measure.longest);
      if (!isWritten || measure.written < 13_000_000 || measure.longest > 64 * 1024) ++failures;
    }
    return failures;
  }

  // --- Real children.

  /** Knows when more was begun to be written than the pipe holds. */
  private static final class Counting extends FilterOutputStream {
    static final int PIPE = 64 * 1024;
    final CountDownLatch isFull = new CountDownLatch(1);
    private long begun;

    Counting(OutputStream out) {
      super(out);
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
      begun += length;
      if (begun > PIPE) isFull.countDown();
      out.write(bytes, from, length);
    }
  }

  private static ProcessRecordsInput plain(int records, int bytes) {
    byte[] data = new byte[bytes];
    new Random(3).nextBytes(data);
    List<KinesisClientRecord> all = new ArrayList<>();
    for (int i = 0; i < records; ++i) {
      all.add(KinesisClientRecord.builder().data(ByteBuffer.wrap(data).asReadOnlyBuffer()).partitionKey("k\u00e9" + i)
          .sequenceNumber("" + i).build());
    }
    return ProcessRecordsInput.builder().records(all).millisBehindLatest(0L).build();
  }

  private static String result(java.util.concurrent.Callable<Future<Boolean>> call) {
    try {
      return " " + call.call().get(60, TimeUnit.SECONDS);
    } catch (Throwable t) {
      return " " + t.getClass().getSimpleName() + " " + t.getMessage();
    }
  }

  /** `when`: what the writer waits for. The child's $GO appears once the pipe is full. */
  private static String seenByChild(MessageWriter writer, String when, String shell, int records, boolean interrupts)
      throws Exception {
    Path go = Files.createTempDirectory("writer").resolve("go");
    ProcessBuilder builder = new ProcessBuilder("sh", "-c",
        "wait_for_go() { until [ -e \"$GO\" ]; do sleep 0.05; done; }; " + shell).redirectErrorStream(true);
    builder.environment().put("GO", go.toString());
    Process child = builder.start();
    ExecutorService pool = Executors.newCachedThreadPool();
    Counting stream = new Counting(child.getOutputStream());
    writer.initialize(stream, "s", MAPPER, pool);
    BufferedReader reader = new BufferedReader(new InputStreamReader(child.getInputStream()));
    if (when.equals("closed")) reader.readLine();
    if (when.equals("ended")) child.waitFor();
    Future<Boolean> written = writer.writeProcessRecordsMessage(plain(records, 1024));
    if (when.equals("full")) {
      if (!stream.isFull.await(60, TimeUnit.SECONDS)) throw new IllegalStateException("the pipe is not full");
      if (interrupts) pool.shutdownNow();
      Files.createFile(go);
    }
    StringBuilder seen = new StringBuilder(result(() -> written)).append(" open ").append(writer.isOpen());
    if (!interrupts) {
      seen.append(result(() -> writer.writeCheckpointMessageWithError("1", 2L, null)));
      seen.append(result(() -> writer.writeProcessRecordsMessage(plain(2, 3))));
    }
    if (writer.isOpen()) writer.close();
    if (!Files.exists(go)) Files.createFile(go);
    seen.append(" child ").append(reader.lines().collect(Collectors.joining(";"))).append(' ').append(child.waitFor());
    pool.shutdownNow();
    return seen.toString();
  }

  private static int children() throws Exception {
    Object[][] cases = {{"reads all", "", "sha256sum", 3000, false}, {"is slow", "full", "wait_for_go; sha256sum", 3000, false},
        {"has closed its stdin", "closed", "exec 0<&-; echo closed; wait_for_go", 3000, false},
        {"has closed its stdin, short", "closed", "exec 0<&-; echo closed; wait_for_go", 1, false},
        {"leaves in the middle", "", "head -c 1000000 | sha256sum", 3000, false}, {"has left", "ended", "exit 3", 3000, false},
        {"was killed", "ended", "kill -9 $$", 3000, false}, {"is killed in the middle", "full", "wait_for_go; kill -9 $$", 3000, false},
        {"reads, after an interrupt", "full", "wait_for_go; sha256sum", 3000, true},
        {"leaves, after an interrupt", "full", "wait_for_go; exit 0", 3000, true}, {"gets no records", "", "sha256sum", 0, false}};
    int differences = 0;
    for (Object[] one : cases) {
      String[] seen = new String[2];
      for (int i = 0; i < 2; ++i) {
        seen[i] = seenByChild(i == 0 ? new MessageWriter() : new BatchMessageWriter(), (String) one[1], (String) one[2],
            (Integer) one[3], (Boolean) one[4]);
      }
      if (seen[0].equals(seen[1])) continue;
      ++differences;
      System.out.println("the child " + one[0] + ":\n  daemon:" + seen[0] + "\n  kclxx: " + seen[1]);
    }
    System.out.println(cases.length + " children, " + differences + " differences");
    return differences;
  }

  // --- Random batches.

  /** Fails at a byte, or at a flush; may be closed. */
  private static final class Sink extends OutputStream {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    long failAt = Long.MAX_VALUE;
    int failFlush = Integer.MAX_VALUE;
    int closes;
    boolean isFlushed;

    @Override
    public void write(int b) throws IOException {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] b, int from, int n) throws IOException {
      if (closes > 0) throw new IOException("Stream Closed");
      isFlushed = false;
      if (bytes.size() + n > failAt) throw new IOException("Broken pipe");
      bytes.write(b, from, n);
    }

    @Override
    public void flush() throws IOException {
      if (--failFlush < 0) throw new IOException("Broken pipe");
      isFlushed = true;
    }

    @Override
    public void close() {
      ++closes;
    }
  }

  private static final class Direct extends ThreadPoolExecutor {
    boolean refuses;

    Direct() {
      super(0, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>()); // which never get a task
    }

    @Override
    public void execute(Runnable task) {
      if (refuses) throw new RejectedExecutionException("full");
      task.run();
    }
  }

  private static String text(Random r, int most) {
    StringBuilder s = new StringBuilder();
    for (int n = r.nextInt(most + 1); s.length() < n; ) {
      switch (r.nextInt(9)) {
        case 0: s.append((char) r.nextInt(32)); break;
        case 1: s.append("\"\\/\u007f\u0080\u2028\u2029\ufeff\uffff'<>&".charAt(r.nextInt(13))); break;
        case 2: s.append((char) r.nextInt(0x800)); break;
        case 3: s.append((char) r.nextInt(0x10000)); break;
        case 4: s.append((char) (0xd800 + r.nextInt(0x800))); break; // half of a pair
        case 5: s.appendCodePoint(0x10000 + r.nextInt(0x100000)); break;
        default: s.append((char) (32 + r.nextInt(95)));
      }
    }
    return s.toString();
  }

  private static ByteBuffer buffer(Random r, boolean mayBeOdd) {
    int n = r.nextInt(60) == 0 ? r.nextInt(20_000) : r.nextInt(20_000) == 0 ? r.nextInt(1 << 20)
        : r.nextInt(5) == 0 ? 3072 * r.nextInt(3) + r.nextInt(3) : r.nextInt(200);
    byte[] bytes = new byte[n];
    r.nextBytes(bytes);
    ByteBuffer b = ByteBuffer.wrap(bytes);
    switch (r.nextInt(8)) {
      case 0: break;
      case 1: b = ByteBuffer.allocateDirect(n); b.put(bytes); b.clear(); break;
      case 2:
        int from = r.nextInt(n + 1);
        b = ByteBuffer.wrap(bytes, from, r.nextInt(n - from + 1));
        if (r.nextBoolean()) b = b.slice();
        if (r.nextBoolean() && (mayBeOdd || b.position() == 0)) b = b.asReadOnlyBuffer();
        break;
      case 3: b = b.asReadOnlyBuffer(); b.limit(r.nextInt(n + 1)); break;
      default: b = b.asReadOnlyBuffer();
    }
    if (mayBeOdd && r.nextInt(4) == 0) b.position(r.nextInt(b.limit() + 1));
    return b;
  }

  private static Instant time(Random r, boolean mayBeOdd) {
    int kind = r.nextInt(48);
    if (mayBeOdd && kind < 3) return r.nextBoolean() ? Instant.MAX : Instant.MIN;
    long last = Long.MAX_VALUE / 1000; // second whose milliseconds fit
    if (mayBeOdd && kind < 6) {
      return Instant.ofEpochSecond((r.nextBoolean() ? last : -last) + r.nextInt(5) - 2, r.nextInt(1_000_000_000));
    }
    if (kind < 12) return null;
    if (kind < 20) return Instant.ofEpochSecond(r.nextLong() >> 31 + r.nextInt(30), r.nextInt(1_000_000_000));
    return Instant.ofEpochMilli(1763900000000L + r.nextInt());
  }

  /** The batch of a seed. One of 20 may have what the daemon refuses, or what it changes for the next one. */
  private static ProcessRecordsInput input(long seed) {
    Random r = new Random(seed);
    boolean mayBeOdd = r.nextInt(20) == 0;
    List<KinesisClientRecord> records = new ArrayList<>();
    int n = r.nextInt(200) == 0 ? r.nextInt(400) : r.nextInt(5);
    for (int i = 0; i < n; ++i) {
      if (mayBeOdd && r.nextInt(10) == 0) {
        records.add(i == 0 || r.nextBoolean() ? null : records.get(r.nextInt(i)));
        continue;
      }
      int most = r.nextInt(5000) == 0 ? 100_000 : r.nextInt(20) == 0 ? 256 : 16;
      records.add(KinesisClientRecord.builder().data(r.nextInt(20) == 0 ? null : buffer(r, mayBeOdd))
          .partitionKey(r.nextInt(20) == 0 ? null : text(r, most))
          .sequenceNumber(r.nextInt(20) == 0 ? null
              : r.nextInt(10) == 0 ? text(r, 30) : "495903382714902566085596925" + Math.abs(r.nextLong()))
          .subSequenceNumber(r.nextInt(3) == 0 ? r.nextLong()
              : r.nextInt(8) == 0 ? (r.nextBoolean() ? Long.MIN_VALUE : Long.MAX_VALUE) : r.nextInt(300))
          .approximateArrivalTimestamp(time(r, mayBeOdd)).build());
    }
    boolean isNull = mayBeOdd && r.nextInt(20) == 0;
    return ProcessRecordsInput.builder()
        .records(isNull ? null : r.nextBoolean() ? records : Collections.unmodifiableList(records))
        .millisBehindLatest(r.nextInt(5) == 0 ? null : (Long) (r.nextInt(4) == 0 ? r.nextLong() : r.nextInt(100_000)))
        .build();
  }

  private static String positions(ProcessRecordsInput input) {
    StringBuilder s = new StringBuilder();
    if (input.records() == null) return "";
    for (KinesisClientRecord one : input.records()) {
      ByteBuffer b = one == null ? null : one.data();
      s.append(b == null ? "-" : b.position() + "/" + b.limit() + "/" + b.capacity()).append(' ');
    }
    return s.toString();
  }

  /** Without the words that Java itself finds for null. */
  private static String of(Throwable t) {
    if (t == null) return "";
    boolean isJavas = t instanceof NullPointerException && !String.valueOf(t.getMessage()).contains("marked");
    return t.getClass().getName() + ": " + (isJavas ? "" : t.getMessage()) + " <- " + of(t.getCause());
  }

  private static void step(StringBuilder s, MessageWriter w, java.util.concurrent.Callable<Future<Boolean>> call) {
    try {
      s.append(call.call().get());
    } catch (Throwable t) {
      s.append(of(t));
    }
    s.append(" open ").append(w.isOpen()).append('\n');
  }

  /** All that can be seen of one writer in a round. */
  private static final class Seen {
    String text;
    byte[] bytes;
    boolean isWhole; // else the number of bytes before the failure may differ
  }

  private static Seen play(MessageWriter w, long seed, long lineLength) throws Exception {
    Random r = new Random(seed ^ 0x5deece66dL);
    Sink sink = new Sink();
    Direct executor = new Direct();
    StringBuilder s = new StringBuilder();
    logged.clear();
    w.initialize(sink, "shardId-" + r.nextInt(9), MAPPER, executor);
    int kind = r.nextInt(25);
    boolean hasLine = lineLength > 0;
    if (kind < 3 && hasLine) sink.failAt = kind == 0 ? 0 : (long) (r.nextDouble() * lineLength);
    if (kind == 3 && hasLine) sink.failFlush = w instanceof BatchMessageWriter ? 1 : 0; // it flushes once more, at the begin
    if (kind == 4) w.close();
    if (kind == 5) {
      step(s, w, () -> w.writeInitializeMessage(InitializationInput.builder().shardId("x\u20ac\ud800").build()));
    }
    executor.refuses = kind == 6;
    if (kind == 7) Thread.currentThread().interrupt();
    ProcessRecordsInput input = input(seed);
    step(s, w, () -> w.writeProcessRecordsMessage(input));
    s.append(positions(input)).append(sink.isFlushed).append(Thread.interrupted());
    executor.refuses = false;
    Seen seen = new Seen();
    seen.isWhole = w.isOpen();
    step(s, w, () -> w.writeCheckpointMessageWithError("7", 8L, null));
    step(s, w, () -> w.writeProcessRecordsMessage(input(seed + 1)));
    step(s, w, () -> w.writeShutdownRequestedMessage());
    if (kind % 2 == 0) {
      if (w.isOpen()) w.close();
      s.append(" closes ").append(sink.closes);
      step(s, w, () -> w.writeLeaseLossMessage(null));
    }
    seen.text = s + String.join("\n", logged);
    seen.bytes = sink.bytes.toByteArray();
    return seen;
  }

  private static int rounds(long rounds, long first) throws Exception {
    Logger daemon = (Logger) LoggerFactory.getLogger("software.amazon.kinesis.multilang");
    daemon.setLevel(Level.INFO);
    daemon.setAdditive(false);
    AppenderBase<ILoggingEvent> appender = new AppenderBase<ILoggingEvent>() {
      @Override
      protected void append(ILoggingEvent e) {
        logged.add(e.getLevel() + " " + e.getLoggerName() + " " + e.getFormattedMessage() + (e.getThrowableProxy() == null
            ? "" : e.getThrowableProxy().getClassName() + e.getThrowableProxy().getMessage()));
      }
    };
    appender.setContext(daemon.getLoggerContext());
    appender.start();
    daemon.addAppender(appender);
    long bytes = 0, refused = 0, cut = 0;
    int differences = 0;
    for (long seed = first; seed < first + rounds; ++seed) {
      long length = 0;
      try {
        length = MAPPER.writeValueAsString(new ProcessRecordsMessage(input(seed))).length();
      } catch (RuntimeException e) {
        ++refused;
      }
      Seen theirs = play(new MessageWriter(), seed, length);
      Seen ours = play(new BatchMessageWriter(), seed, length);
      int size = theirs.isWhole ? theirs.bytes.length : Math.min(theirs.bytes.length, ours.bytes.length);
      boolean isSame = theirs.text.equals(ours.text) && (!theirs.isWhole || ours.bytes.length == size)
          && Arrays.equals(Arrays.copyOf(theirs.bytes, size), Arrays.copyOf(ours.bytes, size));
      bytes += theirs.bytes.length;
      cut += theirs.isWhole ? 0 : 1;
      if (isSame || ++differences > 3) continue;
      System.out.println("seed " + seed + ":\n  daemon, " + theirs.bytes.length + " bytes: " + theirs.text + "\n  kclxx, "
          + ours.bytes.length + " bytes: " + ours.text);
    }
    System.out.println(rounds + " rounds from seed " + first + ": " + bytes + " bytes, " + refused
        + " batches that the daemon refuses, " + cut + " writes that fail, " + differences + " differences");
    return differences;
  }
}
