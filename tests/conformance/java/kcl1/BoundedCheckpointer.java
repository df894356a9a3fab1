// SPDX-License-Identifier: Apache-2.0
package com.amazonaws.services.kinesis.clientlibrary.lib.worker; // setInitialCheckpointValue is the package's own

import com.amazonaws.services.kinesis.clientlibrary.interfaces.ICheckpoint;
import com.amazonaws.services.kinesis.clientlibrary.types.ExtendedSequenceNumber;
import java.util.Collections;

/** KCL 1's checkpointer, without the call of GetShardIterator before each checkpoint, at its first position. */
public final class BoundedCheckpointer extends RecordProcessorCheckpointer {
    public BoundedCheckpointer(String shard, ExtendedSequenceNumber position, ICheckpoint leaseTable) {
        super(
                new ShardInfo(shard, "token", Collections.emptyList(), position),
                leaseTable,
                new SequenceNumberValidator(null, shard, false));
        setLargestPermittedCheckpointValue(position);
        setInitialCheckpointValue(position);
    }
}
