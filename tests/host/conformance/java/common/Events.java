// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What happened, in order. Public because the adapters live in the daemon's packages. */
public final class Events {
    private final List<Map<String, Object>> list = new ArrayList<>();
    private boolean workerEnded;

    public void add(String name, Object value) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put(name, value);
        list.add(event);
    }

    /** Takes the place of System.exit(1): the real call never comes back, ours does. */
    public void workerEnds() {
        add("worker_ends", true);
        workerEnded = true;
    }

    void returned(String call, boolean shardFinished) {
        add("returns", call);
        if (call.equals("shardEnded")) {
            add("shard_finished", shardFinished);
        }
    }

    boolean workerEnded() {
        return workerEnded;
    }

    List<Map<String, Object>> list() {
        return list;
    }
}
