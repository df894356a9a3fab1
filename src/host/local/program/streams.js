// SPDX-License-Identifier: Apache-2.0
'use strict';
const { awaitState, explained, Failure, kinesisClient } = require('./clients.js');
const { runningState } = require('./emulators.js');

// Shards as ListShards has them. Pure.

const isOpen = (shard) => shard.SequenceNumberRange.EndingSequenceNumber === undefined;
const parentsOf = (shard) => [shard.ParentShardId, shard.AdjacentParentShardId].filter((id) => id !== undefined);
const rangeOf = (shard) =>
  [BigInt(shard.HashKeyRange.StartingHashKey), BigInt(shard.HashKeyRange.EndingHashKey)];

// With no parent that is still there: where the KCL starts to read.
function rootsOf(shards) {
  const ids = new Set(shards.map((shard) => shard.ShardId));
  return shards.filter((shard) => !parentsOf(shard).some((id) => ids.has(id)));
}

const namesOf = (shards) => shards.map((shard) => shard.ShardId).join(', ');

// A shard by its id, or by the id's number: 3 is shardId-000000000003.
function openShard(shards, stream, wanted) {
  const id = /^\d{1,12}$/.test(wanted) ? `shardId-${wanted.padStart(12, '0')}` : wanted;
  const shard = shards.find(({ ShardId }) => ShardId === id);
  const open = `open are ${namesOf(shards.filter(isOpen))}`;
  if (shard === undefined) throw new Failure(`stream ${stream} has no shard ${id}; ${open}`);
  if (!isOpen(shard)) throw new Failure(`shard ${id} is closed already; ${open}`);
  return shard;
}

// Where the upper half of a shard begins.
function middleOf(shard) {
  const [first, last] = rangeOf(shard);
  if (first === last) throw new Failure(`shard ${shard.ShardId} has one hash key only, which cannot be split`);
  return ((first + last + 1n) / 2n).toString();
}

function areNeighbours(a, b) {
  const [[firstOfA, lastOfA], [firstOfB, lastOfB]] = [rangeOf(a), rangeOf(b)];
  return lastOfA + 1n === firstOfB || lastOfB + 1n === firstOfA;
}

// Two shards in the order of their hash keys.
const inOrder = (a, b) => (rangeOf(a)[0] < rangeOf(b)[0] ? [a, b] : [b, a]);

function expectNeighbours(shards, a, b) {
  if (areNeighbours(a, b)) return;
  const neighbours = shards.filter((shard) => isOpen(shard) && areNeighbours(shard, a));
  throw new Failure(`${a.ShardId} and ${b.ShardId} are not neighbours; beside ${a.ShardId}: ` +
    (neighbours.length > 0 ? namesOf(neighbours) : 'none'));
}

// Shards that no worker reads: without a lease, and no lease of a descendant tells that they were read, none of an ancestor
// that the KCL will make theirs when that one has ended.
function unleased(shards, rows) {
  const byId = new Map(shards.map((shard) => [shard.ShardId, shard]));
  const leases = new Map(rows.map(({ shard, sequence }) => [shard, sequence]));
  const ancestors = (shard) => parentsOf(shard).filter((id) => byId.has(id)).flatMap((id) => [id, ...ancestors(byId.get(id))]);
  const isRead = new Set([...leases.keys()].filter((id) => byId.has(id)).flatMap((id) => ancestors(byId.get(id))));
  return shards.filter((shard) => !leases.has(shard.ShardId) && !isRead.has(shard.ShardId)
    && !ancestors(shard).some((id) => leases.has(id) && leases.get(id) !== 'SHARD_END')).map((shard) => shard.ShardId);
}

const noStream = (stream) => ({
  ResourceNotFoundException: `there is no stream ${stream}; kclxx local create-stream ${stream} makes it`,
});

const awaitStream = (kinesis, stream) => awaitState(() => kinesis('DescribeStreamSummary', { StreamName: stream }),
  ({ StreamDescriptionSummary }) => StreamDescriptionSummary.StreamStatus === 'ACTIVE');

async function createStream({ stream, shards = 1, ...options }) {
  const kinesis = kinesisClient(runningState(options));
  await explained({ ResourceInUseException: `there is a stream ${stream} already` }, () =>
    kinesis('CreateStream', { StreamName: stream, ShardCount: Number(shards), MaxRecordSizeInKiB: 10240 }));
  await awaitStream(kinesis, stream);
}

async function listShards(kinesis, stream) {
  const shards = [];
  let next;
  do {
    const page = await explained(noStream(stream), () =>
      kinesis('ListShards', next === undefined ? { StreamName: stream } : { NextToken: next }));
    shards.push(...page.Shards);
    next = page.NextToken;
  } while (next !== undefined);
  return shards.sort((a, b) => (a.ShardId < b.ShardId ? -1 : 1));
}

async function listStreams(kinesis) {
  const names = [];
  for (let page; page?.HasMoreStreams ?? true;) {
    page = await kinesis('ListStreams', { ExclusiveStartStreamName: names.at(-1) });
    names.push(...page.StreamNames);
  }
  return names;
}

function formatTable(head, rows) {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((row) => row[column].length)));
  return lines.map((row) => `${row.map((text, column) => text.padEnd(widths[column])).join('  ').trimEnd()}\n`).join('');
}

async function printShards({ stream, tsv, ...options }) {
  const shards = await listShards(kinesisClient(runningState(options)), stream);
  const rows = shards.map((shard) => {
    const parents = parentsOf(shard).join(',') || '-';
    return [shard.ShardId, isOpen(shard) ? 'open' : 'closed', parents, ...rangeOf(shard).map(String)];
  });
  process.stdout.write(tsv ? rows.map((row) => `${row.join('\t')}\n`).join('')
    : formatTable(['shard', 'state', 'parents', 'first hash key', 'last hash key'], rows));
}

async function reshard(kinesis, stream, parents, action, input) {
  await kinesis(action, { StreamName: stream, ...input });
  await awaitStream(kinesis, stream);
  const children = (await listShards(kinesis, stream)).filter((shard) => parentsOf(shard).includes(parents[0]));
  console.log(`${parents.join(' and ')} became ${children.map((shard) => shard.ShardId).join(' and ')}`);
}

async function split({ stream, shard, ...options }) {
  const kinesis = kinesisClient(runningState(options));
  const parent = openShard(await listShards(kinesis, stream), stream, shard);
  await reshard(kinesis, stream, [parent.ShardId], 'SplitShard', { ShardToSplit: parent.ShardId, NewStartingHashKey: middleOf(parent) });
}

async function merge({ stream, shard, other: neighbour, ...options }) {
  const kinesis = kinesisClient(runningState(options));
  const shards = await listShards(kinesis, stream);
  const both = [shard, neighbour].map((wanted) => openShard(shards, stream, wanted));
  if (both[0] === both[1]) throw new Failure(`${both[0].ShardId} cannot be merged with itself`);
  expectNeighbours(shards, ...both);
  const [lower, upper] = inOrder(...both); // the local Kinesis takes them in no other order
  await reshard(kinesis, stream, [lower.ShardId, upper.ShardId], 'MergeShards',
    { ShardToMerge: lower.ShardId, AdjacentShardToMerge: upper.ShardId });
}

module.exports = {
  rootsOf, middleOf, unleased, noStream, createStream, listShards, listStreams, printShards, split, merge,
};
