// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * A child process without a process; what the daemon writes to it is noted. For each call it has a list of turns: the
 * first is written when the call's line comes, the next ones as its checkpoints are answered. Where the script has
 * nothing more and the daemon reads, it would wait indefinitely: that is noted, and the output ends.
 */
final class Child extends Process {
    private final JsonNode turnsOfCalls;
    private final Events events;
    private ByteArrayInputStream output = new ByteArrayInputStream(new byte[0]);
    private int call = -1;
    private int turn;
    private boolean outputEnded;
    private boolean inputClosed;
    private final OutputStream input = new OutputStream() {
        private final ByteArrayOutputStream line = new ByteArrayOutputStream();

        @Override
        public void write(int octet) {
            if (octet != '\n') {
                line.write(octet);
                return;
            }
            events.add("send", line.toString(StandardCharsets.UTF_8));
            receive(line.toString(StandardCharsets.UTF_8));
            line.reset();
        }

        @Override
        public void close() {
            if (!inputClosed) {
                inputClosed = true;
                events.add("closes_input", true);
            }
        }
    };

    Child(JsonNode turnsOfCalls, Events events) {
        this.turnsOfCalls = turnsOfCalls;
        this.events = events;
    }

    /** A line of the daemon, without its newline. */
    private void receive(String line) {
        if (line.startsWith("{\"action\":\"checkpoint\"")) {
            ++turn;
        } else {
            ++call;
            turn = 0;
        }
        if (outputEnded) {
            return;
        }
        JsonNode answer = turnsOfCalls.path(call).path(turn);
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.writeBytes(output.readAllBytes());
        // A JSON string holds bytes here, one to a character, so that a script can hold any.
        all.writeBytes(answer.path("write").asText("").getBytes(StandardCharsets.ISO_8859_1));
        output = new ByteArrayInputStream(all.toByteArray());
        outputEnded = answer.path("end").asBoolean(false);
    }

    @Override
    public OutputStream getOutputStream() {
        return input;
    }

    @Override
    public InputStream getInputStream() {
        return new InputStream() {
            @Override
            public int available() {
                return output.available();
            }

            @Override
            public int read() {
                byte[] octet = new byte[1];
                return read(octet, 0, 1) < 0 ? -1 : octet[0] & 0xff;
            }

            @Override
            public int read(byte[] into, int offset, int length) {
                if (available() == 0 && !inputClosed && !outputEnded) {
                    events.add("waits", true);
                    outputEnded = true;
                }
                return output.read(into, offset, length);
            }
        };
    }

    @Override
    public InputStream getErrorStream() {
        return InputStream.nullInputStream();
    }

    @Override
    public int waitFor() {
        return 0;
    }

    @Override
    public int exitValue() {
        return 0;
    }

    @Override
    public void destroy() {}
}
