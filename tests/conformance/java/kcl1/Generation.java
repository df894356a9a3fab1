// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import com.amazonaws.services.kinesis.multilang.RealDaemon;

/** KCL 1. */
final class Generation {
    private Generation() {}

    static Daemon create(Process child, Store store, Events events) {
        return new RealDaemon(child, store, events);
    }
}
