// SPDX-License-Identifier: Apache-2.0
// The environment in which an AWS client or a daemon talks to what runs here, and to nothing else.
'use strict';

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

module.exports = { region, credentials, addressOf, exportLines };
