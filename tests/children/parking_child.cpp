// SPDX-License-Identifier: Apache-2.0
// parking_child OUTPUT [FAILING]: appends each record's data to OUTPUT as a line, and keeps the
// position in OUTPUT.SHARD. It leaves out records that the position covers. It parks the records
// whose data begins with FAILING, after two attempts.
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include <kclxx/kclxx.hpp>

int main(int argc, char** argv) {
  ::setenv("KCLXX_PARKING_DIR", ".", 0);
  const std::string output = argc > 1 ? argv[1] : "";
  const std::string failing = argc > 2 ? argv[2] : "";
  return kclxx::run(kclxx::each(
      [&](const kclxx::record& record, const kclxx::shard_context& shard) {
        const std::string kept = output + "." + shard.shard_id();
        std::string position = "TRIM_HORIZON/0";
        std::ifstream(kept) >> position;
        if (record.position() <= *kclxx::sequence_position::from_string(position)) return;
        const std::string data(record.data());
        if (!failing.empty() && data.starts_with(failing)) throw std::runtime_error("refused");
        std::ofstream(output, std::ios::app) << data << "\n";
        std::ofstream(kept) << to_string(record.position()) << "\n";
      },
      {.max_attempts = 2,
       .initial_backoff = std::chrono::milliseconds(1),
       .bad_record = kclxx::bad_record::park}));
}
