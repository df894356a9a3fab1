// SPDX-License-Identifier: Apache-2.0
// The local Kinesis (kinesis-local, in Node.js) and DynamoDB Local (in Java).
'use strict';
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { addressOf, exportLines, Failure, region } = require('./clients.js');

// Processes that outlive their parent. Linux: all is read from /proc.

function textOf(file) {
  try {
    return fs.readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

// When a process was started. An id alone is reused one day; id, start and boot together are not. Undefined: there is
// no such process, or it has ended and is a zombie.
function startOf(pid) {
  const stat = textOf(`/proc/${pid}/stat`);
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (stat === '' || state === 'Z' || state === 'X') return undefined;
  return `${textOf('/proc/sys/kernel/random/boot_id').trim()} ${fields[18]}`;
}

// A process: {pid, started}.
const isAlive = ({ pid, started }) => started !== undefined && startOf(pid) === started;

async function waitUntil(seconds, condition) {
  const end = Date.now() + seconds * 1000;
  while (!condition()) {
    if (Date.now() > end) return false;
    await sleep(20);
  }
  return true;
}

// SIGKILL: the local Kinesis ignores SIGTERM while a client is connected, and there is nothing to save.
function kill(emulator) {
  if (!isAlive(emulator)) return;
  try {
    process.kill(emulator.pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

// The ports that a process listens on.
function portsOf(pid) {
  const folder = `/proc/${pid}/fd`;
  const linkOf = (fd) => {
    try {
      return fs.readlinkSync(`${folder}/${fd}`);
    } catch {
      return undefined; // closed meanwhile
    }
  };
  let open;
  try {
    open = new Set(fs.readdirSync(folder).map(linkOf));
  } catch {
    return []; // ended meanwhile
  }
  const rows = (textOf('/proc/net/tcp') + textOf('/proc/net/tcp6')).split('\n').map((row) => row.trim().split(/\s+/));
  return rows.filter((row) => row[3] === '0A' && open.has(`socket:[${row[9]}]`))
    .map((row) => Number.parseInt(row[1].split(':')[1], 16));
}

// What runs in a directory: DIR/state.json has a process and a port for each emulator, and says whose it is. It stays
// when nothing runs, since with it the logs beside it are ours. A process that changes it holds a lock on the directory,
// which the tool has taken.

const owner = 'kclxx local';
const titles = { kinesis: 'Kinesis', dynamodb: 'DynamoDB' };
const fileIn = (directory) => path.join(directory, 'state.json');

const hasState = (directory) => fs.existsSync(fileIn(directory));

function readState(directory) {
  let text;
  try {
    text = fs.readFileSync(fileIn(directory), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return {};
    throw new Failure(`${fileIn(directory)} cannot be read: ${error.message}`);
  }
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    content = undefined;
  }
  if (content?.owner !== owner) throw new Failure(`${fileIn(directory)} is not of ${owner}: name another directory`);
  try {
    const { owner: _, ...state } = content;
    for (const name of Object.keys(state)) {
      const { pid, port, started } = state[name];
      if (!(name in titles && Number.isInteger(pid) && pid > 1 && Number.isInteger(port) && started)) throw new Error();
    }
    return state;
  } catch {
    throw new Failure(`${fileIn(directory)} is damaged; end what it started by hand, and remove it`);
  }
}

// The file is replaced as a whole.
function writeState(directory, state) {
  const file = fileIn(directory);
  const part = `${file}.${owner.replace(' ', '-')}`;
  fs.rmSync(part, { force: true }); // or a link of this name would be followed
  fs.writeFileSync(part, `${JSON.stringify({ owner, ...state }, null, 2)}\n`, { flag: 'wx', mode: 0o600 });
  fs.renameSync(part, file);
}

// The names of the emulators that run.
const namesAlive = (state) => Object.keys(titles).filter((name) => state[name] !== undefined && isAlive(state[name]));

// The state, with everything running. No other address is ever used: one in the environment may belong to an AWS
// account.
function runningState({ directory }) {
  const state = readState(directory);
  const alive = namesAlive(state);
  if (alive.length === Object.keys(titles).length) return state;
  throw new Failure(alive.length === 0 ? `nothing runs in ${directory}; kclxx local start starts it`
    : `in ${directory} only ${titles[alive[0]]} still runs; kclxx local stop and start`);
}

const startLimit = 60; // seconds; an emulator needs one or two
const logOf = (directory, name) => path.join(directory, `${name}.log`);

function hold() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

// Free ports, held until the last one is known, so that no two are the same.
async function freePorts(count) {
  const held = await Promise.all(Array.from({ length: count }, hold));
  const ports = held.map((server) => server.address().port);
  await Promise.all(held.map((server) => new Promise((closed) => { server.close(closed); })));
  return ports;
}

// What the emulators get of the caller's environment. Both read variables with common names (LOG_LEVEL,
// SHOULD_PERSIST_DATA), as Java and Node.js do (JAVA_TOOL_OPTIONS, NODE_OPTIONS), and the caller's AWS account has no
// part in this.
const kept = ['HOME', 'LANG', 'LC_ALL', 'LD_LIBRARY_PATH', 'PATH', 'TMPDIR', 'TZ'];
function cleanEnvironment(variables) {
  const entries = Object.entries(variables).filter(([name]) => kept.includes(name));
  return { ...Object.fromEntries(entries), AWS_REGION: region };
}

function programs(ports, { java, 'dynamodb-jars': jars, 'dynamodb-class-path': classPath }) {
  const kinesis = process.env.KCLXX_LOCAL_PACKAGES;
  return {
    kinesis: {
      port: ports[0],
      command: [process.execPath, path.join(__dirname, 'kinesis.js'), kinesis],
      environment: {
        KINESIS_MOCK_PLAIN_PORT: ports[0],
        KINESIS_MOCK_TLS_PORT: ports[2], // it cannot be left out
        KINESIS_MOCK_CERT_PATH: path.join(kinesis, 'server.json'),
        SHARD_LIMIT: 5000,
      },
    },
    dynamodb: {
      port: ports[1],
      command: [
        java, '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', // starts fast; there is little to do
        `-Djava.library.path=${jars}`, '-cp', classPath, 'org.eclipse.jetty.xml.XmlConfiguration',
        `port=${ports[1]}`, path.join(__dirname, 'dynamodb.xml'),
      ],
      environment: { DDB_LOCAL_TELEMETRY: 0 },
    },
  };
}

// In a session of its own, so that no signal of a terminal reaches it. A shell waits for `release` and then becomes the
// program, with the same process id; it ends if this process ends before that.
function startDetached({ command, environment }, directory, log) {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = fs.constants;
  const out = fs.openSync(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
  const child = spawn('/bin/sh', ['-c', 'read -r go && exec "$@" </dev/null', 'sh', ...command], {
    detached: true,
    cwd: directory,
    env: { ...cleanEnvironment(process.env), ...environment },
    stdio: ['pipe', out, out],
  });
  fs.closeSync(out);
  child.on('error', () => {}); // it then has no pid
  child.stdin.on('error', () => {}); // it has ended, and is found dead
  child.unref();
  return { pid: child.pid, started: startOf(child.pid), release: () => child.stdin.end('go\n') };
}

async function awaitPort(name, emulator, log, signal) {
  const end = Date.now() + startLimit * 1000;
  for (;;) {
    if (portsOf(emulator.pid).includes(emulator.port)) return;
    signal.throwIfAborted();
    if (!isAlive(emulator)) throw new Failure(`the local ${titles[name]} did not start; log: ${log}`);
    if (Date.now() > end) {
      throw new Failure(`the local ${titles[name]} did not open port ${emulator.port} within ${startLimit} s; log: ${log}`);
    }
    await sleep(20);
  }
}

// Aborted when a signal asks this process to end.
function interruption() {
  const controller = new AbortController();
  for (const [name, number] of [['SIGINT', 2], ['SIGTERM', 15], ['SIGHUP', 1]]) {
    const reason = new Failure(`interrupted by ${name}; nothing is left running`, 128 + number);
    process.on(name, () => controller.abort(reason));
  }
  return controller.signal;
}

// Ends all processes of the state, or fails with the ids of those that remain.
async function end(state, directory) {
  const emulators = Object.values(state);
  emulators.forEach(kill);
  if (!(await waitUntil(10, () => !emulators.some(isAlive)))) {
    throw new Failure(`still running 10 s after SIGKILL: ${emulators.filter(isAlive).map(({ pid }) => pid).join(', ')}`);
  }
  writeState(directory, {});
}

// From here on the state and the logs are ours, and nobody else's files of these names.
function take(directory) {
  const taken = Object.keys(titles).map((name) => logOf(directory, name)).find((log) => fs.existsSync(log));
  if (!hasState(directory) && taken !== undefined) {
    throw new Failure(`${taken} is not of kclxx local: name another directory`);
  }
  writeState(directory, {});
}

// `state` has the processes that were started, even if it fails.
async function startAll(options, state, signal) {
  const { directory } = options;
  const ports = await freePorts(3);
  signal.throwIfAborted();
  const entries = Object.entries(programs(ports, options));
  for (const [name, program] of entries) {
    const log = logOf(directory, name);
    const { pid, started, release } = startDetached(program, directory, log);
    if (started === undefined) throw new Failure(`no process for ${titles[name]} can be started; log: ${log}`);
    state[name] = { pid, started, port: program.port };
    writeState(directory, state); // first: should this be killed, `stop` finds what it left
    release();
  }
  await Promise.all(entries.map(([name]) => awaitPort(name, state[name], logOf(directory, name), signal)));
  signal.throwIfAborted();
}

function printExports(state, directory) {
  console.log(exportLines(state, directory, process.env).join('\n'));
}

function describe(state, directory) {
  return Object.entries(state).map(([name, emulator]) =>
    `${titles[name].padEnd(9)} ${addressOf(emulator)}  process ${emulator.pid}  ` +
    `${isAlive(emulator) ? 'running' : 'ended unexpectedly'}  log ${logOf(directory, name)}`);
}

async function start(options) {
  const { directory } = options;
  if (startOf(process.pid) === undefined) {
    throw new Failure('the emulators are found by /proc, which is not mounted here: mount -t proc proc /proc');
  }
  const before = readState(directory);
  const alive = namesAlive(before);
  if (alive.length > 0) {
    const state = runningState(options);
    console.error(`kclxx local start: already running in ${directory}; kclxx local stop ends it`);
    printExports(state, directory);
    return 1;
  }
  take(directory);
  const state = {};
  try {
    await startAll(options, state, interruption());
  } catch (error) {
    await end(state, directory);
    throw error;
  }
  for (const line of describe(state, directory)) console.error(line);
  console.error('Both accept connections from this machine alone. kclxx local stop ends both and discards their data.');
  printExports(state, directory);
  return 0;
}

async function stop({ directory }) {
  const state = readState(directory);
  const alive = namesAlive(state);
  if (hasState(directory)) await end(state, directory);
  const ended = alive.map((name) => titles[name]).join(' and ');
  console.error(ended === '' ? `nothing runs in ${directory}` : `ended: ${ended}`);
}

async function env(options) {
  printExports(runningState(options), options.directory);
}

// 1: not everything runs.
async function status({ directory }) {
  const state = readState(directory);
  if (Object.keys(state).length === 0) console.log(`nothing runs in ${directory}`);
  else console.log(describe(state, directory).join('\n'));
  return namesAlive(state).length === Object.keys(titles).length ? 0 : 1;
}

module.exports = {
  cleanEnvironment, startOf, isAlive, kill, readState, writeState, runningState, interruption, start, stop, env, status,
};
