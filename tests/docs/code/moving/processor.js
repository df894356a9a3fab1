// docs/moving.md: what the program is in JavaScript, with aws-kcl 2.
const kcl = require('aws-kcl');

const store = (data) => console.error(data.length);

kcl({
  initialize(input, done) {
    this.shardId = input.shardId;
    done();
  },
  processRecords(input, done) {
    for (const record of input.records) store(Buffer.from(record.data, 'base64'));
    if (input.records.length === 0) return done();
    const last = input.records[input.records.length - 1].sequenceNumber;
    input.checkpointer.checkpoint(last, (error) => {
      if (error) console.error(error);
      done();
    });
  },
  leaseLost(input, done) {
    done();
  },
  shardEnded(input, done) {
    input.checkpointer.checkpoint((error) => done());
  },
  shutdownRequested(input, done) {
    input.checkpointer.checkpoint((error) => done());
  },
}).run();
