// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * A child process without a process. For each call it has a list of turns: the first is written when the call's line
 * comes, the next ones as its checkpoints are answered. Where the script has nothing more and the daemon reads, it
 * would wait indefinitely: that is noted, and the output ends.
 */
public final class ScriptedChild extends Process {
    private final JsonNode turnsOfCalls;
    private final Events events;
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private byte[] output = new byte[0];
    private int position;
    private int call = -1;
    private int turn;
    private boolean inputClosed;
    private boolean outputEnded;

    ScriptedChild(JsonNode turnsOfCalls, Events events) {
        this.turnsOfCalls = turnsOfCalls;
        this.events = events;
    }

    @Override
    public OutputStream getOutputStream() {
        return new OutputStream() {
            @Override
            public void write(int octet) {
                if (octet == '\n') {
                    takeTurn(new String(line.toByteArray(), StandardCharsets.UTF_8));
                    line.reset();
                } else {
                    line.write(octet);
                }
            }

            @Override
            public void close() {
                if (!inputClosed) {
                    inputClosed = true;
                    events.add("closes_input", true);
                }
            }
        };
    }

    private void takeTurn(String received) {
        events.add("send", received);
        if (received.startsWith("{\"action\":\"checkpoint\"")) {
            ++turn;
        } else {
            ++call;
            turn = 0;
        }
        if (outputEnded) {
            return;
        }
        JsonNode answer = turnsOfCalls.path(call).path(turn);
        // A JSON string holds bytes here, one to a character, so that a script can hold any.
        byte[] bytes = answer.path("write").asText("").getBytes(StandardCharsets.ISO_8859_1);
        byte[] rest = new byte[output.length - position + bytes.length];
        System.arraycopy(output, position, rest, 0, output.length - position);
        System.arraycopy(bytes, 0, rest, output.length - position, bytes.length);
        output = rest;
        position = 0;
        outputEnded = answer.path("end").asBoolean(false);
    }

    @Override
    public InputStream getInputStream() {
        return new InputStream() {
            @Override
            public int available() {
                return output.length - position;
            }

            @Override
            public int read() {
                byte[] one = new byte[1];
                return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
            }

            @Override
            public int read(byte[] into, int offset, int length) {
                if (position == output.length) {
                    if (!inputClosed && !outputEnded) {
                        events.add("waits", true);
                        outputEnded = true;
                    }
                    return -1;
                }
                int count = Math.min(length, output.length - position);
                System.arraycopy(output, position, into, offset, count);
                position += count;
                return count;
            }
        };
    }

    @Override
    public InputStream getErrorStream() {
        return new ByteArrayInputStream(new byte[0]);
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
