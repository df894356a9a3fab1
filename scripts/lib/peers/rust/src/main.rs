// SPDX-License-Identifier: Apache-2.0
// The least that a user of the crate kcl writes: decoded by the crate, add up, checkpoint each batch at its last
// record; a failed checkpoint ends the process, as in the crate's own example.
use kcl::checkpointer::Checkpointer;
use kcl::reader::StdinReader;
use kcl::writer::StdoutWriter;
use kcl::{run, Processor, Record};

#[derive(Default)]
struct CountBytes {
    bytes: usize,
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
            checkpointer
                .checkpoint(Some(last.sequence_number.clone()), last.sub_sequence_number)
                .expect("Checkpoint to succeed.");
        }
    }

    fn lease_lost(&mut self) {
        eprintln!("{} bytes", self.bytes);
    }

    fn shard_ended(&mut self, checkpointer: &mut Checkpointer<StdoutWriter, StdinReader>) {
        checkpointer.checkpoint(None, None).expect("Checkpoint to succeed.");
    }

    fn shutdown_requested(&mut self, checkpointer: &mut Checkpointer<StdoutWriter, StdinReader>) {
        checkpointer.checkpoint(None, None).expect("Checkpoint to succeed.");
    }
}

fn main() {
    run(&mut CountBytes::default());
}
