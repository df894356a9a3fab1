// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** A real child process that plays the turns, with real pipes. */
final class ProcessChild extends Child {
    private final Process process;

    ProcessChild(String program, JsonNode turnsOfCalls, Events events) throws IOException {
        super(events);
        process = new ProcessBuilder(program, turnsOfCalls.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    @Override
    void receive(byte[] line) throws IOException {
        OutputStream pipe = process.getOutputStream();
        pipe.write(line);
        pipe.write('\n');
        pipe.flush();
    }

    @Override
    void endInput() throws IOException {
        process.getOutputStream().close();
    }

    /** Where the script did not end the shard: the worker's own end, which is no event. */
    void end() throws IOException, InterruptedException {
        endInput();
        process.waitFor();
    }

    @Override
    public InputStream getInputStream() {
        return process.getInputStream();
    }
}
