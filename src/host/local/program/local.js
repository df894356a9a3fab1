// SPDX-License-Identifier: Apache-2.0
// What "kclxx local" runs: node local.js COMMAND NAME=VALUE... The tool has parsed the command line, brought the
// packages and set KCLXX_LOCAL_PACKAGES; results go to stdout, messages to stderr.
'use strict';
const commands = {
  start: ['./emulators.js', 'start'],
  stop: ['./emulators.js', 'stop'],
  env: ['./emulators.js', 'env'],
  status: ['./emulators.js', 'status'],
  'create-stream': ['./streams.js', 'createStream'],
  shards: ['./streams.js', 'printShards'],
  split: ['./streams.js', 'split'],
  merge: ['./streams.js', 'merge'],
  put: ['./put.js', 'put'],
  'create-lease-table': ['./leases.js', 'create'],
  leases: ['./leases.js', 'printLeases'],
};

// The tool's statuses (src/tool/command_error.hpp).
const cannotBeSetUp = 5;

function leave(command, error) {
  const text = error.isPlain ? error.message : error.name + ': ' + error.message;
  console.error('kclxx local ' + command + ': ' + text.split('\n').join(' '));
  process.exit(error.status || cannotBeSetUp);
}

const command = process.argv[2];
const options = {};
process.argv.slice(3).forEach((argument) => {
  const equals = argument.indexOf('=');
  options[argument.slice(0, equals)] = argument.slice(equals + 1);
});

process.stdout.on('error', () => leave(command, { isPlain: true, message: 'stdout cannot be written' }));
// Older ones could not even parse the other files.
if (Number(process.versions.node.split('.')[0]) < 18) {
  leave(command, { isPlain: true, message: 'Node.js 18 or newer is needed; this is ' + process.versions.node });
}
const [file, name] = commands[command];
require(file)[name](options).then(
  // What stdout has not taken is an error, too.
  (status) => process.stdout.write('', (error) => { if (!error) process.exit(status || 0); }),
  (error) => leave(command, error),
);
