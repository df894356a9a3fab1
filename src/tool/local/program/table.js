// SPDX-License-Identifier: Apache-2.0
// Rows of texts, for people and for scripts. Pure, but for printTable.
'use strict';

// `right`: the columns with numbers.
function formatTable(head, rows, right = []) {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const padded = (text, column) =>
    right.includes(column) ? text.padStart(widths[column]) : text.padEnd(widths[column]);
  return all.map((row) => `${row.map(padded).join('  ').trimEnd()}\n`).join('');
}

const formatTsv = (rows) => rows.map((row) => `${row.join('\t')}\n`).join('');

function printTable(head, rows, { tsv }) {
  process.stdout.write(tsv ? formatTsv(rows) : formatTable(head, rows));
}

module.exports = { printTable };
