// SPDX-License-Identifier: Apache-2.0
'use strict';
const net = require('node:net');
const { Failure } = require('./failure.js');

function hold(port) {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', (error) => {
      reject(error.code === 'EADDRINUSE' ? new Failure(`port ${port} is taken`)
        : error.code === 'EACCES' ? new Failure(`port ${port} is only for root`) : error);
    });
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

// Free ports in place of those that are undefined; the others are looked at. All are held until the last one is
// known, so that no two are the same.
async function choosePorts(wanted) {
  const held = [];
  try {
    // Wanted ones first: none of them may be given away as a free one.
    const order = [...wanted.keys()].sort((a, b) => (wanted[a] === undefined) - (wanted[b] === undefined));
    for (const i of order) held.push([i, await hold(wanted[i] ?? 0)]);
    return held.sort((a, b) => a[0] - b[0]).map(([, server]) => server.address().port);
  } finally {
    await Promise.all(held.map(([, server]) => new Promise((closed) => server.close(closed))));
  }
}

module.exports = { choosePorts };
