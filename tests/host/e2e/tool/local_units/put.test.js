// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert/strict');
const test = require('node:test');
const { callsOf, linesOf, recordOf } = require('../../../../../src/host/local/program/put.js');

async function linesIn(...chunks) {
  const given = [];
  for await (const lines of linesOf(chunks.map((text) => Buffer.from(text)))) given.push(lines.map(String));
  return given;
}

const record = (text, options = {}) => recordOf(Buffer.from(text), 7, options);
const messageOf = (call) => {
  try {
    call();
  } catch (error) {
    return error.message;
  }
  return undefined;
};

test('lines are given with the chunk that they end in, wherever it is cut', async () => {
  assert.deepEqual(await linesIn('one\ntw', 'o\n', 'th', 'ree\n\n'), [['one'], ['two'], ['three', '']]);
});

test('a line without an end is not collected without limit', async () => {
  const lines = await linesIn('x'.repeat(7_000_000), 'x'.repeat(7_000_000), 'y\n');
  assert.equal(lines[0][0].length, 14_000_000);
});

test('the separator is no part of a record\'s size', async () => {
  const line = Buffer.from(`key::::${'x'.repeat(10 * 1024 * 1024 - 'key'.length)}`);
  const given = [];
  for await (const lines of linesOf([line, Buffer.from('\n')], '::::')) given.push(...lines);
  assert.equal(given.length, 1);
  assert.equal(recordOf(given[0], 1, { separator: '::::' }).PartitionKey, 'key');
});

test('after a part of a line that is too long the next ones are collected anew', async () => {
  assert.deepEqual(await linesIn('x'.repeat(11_000_000), 'y', 'y\n'), [['x'.repeat(11_000_000)], ['yy']]);
});

test('every byte of a line is kept', async () => {
  const all = Buffer.from([...Array(256).keys()].filter((byte) => byte !== 10));
  const given = [];
  for await (const lines of linesOf([all])) given.push(...lines);
  assert.deepEqual(given.map((line) => recordOf(line, 1, {}).Data), [all]);
});

test('the partition key is the line\'s number, what was named, or stands before the separator', () => {
  assert.deepEqual(record('data'), { Data: Buffer.from('data'), PartitionKey: 'line 7' });
  assert.deepEqual(record('data', { key: 'all' }), { Data: Buffer.from('data'), PartitionKey: 'all' });
  assert.deepEqual(record('käse→a→b', { separator: '→' }), { Data: Buffer.from('a→b'), PartitionKey: 'käse' });
  assert.deepEqual(record('key:', { separator: ':' }), { Data: Buffer.alloc(0), PartitionKey: 'key' });
});

test('a line that cannot be a record is named', () => {
  assert.equal(messageOf(() => record('data', { separator: ':' })), 'line 7 has no ":" after its partition key');
  assert.equal(messageOf(() => record(':data', { separator: ':' })), 'line 7 has nothing before ":"');
  assert.match(messageOf(() => record('x'.repeat(10 * 1024 * 1024))), /^line 7 is too long/);
  assert.equal(messageOf(() => record('x'.repeat(10 * 1024 * 1024 - 'line 7'.length))), undefined);
  assert.match(messageOf(() => record(`${'k'.repeat(257)}:x`, { separator: ':' })), /^line 7: its partition key/);
  assert.equal(messageOf(() => record(`${'ä'.repeat(256)}:x`, { separator: ':' })), undefined);
});

test('a call has at most 500 records and 4 MiB, and the records keep their order', () => {
  const small = Array.from({ length: 1001 }, (_, i) => ({ Data: Buffer.from(`${i}`), PartitionKey: 'k' }));
  const calls = [...callsOf(small)];
  assert.deepEqual(calls.map((call) => call.length), [500, 500, 1]);
  assert.deepEqual(calls.flat(), small);
  const large = Array.from({ length: 9 }, () => ({ Data: Buffer.alloc(1_000_000), PartitionKey: 'k' }));
  assert.deepEqual([...callsOf(large)].map((call) => call.length), [4, 4, 1]);
  assert.deepEqual([...callsOf([])], []);
});
