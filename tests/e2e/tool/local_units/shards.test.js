// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert/strict');
const test = require('node:test');
const { middleOf } = require('../../../../src/tool/local/program/shards.js');

const middle = (first, last) => middleOf({ HashKeyRange: { StartingHashKey: `${first}`, EndingHashKey: `${last}` } });

test('a shard is split in its middle, also one of all hash keys, but not one of a single key', () => {
  assert.equal(middle(200, 299), '250');
  assert.equal(middle(4, 5), '5');
  assert.equal(middle(0, 2n ** 128n - 1n), `${2n ** 127n}`);
  assert.throws(() => middle(4, 4), /cannot be split/);
});
