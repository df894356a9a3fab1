// SPDX-License-Identifier: Apache-2.0
// The table that the KCL keeps its leases in.
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { awaitState, dynamodbClient, explained, Failure, kinesisClient } = require('./clients.js');
const { runningState } = require('./emulators.js');
const { listShards, listStreams, rootsOf, unleased } = require('./streams.js');

// How many records of a shard come after its checkpoint, and since when the oldest of them waits. They are counted by
// reading them, since Kinesis has no such figure. What was read once is not read again while this lives.

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
      const first = this.#waiting.findIndex(({ sequence }) => sequence > passed);
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
      records: answer.Records.map((record) => ({ ...record, arrived: record.ApproximateArrivalTimestamp * 1000 })),
      next: answer.NextShardIterator,
      isAtEnd: answer.Records.length === 0 && answer.MillisBehindLatest === 0,
    };
  };
}

// The checkpoint tells where to read.
const hasRecords = (sequence) => /^(\d+|TRIM_HORIZON)$/.test(sequence);

// The backlogs of a stream's shards.
class Backlogs {
  #ofShard = new Map();
  #kinesis;
  #stream;

  constructor(kinesis, stream) {
    this.#kinesis = kinesis;
    this.#stream = stream;
  }

  // Reads what had arrived at a moment, of the shards of all leases.
  async read(leases, now) {
    await Promise.all(leases.filter(({ sequence }) => hasRecords(sequence)).map(async ({ shard, sequence }) => {
      if (!this.#ofShard.has(shard)) this.#ofShard.set(shard, new Backlog(readerOf(this.#kinesis, this.#stream, shard)));
      try {
        await this.#ofShard.get(shard).read(sequence, now);
      } catch (error) {
        if (error.name !== 'ResourceNotFoundException') throw error;
        this.#ofShard.delete(shard);
      }
    }));
  }

  // The backlog of a lease. Undefined when it is not known: LATEST and AT_TIMESTAMP name no record, and a shard may be gone or new.
  of({ shard, sequence }, now) {
    if (sequence === 'SHARD_END') return { records: 0 };
    return hasRecords(sequence) ? this.#ofShard.get(shard)?.after(sequence, now) : undefined;
  }
}

// The definition of a lease table, as the KCL's.
function definition(application) {
  const key = (attribute, type) => ({ AttributeName: attribute, KeyType: type });
  const text = (attribute) => ({ AttributeName: attribute, AttributeType: 'S' });
  return {
    TableName: application,
    AttributeDefinitions: [text('leaseKey'), text('leaseOwner')],
    KeySchema: [key('leaseKey', 'HASH')],
    GlobalSecondaryIndexes: [{
      IndexName: 'LeaseOwnerToLeaseKeyIndex',
      KeySchema: [key('leaseOwner', 'HASH'), key('leaseKey', 'RANGE')],
      Projection: { ProjectionType: 'KEYS_ONLY' },
    }],
    BillingMode: 'PAY_PER_REQUEST',
  };
}

// The lease of a shard that nobody has read yet.
const unread = (shard) => ({
  leaseKey: { S: shard.ShardId },
  leaseCounter: { N: '0' },
  checkpoint: { S: 'TRIM_HORIZON' },
  checkpointSubSequenceNumber: { N: '0' },
  ownerSwitchesSinceCheckpoint: { N: '0' },
  startingHashKey: { S: shard.HashKeyRange.StartingHashKey },
  endingHashKey: { S: shard.HashKeyRange.EndingHashKey },
});

// Puts a lease for each shard without a parent into the table, which is made unless the daemon has made it. It must hold no leases.
async function create({ application, stream, ...options }) {
  const state = runningState(options);
  const shards = rootsOf(await listShards(kinesisClient(state), stream));
  const dynamodb = dynamodbClient(state);
  const before = await readRows(dynamodb, application);
  if (before?.some((row) => row.checkpoint !== undefined)) throw new Failure(`application ${application} has a lease table already`);
  if (before === undefined) await explained({}, () => dynamodb('CreateTable', definition(application)));
  await awaitState(() => dynamodb('DescribeTable', { TableName: application }), ({ Table }) => Table.TableStatus === 'ACTIVE');
  for (const shard of shards) {
    await explained({ ConditionalCheckFailedException: `the daemon has just made the leases of ${application}` }, () =>
      dynamodb('PutItem', {
        TableName: application,
        Item: unread(shard),
        ConditionExpression: 'attribute_not_exists(leaseKey)', // never over a lease that the daemon has made meanwhile
      }));
  }
}

// The rows of the table, as `aws dynamodb scan` prints them. Nothing: there is no such table.
async function readRows(dynamodb, application) {
  const rows = [];
  try {
    let from;
    do {
      const page = await dynamodb('Scan', { TableName: application, ConsistentRead: true, ExclusiveStartKey: from });
      from = page.LastEvaluatedKey;
      rows.push(...page.Items);
    } while (from !== undefined);
  } catch (error) {
    if (error.name === 'ResourceNotFoundException') return undefined;
    return explained({}, () => Promise.reject(error));
  }
  return rows;
}

// The lease table does not name its stream.
async function streamOf(kinesis, application, named) {
  const streams = await explained({}, () => listStreams(kinesis));
  const stream = named ?? (streams.includes(application) || streams.length !== 1 ? application : streams[0]);
  if (streams.includes(stream)) return stream;
  const there = streams.length > 0 ? `there are ${streams.join(', ')}` : 'there is none yet';
  throw new Failure(named === undefined ? `name the stream that ${application} reads with --stream; ${there}`
    : `there is no stream ${named}; ${there}`);
}

// The KCL may keep other things in this table too; only leases have a checkpoint.
const leasesIn = (rows) => rows.filter(({ checkpoint }) => checkpoint !== undefined)
  .map(({ leaseKey, checkpoint }) => ({ shard: leaseKey.S, sequence: checkpoint.S }));

// All of it as it was at one moment: the rows, which one call reads, and of the records those that had arrived then.
// Reading the records takes a while after that, when there are many.
async function picture(rows, backlogs) {
  const leases = leasesIn(rows);
  const now = Date.now();
  await explained({}, () => backlogs.read(leases, now));
  const waiting = leases.map((lease) => [lease.shard, backlogs.of(lease, now)]).filter(([, backlog]) => backlog !== undefined)
    .map(([shard, { records, oldest }]) => [shard, { records, oldest: oldest && Math.max(0, Math.round(now - oldest)) }]);
  return { Items: rows, kclxxBacklogs: Object.fromEntries(waiting) };
}

// A line of JSON for each time that the table is read; kclxx makes a table for people of it.
async function printLeases({ application, stream: named, watch, ...options }) {
  const state = runningState(options);
  const dynamodb = dynamodbClient(state);
  const kinesis = kinesisClient(state);
  const stream = await streamOf(kinesis, application, named);
  const backlogs = new Backlogs(kinesis, stream);
  for (;;) {
    const rows = await readRows(dynamodb, application);
    if (rows === undefined && !watch) throw new Failure(`there is no lease table ${application}; the daemon creates it`);
    const Shards = await explained({}, () => listShards(kinesis, stream));
    const kclxxUnleased = rows === undefined ? [] : unleased(Shards, leasesIn(rows));
    process.stdout.write(`${JSON.stringify({ stream, Shards, kclxxUnleased, ...await picture(rows ?? [], backlogs) })}\n`);
    if (!watch) return;
    await sleep(1000);
    runningState(options); // never another process that got the port meanwhile
  }
}

module.exports = { Backlog, create, printLeases };
