// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.fasterxml.jackson.databind.JsonNode;

/** One shard's record processor and checkpointer, of a major version of the KCL. */
public interface Daemon {
    /** Does what the KCL's task for this call does: sets the checkpointer's bounds, then calls the processor. */
    void call(JsonNode call) throws Exception;

    /** Whether the checkpointer has seen the end of the shard, which is what the KCL looks at after shardEnded. */
    boolean shardFinished();

    interface Maker {
        Daemon make(Process child, Store store, Events events);
    }
}
