// SPDX-License-Identifier: Apache-2.0
package kclxx.oracle;

import software.amazon.kinesis.multilang.RealDaemon;

/** KCL 2 and 3. */
final class Generation {
    private Generation() {}

    static Daemon create(Process child, Store store, Events events) {
        return new RealDaemon(child, store, events);
    }
}
