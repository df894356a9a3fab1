// SPDX-License-Identifier: Apache-2.0
// How many records of a shard come after its checkpoint, and since when the oldest of them waits. They are counted by
// reading them, since Kinesis has no such figure. What was read once is not read again while this lives.
'use strict';

class Backlog {
  #read; // async (iterator or undefined, checkpoint) => { records, next }
  #waiting = []; // { sequence, arrived }, oldest first
  #next;
  #isBegun = false;

  constructor(read) {
    this.#read = read;
  }

  // Reads to the end of the shard, or to what arrived after `now`: under load there is no end.
  async read(checkpoint, now) {
    while (!this.#isBegun || this.#next !== undefined) {
      const { records, next, isAtEnd } = await this.#read(this.#next, checkpoint);
      this.#isBegun = true;
      this.#next = next;
      for (const { SequenceNumber, arrived } of records) this.#waiting.push({ sequence: BigInt(SequenceNumber), arrived });
      if (isAtEnd || this.#waiting.at(-1)?.arrived > now) break;
    }
  }

  // What had arrived at a moment, of what was read, and is after a checkpoint. Later calls have later checkpoints.
  after(checkpoint, now) {
    if (/^\d+$/.test(checkpoint)) {
      const passed = BigInt(checkpoint);
      const first = this.#waiting.findIndex((one) => one.sequence > passed);
      this.#waiting.splice(0, first === -1 ? this.#waiting.length : first);
    }
    const later = this.#waiting.findIndex(({ arrived }) => arrived > now);
    const records = later === -1 ? this.#waiting.length : later;
    return { records, oldest: records === 0 ? undefined : this.#waiting[0].arrived };
  }
}

// Reads a shard of the local Kinesis.
function readerOf(kinesis, stream, shard) {
  return async (iterator, checkpoint) => {
    const from = /^\d+$/.test(checkpoint)
      ? { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', StartingSequenceNumber: checkpoint }
      : { ShardIteratorType: 'TRIM_HORIZON' };
    const { ShardIterator } = iterator !== undefined ? { ShardIterator: iterator }
      : await kinesis('GetShardIterator', { StreamName: stream, ShardId: shard, ...from });
    const answer = await kinesis('GetRecords', { ShardIterator });
    return {
      records: answer.Records.map((one) => ({ ...one, arrived: one.ApproximateArrivalTimestamp * 1000 })),
      next: answer.NextShardIterator,
      isAtEnd: answer.Records.length === 0 && answer.MillisBehindLatest === 0,
    };
  };
}

// The checkpoint tells where to read.
const hasRecords = (sequence) => /^(\d+|TRIM_HORIZON)$/.test(sequence);

// The backlogs of a stream's shards.
class Backlogs {
  #all = new Map();
  #kinesis;
  #stream;

  constructor(kinesis, stream) {
    this.#kinesis = kinesis;
    this.#stream = stream;
  }

  // Reads what had arrived at a moment, of the shards of all leases.
  async read(leases, now) {
    await Promise.all(leases.filter(({ sequence }) => hasRecords(sequence)).map(async ({ shard, sequence }) => {
      if (!this.#all.has(shard)) this.#all.set(shard, new Backlog(readerOf(this.#kinesis, this.#stream, shard)));
      try {
        await this.#all.get(shard).read(sequence, now);
      } catch (error) {
        if (error.name !== 'ResourceNotFoundException') throw error;
        this.#all.delete(shard);
      }
    }));
  }

  // Nothing when it is not known: LATEST and AT_TIMESTAMP name no record, and a shard may be gone or new.
  of({ shard, sequence }, now) {
    if (sequence === 'SHARD_END') return { records: 0 };
    return hasRecords(sequence) ? this.#all.get(shard)?.after(sequence, now) : undefined;
  }
}

module.exports = { Backlog, Backlogs };
