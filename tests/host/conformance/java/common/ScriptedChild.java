// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/**
 * A child process without a process. For each call it has a list of turns: the first is written when the call's line
 * comes, the next ones as its checkpoints are answered. Where the script has nothing more and the daemon reads, it
 * would wait indefinitely: that is noted, and the output ends.
 */
final class ScriptedChild extends Child {
    private final JsonNode turnsOfCalls;
    private ByteArrayInputStream output = new ByteArrayInputStream(new byte[0]);
    private int call = -1;
    private int turn;
    private boolean outputEnded;

    ScriptedChild(JsonNode turnsOfCalls, Events events) {
        super(events);
        this.turnsOfCalls = turnsOfCalls;
    }

    @Override
    void receive(byte[] line) {
        if (new String(line, StandardCharsets.UTF_8).startsWith("{\"action\":\"checkpoint\"")) {
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
    void endInput() {}

    @Override
    public InputStream getInputStream() {
        return new InputStream() {
            @Override
            public int available() {
                return output.available();
            }

            @Override
            public int read() {
                byte[] one = new byte[1];
                return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
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
}
