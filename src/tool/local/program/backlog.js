// SPDX-License-Identifier: Apache-2.0
// How many records of a shard lie behind its checkpoint, and since when the oldest of them waits. Counted by reading
// them: no figure of Kinesis says it. What was read once is not read again while this lives.
'use strict';

class Backlog {
  #read; // async (iterator or undefined, checkpoint) => { records, next }
  #waiting = []; // { sequence, arrived }, oldest first
  #next;
  #isBegun = false;

  constructor(read) {
    this.#read = read;
  }

  // Reads on to the end of the shard, and drops what the checkpoint has passed.
  async measure(checkpoint) {
    while (!this.#isBegun || this.#next !== undefined) {
      const { records, next, isAtEnd } = await this.#read(this.#next, checkpoint);
      this.#isBegun = true;
      this.#next = next;
      for (const { SequenceNumber, ApproximateArrivalTimestamp } of records) {
        this.#waiting.push({ sequence: BigInt(SequenceNumber), arrived: ApproximateArrivalTimestamp });
      }
      if (isAtEnd) break;
    }
    if (/^\d+$/.test(checkpoint)) {
      const passed = BigInt(checkpoint);
      const first = this.#waiting.findIndex((one) => one.sequence > passed);
      this.#waiting.splice(0, first === -1 ? this.#waiting.length : first);
    }
    return { records: this.#waiting.length, oldest: this.#waiting[0]?.arrived };
  }
}

// Reads a shard of the local Kinesis.
function readerOf({ sdk, client }, stream, shard) {
  return async (iterator, checkpoint) => {
    const from = /^\d+$/.test(checkpoint)
      ? { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', StartingSequenceNumber: checkpoint }
      : { ShardIteratorType: 'TRIM_HORIZON' };
    const { ShardIterator } = iterator !== undefined ? { ShardIterator: iterator }
      : await client.send(new sdk.GetShardIteratorCommand({ StreamName: stream, ShardId: shard, ...from }));
    const answer = await client.send(new sdk.GetRecordsCommand({ ShardIterator }));
    return {
      records: answer.Records,
      next: answer.NextShardIterator ?? undefined,
      isAtEnd: answer.Records.length === 0 && answer.MillisBehindLatest === 0,
    };
  };
}

// The backlogs of a stream's shards.
class Backlogs {
  #all = new Map();
  #kinesis;
  #stream;

  constructor(kinesis, stream) {
    this.#kinesis = kinesis;
    this.#stream = stream;
  }

  // Nothing when it cannot be said: LATEST and AT_TIMESTAMP name no record, and a shard may be gone.
  async of({ shard, sequence }) {
    if (sequence === 'SHARD_END') return { records: 0 };
    if (!/^(\d+|TRIM_HORIZON)$/.test(sequence)) return undefined;
    if (!this.#all.has(shard)) this.#all.set(shard, new Backlog(readerOf(this.#kinesis, this.#stream, shard)));
    try {
      return await this.#all.get(shard).measure(sequence);
    } catch (error) {
      if (error.name === 'ResourceNotFoundException') return undefined;
      throw error;
    }
  }
}

module.exports = { Backlog, Backlogs };
