// SPDX-License-Identifier: Apache-2.0
// Processes that outlive their parent. Linux: all is read from /proc.
'use strict';
const fs = require('node:fs');
const os = require('node:os');
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

// What a process listens on: {port, address}. An address is in hexadecimal digits, in the order of the machine's bytes.
function listenersOf(pid) {
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
  return rows.filter((row) => row[3] === '0A' && open.has(`socket:[${row[9]}]`)).map((row) => {
    const [address, port] = row[1].split(':');
    return { address, port: Number.parseInt(port, 16) };
  });
}

// 127.0.0.1, ::1, and 127.0.0.1 as an address of IPv6; each 32 bits in the order of the machine's bytes.
const loopback = os.endianness() === 'LE' ? /^(0{16}FFFF0000)?0100007F$|^0{24}01000000$/
  : /^(0{16}0000FFFF)?7F000001$|^0{24}00000001$/;
const isOfThisMachine = (address) => loopback.test(address);

module.exports = { startOf, isAlive, waitUntil, kill, listenersOf, isOfThisMachine };
