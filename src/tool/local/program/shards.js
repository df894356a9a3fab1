// SPDX-License-Identifier: Apache-2.0
// Shards as ListShards has them. Pure.
'use strict';
const { Failure } = require('./failure.js');

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
  const shard = shards.find((one) => one.ShardId === id);
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

function areNeighbours(one, other) {
  const [[first, last], [otherFirst, otherLast]] = [rangeOf(one), rangeOf(other)];
  return last + 1n === otherFirst || otherLast + 1n === first;
}

// By their hash keys.
const inOrder = (one, other) => (rangeOf(one)[0] < rangeOf(other)[0] ? [one, other] : [other, one]);

function expectNeighbours(shards, one, other) {
  if (areNeighbours(one, other)) return;
  const beside = shards.filter((shard) => isOpen(shard) && areNeighbours(shard, one));
  throw new Failure(`${one.ShardId} and ${other.ShardId} are not neighbours; beside ${one.ShardId}: ` +
    (beside.length > 0 ? namesOf(beside) : 'none'));
}

// Shards that no worker reads: without a lease, and no lease of a descendant tells that they were read, none of an ancestor
// that the KCL will make theirs when that one has ended.
function unleased(shards, all) {
  const byId = new Map(shards.map((shard) => [shard.ShardId, shard]));
  const leases = new Map(all.map(({ shard, sequence }) => [shard, sequence]));
  const ancestors = (shard) => parentsOf(shard).filter((id) => byId.has(id)).flatMap((id) => [id, ...ancestors(byId.get(id))]);
  const isRead = new Set([...leases.keys()].filter((id) => byId.has(id)).flatMap((id) => ancestors(byId.get(id))));
  return shards.filter((shard) => !leases.has(shard.ShardId) && !isRead.has(shard.ShardId)
    && !ancestors(shard).some((id) => leases.has(id) && leases.get(id) !== 'SHARD_END')).map((shard) => shard.ShardId);
}

module.exports = { isOpen, parentsOf, rangeOf, rootsOf, openShard, middleOf, inOrder, expectNeighbours, unleased };
