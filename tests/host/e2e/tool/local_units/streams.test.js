// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert/strict');
const test = require('node:test');
const { middleOf, unleased } = require('../../../../../src/host/local/program/streams.js');

const middle = (first, last) => middleOf({ HashKeyRange: { StartingHashKey: `${first}`, EndingHashKey: `${last}` } });

test('a shard is split in its middle, also one of all hash keys, but not one of a single key', () => {
  assert.equal(middle(200, 299), '250');
  assert.equal(middle(4, 5), '5');
  assert.equal(middle(0, 2n ** 128n - 1n), `${2n ** 127n}`);
  assert.throws(() => middle(4, 4), /cannot be split/);
});

test('a shard has no lease if no ancestor is to end first and no descendant has one', () => {
  const shard = (ShardId, ParentShardId) => ({ ShardId, ParentShardId });
  const family = [shard('0'), shard('1', '0'), shard('2', '0')];
  const lease = (name, sequence = '1') => ({ shard: name, sequence });
  assert.deepEqual(unleased([shard('0'), shard('1')], [lease('0')]), ['1']);
  assert.deepEqual(unleased(family, [lease('0')]), []);
  assert.deepEqual(unleased(family, [lease('0', 'SHARD_END'), lease('1')]), ['2']);
  assert.deepEqual(unleased(family, [lease('1'), lease('2')]), []);
  assert.deepEqual(unleased(family, []), ['0', '1', '2']);
});
