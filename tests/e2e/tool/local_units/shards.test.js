// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert/strict');
const test = require('node:test');
const { expectNeighbours, inOrder, middleOf, openShard, rootsOf } = require('../../../../src/tool/local/program/shards.js');

const shard = (number, first, last, { parents = [], isClosed = false } = {}) => ({
  ShardId: `shardId-${`${number}`.padStart(12, '0')}`,
  ParentShardId: parents[0],
  AdjacentParentShardId: parents[1],
  HashKeyRange: { StartingHashKey: `${first}`, EndingHashKey: `${last}` },
  SequenceNumberRange: { StartingSequenceNumber: '1', EndingSequenceNumber: isClosed ? '9' : undefined },
});

const [root, left, right] = [
  shard(0, 0, 99, { isClosed: true }),
  shard(1, 0, 49, { parents: ['shardId-000000000000'] }),
  shard(2, 50, 99, { parents: ['shardId-000000000000'] }),
];
const far = shard(3, 200, 299);
const all = [root, left, right, far];

test('the KCL starts at the shards whose parents are not there', () => {
  assert.deepEqual(rootsOf(all), [root, far]);
  assert.deepEqual(rootsOf([left, right]), [left, right]);
});

test('a shard is found by its id and by its number', () => {
  assert.equal(openShard(all, 's', 'shardId-000000000002'), right);
  assert.equal(openShard(all, 's', '2'), right);
});

test('a shard that is closed or not there is named, with those that are open', () => {
  const open = 'open are shardId-000000000001, shardId-000000000002, shardId-000000000003';
  assert.throws(() => openShard(all, 's', '0'), { message: `shard shardId-000000000000 is closed already; ${open}` });
  assert.throws(() => openShard(all, 's', 'x'), { message: `stream s has no shard x; ${open}` });
});

test('a shard is split in its middle, also one of all hash keys, but not one of a single key', () => {
  assert.equal(middleOf(far), '250');
  assert.equal(middleOf(shard(0, 4, 5)), '5');
  assert.equal(middleOf(shard(0, 0, 2n ** 128n - 1n)), `${2n ** 127n}`);
  assert.throws(() => middleOf(shard(0, 4, 4)), /cannot be split/);
});

test('neighbours are found in both orders, and for others theirs are named', () => {
  assert.deepEqual(inOrder(right, left), [left, right]);
  expectNeighbours(all, left, right);
  expectNeighbours(all, right, left);
  assert.throws(() => expectNeighbours(all, left, far), {
    message: 'shardId-000000000001 and shardId-000000000003 are not neighbours; ' +
      'beside shardId-000000000001: shardId-000000000002',
  });
  assert.throws(() => expectNeighbours(all, far, left), /beside shardId-000000000003: none$/);
});
