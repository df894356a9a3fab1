// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Plays scripts against the daemon's real classes: one script a line on standard input, one line of events for
 * each on standard output. tests/host/conformance/README.md describes both. With a program as the only argument, the child is
 * a process of that program instead of an object in this one.
 */
public final class Oracle {
    private Oracle() {}

    public static void main(String[] arguments, Daemon.Maker maker) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader scripts = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream results = new PrintStream(System.out, false, "UTF-8");
        // What the daemon itself prints must not mix with the results.
        System.setOut(System.err);
        for (String line = scripts.readLine(); line != null; line = scripts.readLine()) {
            results.println(json.writeValueAsString(play(json.readTree(line), arguments, maker).list()));
        }
        results.flush();
    }

    private static Events play(JsonNode script, String[] program, Daemon.Maker maker) throws Exception {
        Events events = new Events();
        JsonNode turns = script.path("child");
        Process child =
                program.length == 0 ? new ScriptedChild(turns, events) : new ProcessChild(program[0], turns, events);
        Store store = new Store(script.path("store"), events);
        Daemon daemon = maker.make(child, store, events);
        for (JsonNode call : script.path("calls")) {
            if (call.path("call").asText().equals("leaseLost")) {
                store.loseLease();
            }
            try {
                daemon.call(call);
            } catch (NullPointerException e) {
                // shutdownRequested lets it through for a line "null"; the KCL's task takes it for a failure of the
                // call, like one that was only logged, and continues.
                if (!call.path("call").asText().equals("shutdownRequested")) {
                    throw e;
                }
            }
            if (!events.workerEnded()) {
                events.returned(call.path("call").asText(), daemon.shardFinished());
            }
            if (events.workerEnded()) {
                break;
            }
        }
        if (child instanceof ProcessChild process) {
            process.end();
        }
        return events;
    }
}
