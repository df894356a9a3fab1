// SPDX-License-Identifier: Apache-2.0
// Processes that outlive their parent. Linux: all is read from /proc.
'use strict';
const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');

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
const isAlive = (one) => one.started !== undefined && startOf(one.pid) === one.started;

async function waitUntil(seconds, condition) {
  const end = Date.now() + seconds * 1000;
  while (!condition()) {
    if (Date.now() > end) return false;
    await sleep(20);
  }
  return true;
}

// SIGKILL: the local Kinesis ignores SIGTERM while a client is connected, and there is nothing to save.
function kill(one) {
  if (!isAlive(one)) return;
  try {
    process.kill(one.pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

// The sockets that listen on a port, as /proc names them.
function listeningOn(port) {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const rows = (textOf('/proc/net/tcp') + textOf('/proc/net/tcp6')).split('\n').map((row) => row.trim().split(/\s+/));
  return rows.filter((row) => row[3] === '0A' && row[1].endsWith(`:${hex}`)).map((row) => `socket:[${row[9]}]`);
}

// Whether it is this process that listens, and not another one that took the port before.
function listens(pid, port) {
  const sockets = listeningOn(port);
  if (sockets.length === 0) return false;
  try {
    const folder = `/proc/${pid}/fd`;
    return fs.readdirSync(folder).some((fd) => {
      try {
        return sockets.includes(fs.readlinkSync(`${folder}/${fd}`));
      } catch {
        return false; // closed meanwhile
      }
    });
  } catch {
    return false; // ended meanwhile
  }
}

module.exports = { startOf, isAlive, waitUntil, kill, listens };
