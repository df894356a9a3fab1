// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.slf4j.LoggerFactory;

/**
 * Plays scripts against the daemon's real classes: one script a line on standard input, one line of events for
 * each on standard output. tests/host/conformance/README.md describes both.
 */
public final class Oracle {
    private Oracle() {}

    public static void main(String[] arguments) throws Exception {
        // The daemon logs each line, which is not read here.
        ((Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME)).setLevel(Level.OFF);
        ObjectMapper json = new ObjectMapper();
        BufferedReader scripts = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream results = new PrintStream(System.out, false, "UTF-8");
        // What the daemon itself prints must not mix with the results.
        System.setOut(System.err);
        for (String line = scripts.readLine(); line != null; line = scripts.readLine()) {
            results.println(json.writeValueAsString(play(json.readTree(line)).list));
        }
        results.flush();
    }

    private static Events play(JsonNode script) throws Exception {
        Events events = new Events();
        Store store = new Store(script.path("store"), events);
        RealDaemon daemon = new RealDaemon(new Child(script.path("child"), events), store, events);
        for (JsonNode call : script.path("calls")) {
            String name = call.path("call").asText();
            if (name.equals("leaseLost")) {
                store.loseLease();
            }
            try {
                daemon.call(call);
            } catch (NullPointerException e) {
                // shutdownRequested lets it through for a line "null"; the KCL's task takes it for a failure of the
                // call, like one that was only logged, and continues.
                if (!name.equals("shutdownRequested")) {
                    throw e;
                }
            }
            if (events.workerEnded) {
                break;
            }
            events.add("returns", name);
            if (name.equals("shardEnded")) {
                events.add("shard_finished", daemon.shardFinished());
            }
        }
        return events;
    }
}

/** What happened, in order. */
final class Events {
    final List<Map<String, Object>> list = new ArrayList<>();
    boolean workerEnded;

    void add(String name, Object value) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put(name, value);
        list.add(event);
    }

    /** Takes the place of System.exit(1): the real call never comes back, ours does. */
    void workerEnds() {
        add("worker_ends", true);
        workerEnded = true;
    }
}

/**
 * In place of the lease table: takes what the real checkpointer stores, and fails when the script asks for it. A lease
 * that is lost stays lost, as in the real table, where the owner's token no longer fits.
 */
final class Store {
    private final JsonNode results;
    private final Events events;
    private int attempts;
    private boolean lost;

    Store(JsonNode results, Events events) {
        this.results = results;
        this.events = events;
    }

    void loseLease() {
        lost = true;
    }

    void set(String sequenceNumber, long subSequenceNumber) throws Exception {
        String result = lost ? "ShutdownException" : results.path(attempts++).asText("ok");
        lost = result.equals("ShutdownException");
        Map<String, Object> stored = new LinkedHashMap<>();
        stored.put("sequenceNumber", sequenceNumber);
        stored.put("subSequenceNumber", subSequenceNumber);
        stored.put("result", result);
        events.add("store", stored);
        if (!result.equals("ok")) {
            throw failure(result);
        }
    }

    private static Exception failure(String name) throws ReflectiveOperationException {
        List<String> packages =
                List.of("software.amazon.kinesis.exceptions", "software.amazon.kinesis.exceptions.internal", "java.lang");
        for (String candidate : packages) {
            try {
                Class<?> type = Class.forName(candidate + "." + name);
                return (Exception) type.getConstructor(String.class).newInstance("as the script asks");
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        // The daemon would take whatever is thrown here for the store's answer.
        System.err.println("oracle: the script's exception " + name + " is in none of " + packages);
        System.exit(2);
        return null;
    }
}
