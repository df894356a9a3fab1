// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Stands for the lease table: takes what the real checkpointer stores, and fails when the script says so. */
public final class Store {
    private final JsonNode results;
    private final Events events;
    private int attempts;

    Store(JsonNode results, Events events) {
        this.results = results;
        this.events = events;
    }

    /** @param exceptions the package of this generation's checkpoint exceptions */
    public void set(String sequenceNumber, long subSequenceNumber, String exceptions) throws Exception {
        String result = results.path(attempts++).asText("ok");
        Map<String, Object> stored = new LinkedHashMap<>();
        stored.put("sequenceNumber", sequenceNumber);
        stored.put("subSequenceNumber", subSequenceNumber);
        stored.put("result", result);
        events.add("store", stored);
        if (!result.equals("ok")) {
            throw failure(result, Arrays.asList(exceptions, "java.lang"));
        }
    }

    private static Exception failure(String name, List<String> packages) throws ReflectiveOperationException {
        for (String candidate : packages) {
            try {
                Class<?> type = Class.forName(candidate + "." + name);
                return (Exception) type.getConstructor(String.class).newInstance("as the script says");
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        throw new ClassNotFoundException(name + " is in none of " + packages);
    }
}
