// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { cleanEnvironment, isAlive, kill, startOf } = require('../../../../../src/host/local/program/emulators.js');
const { start, status, stop } = require('../../../../../src/host/local/program/emulators.js');
const { readState, writeState } = require('../../../../../src/host/local/program/emulators.js');

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
