// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.multilang.messages.JsonFriendlyRecord;
import software.amazon.kinesis.multilang.messages.ProcessRecordsMessage;
import software.amazon.kinesis.retrieval.KinesisClientRecord;

/**
 * The daemon's own writer, but for a batch: its line goes to the child in pieces. The daemon makes a map of each record, a
 * String of the whole line, and then its bytes, which is most of what the JVM spends on a record.
 * tests/host/conformance/writer compares both writers.
 */
class BatchMessageWriter extends MessageWriter {
  private static final Logger log = LoggerFactory.getLogger(MessageWriter.class);
  private static final long FAR = 1L << 52; // seconds whose milliseconds may not fit into a long

  private OutputStream stream;
  private Text text;
  private String shardId;
  private ExecutorService executorService;

  @Override
  MessageWriter initialize(
      OutputStream stream, String shardId, ObjectMapper objectMapper, ExecutorService executorService) {
    this.stream = stream;
    this.text = new Text(stream);
    this.shardId = shardId;
    this.executorService = executorService;
    return super.initialize(text, shardId, objectMapper, executorService);
  }

  @Override
  Future<Boolean> writeProcessRecordsMessage(ProcessRecordsInput input) {
    if (stream == null || !isOpen()) return super.writeProcessRecordsMessage(input);
    int size = Line.SHORT;
    for (KinesisClientRecord record : input.records()) size = Math.min(Line.PIECE, size + take(record));
    log.info("Writing {} to child process for shard {}", "ProcessRecordsMessage", shardId);
    int capacity = size;
    return executorService.submit(() -> write(input, capacity));
  }

  /** Leaves a record as the daemon leaves it, and fails as the daemon does. Returns about how long it will be. */
  private static int take(KinesisClientRecord record) {
    ByteBuffer data = record == null ? null : record.data();
    boolean isRead = data != null && !data.hasArray();
    Instant time = record == null ? null : record.approximateArrivalTimestamp();
    if (record == null || isRead && data.position() != 0 || time != null && Math.abs(time.getEpochSecond()) > FAR) {
      JsonFriendlyRecord.fromKinesisClientRecord(record); // throws, or does this
    } else if (isRead) {
      data.position(data.limit());
    }
    return 512 + 2 * (data == null ? 0 : Math.min(Line.PIECE, data.limit()));
  }

  private boolean write(ProcessRecordsInput input, int capacity) throws IOException {
    try {
      long size;
      synchronized (text) {
        try {
          text.flush(); // fails if it was closed
          size = new Line(stream, capacity).write(input);
          text.flush();
        } catch (IOException e) {
          text.stopsOnly = true;
          close(); // from now on MessageWriter refuses
          text.stopsOnly = false;
          throw e;
        }
      }
      log.info("Message size == {} bytes for shard {}", size - System.lineSeparator().length(), shardId);
    } catch (IOException e) {
      return false;
    }
    return isOpen();
  }

  /**
   * Whether both write the same, for records that another Jackson, mapper or charset would write otherwise. Loads every class
   * that a writer needs.
   */
  static boolean isSame(ObjectMapper mapper) {
    try {
      new BatchMessageWriter().initialize(new ByteArrayOutputStream(), "", mapper, null);
      StringBuilder characters = new StringBuilder("\u2028\uffff\ud83d\ude00\ud83d");
      for (char c = 0; c < 0x180; ++c) characters.append(c);
      byte[] bytes = new byte[3 * Line.RAW + 1];
      for (int i = 0; i < bytes.length; ++i) bytes[i] = (byte) (i * 7);
      KinesisClientRecord.KinesisClientRecordBuilder odd = KinesisClientRecord.builder()
          .partitionKey(characters.append('\udc00').toString())
          .sequenceNumber("49590338271490256608559692538361571095921575989136588898")
          .subSequenceNumber(Long.MIN_VALUE).approximateArrivalTimestamp(Instant.ofEpochMilli(-1));
      ProcessRecordsInput input = ProcessRecordsInput.builder().millisBehindLatest(Long.MAX_VALUE)
          .records(Arrays.asList(odd.data(ByteBuffer.wrap(bytes, 5, 9)).build(), KinesisClientRecord.builder().build(),
              odd.data(ByteBuffer.wrap(bytes, 1, 7).slice().asReadOnlyBuffer()).build()))
          .build();
      ByteArrayOutputStream line = new ByteArrayOutputStream();
      new Line(line, Line.SHORT).write(input);
      String theirs = mapper.writeValueAsString(new ProcessRecordsMessage(input)) + System.lineSeparator();
      return Arrays.equals(line.toByteArray(), theirs.getBytes());
    } catch (Exception | LinkageError e) {
      return false;
    }
  }

  /** What MessageWriter locks, and writes its other messages to. */
  private static final class Text extends BufferedWriter {
    boolean stopsOnly;

    Text(OutputStream stream) {
      super(new OutputStreamWriter(stream));
    }

    @Override
    public synchronized void close() throws IOException {
      if (!stopsOnly) super.close();
    }
  }

  /** One batch, as Jackson and an OutputStreamWriter write it, in pieces of at most 64 KiB. */
  private static final class Line {
    static final int PIECE = 64 * 1024;
    static final int SHORT = 8 * 1024;
    static final int RAW = 3 * 1024; // bytes that are encoded at once

    private static final byte[] BEGIN = ascii("{\"action\":\"processRecords\",\"records\":[");
    private static final byte[] DATA = ascii("{\"data\":");
    private static final byte[] KEY = ascii(",\"partitionKey\":");
    private static final byte[] NUMBER = ascii(",\"sequenceNumber\":");
    private static final byte[] TIME = ascii(",\"approximateArrivalTimestamp\":");
    private static final byte[] SUB_NUMBER = ascii(",\"subSequenceNumber\":");
    private static final byte[] RECORD_END = ascii(",\"action\":\"record\"}");
    private static final byte[] END = ascii("],\"millisBehindLatest\":");
    private static final byte[] LINE_END = ascii("}\n");
    private static final byte[] COMMA = ascii(",");
    private static final byte[] QUOTE = ascii("\"");
    private static final byte[] NULL = ascii("null");
    private static final byte[][] ESCAPES = new byte[128][];

    static {
      for (int c = 0; c < 32; ++c) ESCAPES[c] = ascii(String.format("\\u%04X", c));
      for (int i = 0; i < 7; ++i) ESCAPES["\b\t\n\f\r\"\\".charAt(i)] = ascii("\\" + "btnfr\"\\".charAt(i));
    }

    private final OutputStream stream;
    private final byte[] piece;
    private final byte[] raw = new byte[RAW];
    private final byte[] encoded = new byte[RAW / 3 * 4];
    private int size;
    private long written;

    Line(OutputStream stream, int capacity) {
      this.stream = stream;
      piece = new byte[capacity];
    }

    /** Returns how many bytes it has. */
    long write(ProcessRecordsInput input) throws IOException {
      put(BEGIN);
      boolean isFirst = true;
      for (KinesisClientRecord record : input.records()) {
        if (!isFirst) put(COMMA);
        isFirst = false;
        Instant time = record.approximateArrivalTimestamp();
        put(DATA);
        data(record.data());
        put(KEY);
        text(record.partitionKey());
        put(NUMBER);
        text(record.sequenceNumber());
        put(TIME);
        number(time == null ? null : (Long) time.toEpochMilli());
        put(SUB_NUMBER);
        number(record.subSequenceNumber());
        put(RECORD_END);
      }
      put(END);
      number(input.millisBehindLatest());
      put(LINE_END);
      drain();
      return written;
    }

    /** All bytes, wherever the position is: a writable buffer's array, else up to the limit. */
    private void data(ByteBuffer data) throws IOException {
      if (data == null) {
        put(NULL);
        return;
      }
      ByteBuffer unread = data.hasArray() ? ByteBuffer.wrap(data.array()) : data.duplicate();
      unread.rewind();
      put(QUOTE);
      while (unread.hasRemaining()) {
        byte[] from = unread.remaining() < RAW ? new byte[unread.remaining()] : raw;
        unread.get(from);
        put(encoded, 0, Base64.getEncoder().encode(from, encoded));
      }
      put(QUOTE);
    }

    private void text(String value) throws IOException {
      if (value == null) {
        put(NULL);
        return;
      }
      byte[] bytes = value.getBytes(StandardCharsets.UTF_8); // the half of a pair becomes '?', as in a writer
      put(QUOTE);
      int begin = 0;
      for (int i = 0; i < bytes.length; ++i) {
        byte[] escape = bytes[i] < 0 ? null : ESCAPES[bytes[i]];
        if (escape == null) continue;
        put(bytes, begin, i - begin);
        put(escape);
        begin = i + 1;
      }
      put(bytes, begin, bytes.length - begin);
      put(QUOTE);
    }

    private void number(Long value) throws IOException {
      put(value == null ? NULL : ascii(value.toString()));
    }

    private void put(byte[] bytes) throws IOException {
      put(bytes, 0, bytes.length);
    }

    private void put(byte[] bytes, int begin, int length) throws IOException {
      if (piece.length - size < length) drain();
      if (piece.length < length) {
        stream.write(bytes, begin, length);
        written += length;
        return;
      }
      System.arraycopy(bytes, begin, piece, size, length);
      size += length;
    }

    private void drain() throws IOException {
      stream.write(piece, 0, size);
      written += size;
      size = 0;
    }

    private static byte[] ascii(String text) {
      return text.getBytes(StandardCharsets.ISO_8859_1);
    }
  }
}
