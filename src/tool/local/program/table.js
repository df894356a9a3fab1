// SPDX-License-Identifier: Apache-2.0
// Rows of texts, for people and for scripts. Pure, but for printTable.
'use strict';

function formatTable(head, rows) {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  return all.map((row) => `${row.map((text, column) => text.padEnd(widths[column])).join('  ').trimEnd()}\n`).join('');
}

const formatTsv = (rows) => rows.map((row) => `${row.join('\t')}\n`).join('');

function printTable(head, rows, { tsv }) {
  process.stdout.write(tsv ? formatTsv(rows) : formatTable(head, rows));
}

module.exports = { printTable };
