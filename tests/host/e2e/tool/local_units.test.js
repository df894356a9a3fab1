// SPDX-License-Identifier: Apache-2.0
// The pure parts of "kclxx local".
'use strict';
const assert = require('node:assert/strict');
const { execFileSync, spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const program = '../../../../src/host/local/program';
const { exportLines } = require(`${program}/clients.js`);
const { cleanEnvironment, isAlive, kill, readState, start, startOf, status, stop, writeState } = require(`${program}/emulators.js`);
const { Backlog } = require(`${program}/leases.js`);
const { callsOf, linesOf, recordOf } = require(`${program}/put.js`);
const { middleOf, unleased } = require(`${program}/streams.js`);

// --- The environment of a client.

const state = { kinesis: { port: 4568 }, dynamodb: { port: 8000 } };

// The environment of a shell that took the lines over.
function taken(environment, directory = '/state') {
  const lines = exportLines(state, directory, environment).join('\n');
  const text = execFileSync('/bin/sh', ['-c', `${lines}\nexec env -0`], { env: environment }).toString();
  return Object.fromEntries(text.split('\0').filter((one) => one !== '').map((one) => {
    const at = one.indexOf('=');
    return [one.slice(0, at), one.slice(at + 1)];
  }));
}

test('nothing of an AWS account is left', () => {
  const environment = taken({
    PATH: '/usr/bin:/bin', AWS_PROFILE: 'mine', AWS_SESSION_TOKEN: 'secret', AWS_ACCESS_KEY_ID: 'AKIA', AWS_REGION: 'eu-west-1',
  });
  assert.equal(environment.AWS_PROFILE, undefined);
  assert.equal(environment.AWS_SESSION_TOKEN, undefined);
  assert.equal(environment.AWS_ACCESS_KEY_ID, 'local');
  assert.equal(environment.AWS_REGION, 'us-east-1');
});

test('the shell reads any directory as it is', () => {
  const directory = "/a b'c\"d$e`f\\g\nh*";
  assert.equal(taken({ PATH: '/usr/bin:/bin' }, directory).KCLXX_LOCAL_DIRECTORY, directory);
});

test('hosts that need no proxy stay, and taking the lines twice adds nothing', () => {
  const once = taken({ PATH: '/usr/bin:/bin', NO_PROXY: 'intern,other' });
  assert.equal(once.NO_PROXY, 'intern,other,127.0.0.1');
  assert.equal(once.no_proxy, '127.0.0.1');
  assert.deepEqual(exportLines(state, '/state', once), exportLines(state, '/state', taken(once)));
});

// --- Processes, and the state of a directory.

const directory = (t) => {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'kclxx-local-'));
  t.after(() => fs.rmSync(made, { recursive: true }));
  return made;
};
const myself = (port) => ({ pid: process.pid, started: startOf(process.pid), port });

test('a process that got the id of an earlier one is neither taken for it nor killed', async (t) => {
  const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  const one = { pid: child.pid, started: startOf(child.pid) };
  const earlier = { pid: child.pid, started: `${one.started}1` };
  assert.equal(isAlive(one), true);
  assert.equal(isAlive(earlier), false);
  kill(earlier);
  kill({ pid: child.pid });
  child.stdin.end(); // only a living cat leaves with 0
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.equal(isAlive(one), false);
});

test('a damaged state is named, and no process in it is believed', (t) => {
  const folder = directory(t);
  const good = myself(1);
  for (const state of [{ kinesis: { pid: 1, started: 'x', port: 1 } }, { other: {} }, { kinesis: { ...good, port: '1' } },
    { kinesis: { ...good, started: undefined } }]) {
    writeState(folder, state);
    assert.throws(() => readState(folder), /state.json is damaged/, JSON.stringify(state));
  }
});

test('files of other programs are neither replaced nor removed', async (t) => {
  const folder = directory(t);
  const refused = (action) => assert.rejects(action({ directory: folder }), /is not of kclxx local: name another directory/);
  fs.writeFileSync(path.join(folder, 'kinesis.log'), 'mine');
  await stop({ directory: folder });
  await refused(start);
  assert.deepEqual(fs.readdirSync(folder), ['kinesis.log']);
  for (const text of ['', '{', '[]', '[1]', 'null', '{}', JSON.stringify({ kinesis: myself(1) })]) {
    fs.writeFileSync(path.join(folder, 'state.json'), text);
    for (const action of [start, stop, status]) await refused(action);
    assert.equal(fs.readFileSync(path.join(folder, 'state.json'), 'utf8'), text);
  }
  assert.equal(fs.readFileSync(path.join(folder, 'kinesis.log'), 'utf8'), 'mine');
});

test('the emulators get nothing of the environment that changes what they do', () => {
  const mine = { PATH: '/bin', HOME: '/home/me', LOG_LEVEL: 'info', SHOULD_PERSIST_DATA: 'true', NODE_OPTIONS: '--inspect',
    JAVA_TOOL_OPTIONS: '-XX:+UseZGC', JDK_JAVA_OPTIONS: '-Xint', AWS_PROFILE: 'production', AWS_REGION: 'eu-west-1' };
  assert.deepEqual(Object.keys(cleanEnvironment(mine)).sort(), ['AWS_REGION', 'HOME', 'PATH']);
  assert.notEqual(cleanEnvironment(mine).AWS_REGION, 'eu-west-1');
});

// --- The lag of a shard.

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

// --- Lines and records.

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

// --- Shards.

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
