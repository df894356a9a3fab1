// SPDX-License-Identifier: Apache-2.0
// Calls of what runs here: JSON in an HTTP request to 127.0.0.1, where nobody verifies a signature. No variable or file
// of the caller's AWS account is read.
'use strict';
const http = require('node:http');
const { setTimeout: sleep } = require('node:timers/promises');

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

// The environment in which an AWS client or a daemon talks to what runs here, and to nothing else.

const region = 'us-east-1';
const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }; // DynamoDB Local wants letters and digits
const addressOf = ({ port }) => `http://127.0.0.1:${port}`;

function variablesFor(state, directory, environment) {
  const noProxy = (name) => {
    const hosts = (environment[name] ?? '').split(',').filter((host) => host !== '');
    return hosts.includes('127.0.0.1') ? hosts.join(',') : [...hosts, '127.0.0.1'].join(',');
  };
  return {
    AWS_ENDPOINT_URL_KINESIS: addressOf(state.kinesis),
    AWS_ENDPOINT_URL_DYNAMODB: addressOf(state.dynamodb),
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    NO_PROXY: noProxy('NO_PROXY'),
    no_proxy: noProxy('no_proxy'),
    // For `kclxx daemon`, since not every daemon looks at AWS_ENDPOINT_URL_*.
    KCLXX_PROPERTY_kinesisEndpoint: addressOf(state.kinesis),
    KCLXX_PROPERTY_dynamoDBEndpoint: addressOf(state.dynamodb),
    KCLXX_LOCAL_DIRECTORY: directory,
  };
}

const quoted = (text) => (/^[\w./:,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// Lines for sh. Whatever else AWS clients would read is unset: a profile for instance goes before credentials.
function exportLines(state, directory, environment) {
  const variables = variablesFor(state, directory, environment);
  const others = Object.keys(environment).filter((name) => /^AWS_\w+$/.test(name) && !(name in variables)).sort();
  return [
    ...(others.length > 0 ? [`unset ${others.join(' ')}`] : []),
    ...Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}`),
  ];
}

const services = {
  kinesis: { version: 'Kinesis_20131202', type: 'application/x-amz-json-1.1' },
  dynamodb: { version: 'DynamoDB_20120810', type: 'application/x-amz-json-1.0' },
};
const agent = new http.Agent({ keepAlive: true });

// DynamoDB Local takes from the signature whose tables are meant, and where.
const authorization = (service) => `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/20260101/${region}/${service}/` +
  'aws4_request, SignedHeaders=host, Signature=0';

function post(port, headers, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method: 'POST', agent, headers }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part)).on('error', reject)
        .on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString() }));
    });
    request.on('error', reject).end(body);
  });
}

const isTemporary = (name, status) => status >= 500 || /Throttl|LimitExceeded|ThroughputExceeded/.test(name);

// call(NAME, INPUT): what a service answers; what it refuses is thrown, with the error's name. Three tries.
function clientOf(service, { port }) {
  const { version, type } = services[service];
  return async (name, input) => {
    const body = JSON.stringify(input);
    const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body), 'x-amz-target': `${version}.${name}`,
      'x-amz-date': '20260101T000000Z', authorization: authorization(service) };
    for (let tries = 1; ; ++tries) {
      const { status, text } = await post(port, headers, body);
      const answer = text === '' ? {} : JSON.parse(text, (_, value) => value ?? undefined); // null: absent
      if (status === 200) return answer;
      const error = new Error(answer.message ?? answer.Message ?? text);
      error.name = (answer.__type ?? `status ${status}`).split('#').pop();
      if (tries === 3 || !isTemporary(error.name, status)) throw error;
      await sleep(100 * 2 ** tries);
    }
  };
}

// Asks until it is so, for half a minute.
async function awaitState(ask, isReached) {
  for (let end = Date.now() + 30_000; !isReached(await ask()); await sleep(100)) {
    if (Date.now() > end) throw new Error('nothing has changed for 30 s');
  }
}

const kinesisClient = (state) => clientOf('kinesis', state.kinesis);
const dynamodbClient = (state) => clientOf('dynamodb', state.dynamodb);

module.exports = { Failure, explained, region, addressOf, exportLines, kinesisClient, dynamodbClient, awaitState };
