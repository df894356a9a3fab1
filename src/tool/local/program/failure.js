// SPDX-License-Identifier: Apache-2.0
'use strict';

// What is wrong, in words for the user; local.js prints it as one line. `status` is the process's.
class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.isPlain = true;
    this.status = status;
  }
}

// Runs a call to Kinesis or DynamoDB. `words` has a sentence for each of its errors that a user can cause.
async function explained(words, call) {
  try {
    return await call();
  } catch (error) {
    if (words[error.name] !== undefined) throw new Failure(words[error.name]);
    if (error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET') {
      throw new Failure('the local Kinesis or DynamoDB does not answer; see kclxx local status');
    }
    throw error;
  }
}

module.exports = { Failure, explained };
