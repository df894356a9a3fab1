// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/** A real child process that plays the turns, with real pipes; what the daemon writes to it is noted. */
final class ProcessChild extends Process {
    private final Process process;
    private final OutputStream input;

    ProcessChild(String program, JsonNode turnsOfCalls, Events events) throws IOException {
        process = new ProcessBuilder(program, turnsOfCalls.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        OutputStream pipe = process.getOutputStream();
        input = new OutputStream() {
            private final ByteArrayOutputStream line = new ByteArrayOutputStream();
            private boolean closed;

            @Override
            public void write(int octet) throws IOException {
                // Noted first: the child may answer at once.
                if (octet == '\n') {
                    events.add("send", new String(line.toByteArray(), StandardCharsets.UTF_8));
                    line.reset();
                } else {
                    line.write(octet);
                }
                pipe.write(octet);
            }

            @Override
            public void flush() throws IOException {
                pipe.flush();
            }

            @Override
            public void close() throws IOException {
                if (!closed) {
                    closed = true;
                    events.add("closes_input", true);
                }
                pipe.close();
            }
        };
    }

    /** Where the script did not end the shard: the worker's own end, which is no event. */
    void end() throws IOException, InterruptedException {
        process.getOutputStream().close();
        process.waitFor();
    }

    @Override
    public OutputStream getOutputStream() {
        return input;
    }

    @Override
    public InputStream getInputStream() {
        return process.getInputStream();
    }

    @Override
    public InputStream getErrorStream() {
        return process.getErrorStream();
    }

    @Override
    public int waitFor() throws InterruptedException {
        return process.waitFor();
    }

    @Override
    public int exitValue() {
        return process.exitValue();
    }

    @Override
    public void destroy() {
        process.destroy();
    }
}
