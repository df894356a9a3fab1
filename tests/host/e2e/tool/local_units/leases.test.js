// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert/strict');
const test = require('node:test');
const { Backlog } = require('../../../../../src/host/local/program/leases.js');

// A shard whose records are numbers; an iterator is the place of the next one. Two records a call.
class Shard {
  records = [];
  calls = 0;
  isClosed = false;

  read = async (iterator, checkpoint) => {
    ++this.calls;
    const begin = iterator?.at ?? (checkpoint === 'TRIM_HORIZON' ? 0 : this.records.findIndex((n) => n > Number(checkpoint)));
    const at = begin === -1 ? this.records.length : begin;
    const some = this.records.slice(at, at + 2);
    return {
      records: some.map((n) => ({ SequenceNumber: `${n}`, arrived: 1000 + n })),
      next: this.isClosed && at + some.length === this.records.length ? undefined : { at: at + some.length },
      isAtEnd: some.length === 0,
    };
  };
}

const measure = async (backlog, checkpoint) => {
  await backlog.read(checkpoint, 1_000_000);
  return backlog.after(checkpoint, 1_000_000);
};

test('the lag is what comes after the checkpoint, and its oldest record shows since when', async () => {
  const shard = new Shard();
  shard.records = [1, 2, 3, 9, 10];
  assert.deepEqual(await measure(new Backlog(shard.read), 'TRIM_HORIZON'), { records: 5, oldest: 1001 });
  assert.deepEqual(await measure(new Backlog(shard.read), '2'), { records: 3, oldest: 1003 });
  assert.deepEqual(await measure(new Backlog(shard.read), '10'), { records: 0, oldest: undefined });
});

test('it follows the checkpoint and the records without reading any of them twice', async () => {
  const shard = new Shard();
  shard.records = [1, 2, 3];
  const backlog = new Backlog(shard.read);
  await measure(backlog, 'TRIM_HORIZON');
  const calls = shard.calls;
  shard.records.push(10);
  // 10 is after 9 as a number, and before it as a text.
  assert.deepEqual(await measure(backlog, '9'), { records: 1, oldest: 1010 });
  assert.deepEqual(await measure(backlog, '10'), { records: 0, oldest: undefined });
  assert.equal(shard.calls, calls + 3);
});

test('a closed shard is read to its end, once', async () => {
  const shard = new Shard();
  shard.records = [1, 2, 3];
  shard.isClosed = true;
  const backlog = new Backlog(shard.read);
  assert.equal((await measure(backlog, '1')).records, 2);
  const calls = shard.calls;
  assert.equal((await measure(backlog, '2')).records, 1);
  assert.equal(shard.calls, calls);
});

test('a picture shows one moment: what arrives while the records are read is not in it, but in the next one', async () => {
  const shard = new Shard();
  shard.records = [1, 2, 3];
  const endless = async (...position) => {
    const answer = await shard.read(...position);
    shard.records.push(shard.records.length + 1);
    return { ...answer, isAtEnd: false };
  };
  const backlog = new Backlog(endless);
  await backlog.read('TRIM_HORIZON', 1004);
  assert.deepEqual(backlog.after('TRIM_HORIZON', 1004), { records: 4, oldest: 1001 });
  assert.deepEqual(backlog.after('4', 1004), { records: 0, oldest: undefined });
  const calls = shard.calls;
  await backlog.read('4', 1005);
  assert.deepEqual(backlog.after('4', 1005), { records: 1, oldest: 1005 });
  assert.ok(shard.calls > calls);
});

test('all records of the same millisecond are read', async () => {
  const sequences = ['1', '2', '3', '4'];
  const read = async (at = 0) => ({
    records: [{ SequenceNumber: sequences[at], arrived: 1000 }],
    next: at + 1 < sequences.length ? at + 1 : undefined,
    isAtEnd: false,
  });
  const backlog = new Backlog(read);
  await backlog.read('TRIM_HORIZON', 1000);
  assert.equal(backlog.after('TRIM_HORIZON', 1000).records, 4);
});
