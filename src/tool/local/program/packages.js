// SPDX-License-Identifier: Apache-2.0
// The packages that the tool has fetched. A plain require would prefer those of a node_modules in any folder above
// this file, which may be another version or somebody else's.
'use strict';
const { createRequire } = require('node:module');
const path = require('node:path');

const folderOf = (name) => path.join(process.env.KCLXX_LOCAL_PACKAGES, name);
const requirePackage = (name) => createRequire(folderOf('.'))(name);

module.exports = { folderOf, requirePackage };
