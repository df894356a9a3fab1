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
 * each on standard output. tests/oracle/README.md describes both.
 */
public final class Oracle {
    private Oracle() {}

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader scripts = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream results = new PrintStream(System.out, false, "UTF-8");
        // What the daemon itself prints must not mix with the results.
        System.setOut(System.err);
        for (String line = scripts.readLine(); line != null; line = scripts.readLine()) {
            results.println(json.writeValueAsString(play(json.readTree(line)).list()));
        }
        results.flush();
    }

    private static Events play(JsonNode script) {
        Events events = new Events();
        ScriptedChild child = new ScriptedChild(script.path("child"), events);
        Daemon daemon = Generation.create(child, new Store(script.path("store"), events), events);
        for (JsonNode call : script.path("calls")) {
            try {
                daemon.call(call);
                if (!events.workerEnded()) {
                    events.returned(call.path("call").asText(), daemon.shardFinished());
                }
            } catch (Exception e) {
                events.add("throws", e.getClass().getSimpleName());
            }
            if (events.workerEnded()) {
                break;
            }
        }
        return events;
    }
}
