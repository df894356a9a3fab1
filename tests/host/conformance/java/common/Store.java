// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * In place of the lease table: takes what the real checkpointer stores, and fails when the script asks for it. A lease
 * that is lost stays lost, as in the real table, where the owner's token no longer fits.
 */
public final class Store {
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

    /** @param exceptions the package of this version's checkpoint exceptions */
    public void set(String sequenceNumber, long subSequenceNumber, String exceptions) throws Exception {
        String result = lost ? "ShutdownException" : results.path(attempts++).asText("ok");
        lost = result.equals("ShutdownException");
        Map<String, Object> stored = new LinkedHashMap<>();
        stored.put("sequenceNumber", sequenceNumber);
        stored.put("subSequenceNumber", subSequenceNumber);
        stored.put("result", result);
        events.add("store", stored);
        if (!result.equals("ok")) {
            throw failure(result, List.of(exceptions, exceptions + ".internal", "java.lang"));
        }
    }

    private static Exception failure(String name, List<String> packages) throws ReflectiveOperationException {
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
