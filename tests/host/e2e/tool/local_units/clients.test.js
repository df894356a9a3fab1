// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const test = require('node:test');
const { exportLines } = require('../../../../../src/host/local/program/clients.js');

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
