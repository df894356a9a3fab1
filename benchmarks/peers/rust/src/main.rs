// SPDX-License-Identifier: Apache-2.0
// The least that a user of the crate kcl writes: decoded by the crate, add up, checkpoint each batch at its last
// record. A failed checkpoint is logged and no more, as it is with the other clients.
use kcl::checkpointer::Checkpointer;
use kcl::reader::StdinReader;
use kcl::writer::StdoutWriter;
use kcl::{run, Processor, Record};

#[derive(Default)]
struct CountBytes {
    bytes: usize,
}

fn checkpoint(
    checkpointer: &mut Checkpointer<StdoutWriter, StdinReader>,
    sequence_number: Option<String>,
    sub_sequence_number: Option<u64>,
) {
    if let Err(error) = checkpointer.checkpoint(sequence_number, sub_sequence_number) {
        eprintln!("checkpoint failed: {error}");
    }
}

impl Processor<StdoutWriter, StdinReader> for CountBytes {
    fn initialize(&mut self, _shard_id: &str) {}

    fn process_records(
        &mut self,
        records: &[Record],
        checkpointer: &mut Checkpointer<StdoutWriter, StdinReader>,
    ) {
        self.bytes += records.iter().map(|record| record.raw_data.len()).sum::<usize>();
        if let Some(last) = records.last() {
            checkpoint(checkpointer, Some(last.sequence_number.clone()), last.sub_sequence_number);
        }
    }

    fn lease_lost(&mut self) {
        eprintln!("{} bytes", self.bytes);
    }

    fn shard_ended(&mut self, checkpointer: &mut Checkpointer<StdoutWriter, StdinReader>) {
        checkpoint(checkpointer, None, None);
    }

    fn shutdown_requested(&mut self, checkpointer: &mut Checkpointer<StdoutWriter, StdinReader>) {
        checkpoint(checkpointer, None, None);
    }
}

fn main() {
    run(&mut CountBytes::default());
}
