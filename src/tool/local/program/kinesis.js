// SPDX-License-Identifier: Apache-2.0
// Starts kinesis-local, main.js of the package in the folder that is given, with two changes for which it has no
// option: it listens on 127.0.0.1 alone, and it lists the shards at the trim horizon as Kinesis does.
'use strict';
const fs = require('node:fs');
const Module = require('node:module');
const net = require('node:net');
const path = require('node:path');

// kinesis-local calls listen(port, callback) or listen(port, host, callback).
const { listen } = net.Server.prototype;
net.Server.prototype.listen = function listenHere(port, ...rest) {
  if (typeof port !== 'number') throw new Error(`listen is called in an unexpected way: ${typeof port}`);
  return listen.call(this, port, '127.0.0.1', ...rest.filter((one) => typeof one === 'function'));
};

// Of ListShards with AT_TRIM_HORIZON: kinesis-local lists all shards, Kinesis those that were open then, in which the
// KCL of a new application begins. In the life of a local stream they are those without a parent.
const allShards = `                if ($x_5) {
                  var filteredShards = allShards;`;
const shardsThen = `                if ($x_5) {
                  var filteredShards = (x63.pA === $m_Lkinesis_mock_models_ShardFilterType$FROM\\uff3fTIMESTAMP$())
                    ? allShards
                    : allShards.p2(new $c_sjsr_AnonFunction1_$$Lambda$412915ce24663401f4bc24349a746e1dbd693dc1(
                      (shard) => shard.vl.c()), false);`;

function changed(text) {
  const parts = text.split(allShards);
  if (parts.length !== 2) throw new Error('this is not the kinesis-local that this program was written for');
  return parts.join(shardsThen);
}

const file = path.join(process.argv[2], 'main.js');
const main = new Module(file, null);
main.filename = file;
main.paths = [];
main._compile(changed(fs.readFileSync(file, 'utf8')).replace(/^#!.*/, ''), file);
