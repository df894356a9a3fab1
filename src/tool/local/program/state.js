// SPDX-License-Identifier: Apache-2.0
// What runs in a directory: DIR/state.json has a process and a port for each emulator, and says whose it is. It stays
// when nothing runs, since with it the logs beside it are ours. A process that changes it holds a lock on the directory,
// which the tool has taken.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { Failure } = require('./failure.js');
const { isAlive } = require('./processes.js');

const owner = 'kclxx local';
const titles = { kinesis: 'Kinesis', dynamodb: 'DynamoDB' };
const fileIn = (directory) => path.join(directory, 'state.json');

function parsed(text) {
  try {
    const { owner: found, ...state } = JSON.parse(text);
    return { isOurs: found === owner, state };
  } catch {
    return { isOurs: false };
  }
}

const hasState = (directory) => fs.existsSync(fileIn(directory));

function readState(directory) {
  let text;
  try {
    text = fs.readFileSync(fileIn(directory), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return {};
    throw new Failure(`${fileIn(directory)} cannot be read: ${error.message}`);
  }
  const { isOurs, state } = parsed(text);
  if (!isOurs) throw new Failure(`${fileIn(directory)} is not of ${owner}: name another directory`);
  try {
    for (const name of Object.keys(state)) {
      const { pid, port, started } = state[name];
      if (!(name in titles && Number.isInteger(pid) && pid > 1 && Number.isInteger(port) && started)) throw new Error();
    }
    return state;
  } catch {
    throw new Failure(`${fileIn(directory)} is damaged; end what it started by hand, and remove it`);
  }
}

// Whole or not at all.
function writeState(directory, state) {
  const file = fileIn(directory);
  const part = `${file}.${owner.replace(' ', '-')}`;
  fs.rmSync(part, { force: true }); // or a link of this name would be followed
  fs.writeFileSync(part, `${JSON.stringify({ owner, ...state }, null, 2)}\n`, { flag: 'wx', mode: 0o600 });
  fs.renameSync(part, file);
}

// The names of those that run, of all that there can be.
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

module.exports = { titles, hasState, readState, writeState, namesAlive, runningState };
