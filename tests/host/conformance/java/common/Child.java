// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/** A child of the daemon; what the daemon writes to it is noted. */
abstract class Child extends Process {
    final Events events;
    boolean inputClosed;
    private final OutputStream input = new OutputStream() {
        private final ByteArrayOutputStream line = new ByteArrayOutputStream();

        @Override
        public void write(int octet) throws IOException {
            if (octet != '\n') {
                line.write(octet);
                return;
            }
            // Noted first: the child may answer at once.
            events.add("send", line.toString(StandardCharsets.UTF_8));
            receive(line.toByteArray());
            line.reset();
        }

        @Override
        public void close() throws IOException {
            if (!inputClosed) {
                inputClosed = true;
                events.add("closes_input", true);
                endInput();
            }
        }
    };

    Child(Events events) {
        this.events = events;
    }

    /** A line of the daemon, without its newline. */
    abstract void receive(byte[] line) throws IOException;

    abstract void endInput() throws IOException;

    @Override
    public OutputStream getOutputStream() {
        return input;
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
