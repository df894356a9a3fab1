// SPDX-License-Identifier: Apache-2.0
#include "tool/generate/generated_transcripts.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "daemon_model/lines.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/transcript/header.hpp"
#include "tool/transcript/transcript_file.hpp"
#include "tool/transcript/writer.hpp"

namespace kclxx::tool {

namespace {

using namespace std::chrono_literals;
using transcript::entry_kind;

// The same for every run, so that the same seed gives the same bytes.
constexpr std::chrono::sys_days first_day = std::chrono::year(2026) / 1 / 1;
constexpr auto epoch_length = std::chrono::hours(1);  // between two reshardings
constexpr auto batch_interval = 1s;                   // as the daemon's idleTimeBetweenReads

std::string file_of(const std::string& directory, const generated_shard& shard) {
  return directory + "/" + shard.id() + ".jsonl";
}

/// Writes the file of one shard.
class shard_writer {
 public:
  shard_writer(std::string file, const dialogue_shape& shape, const generated_shard& shard)
      : shape_(shape),
        shard_(shard),
        started_(first_day + epoch_length * shard.born_in),
        file_(std::move(file)),
        writer_(file_) {}

  /// Leaves no file when it cannot be written.
  void write(generated_records& records) {
    try {
      write_all(records);
    } catch (...) {
      file_.remove();
      throw;
    }
  }

 private:
  void write_all(generated_records& records) {
    writer_.write(transcript::header{shard_.id(), transcript::format_time(started_), {}});
    write_line(daemon_model::initialize_line(shard_.id(), sequence_position("TRIM_HORIZON", 0)));
    const std::uint64_t batch = shape_.whole_batch();
    const std::uint64_t batches = (shard_.records + batch - 1) / batch;
    for (std::uint64_t i = 0; i < batches; ++i) {
      throw_if_cancelled();
      at_ += batch_interval;
      write_batch(records, std::min(batch, shard_.records - i * batch), batches - 1 - i);
    }
    write_ending();
  }

  // The reader catches up by a second with each batch.
  void write_batch(generated_records& records, std::uint64_t count, std::uint64_t batches_left) {
    using std::chrono::milliseconds;
    const auto behind = milliseconds(batch_interval) * batches_left;
    const auto now = std::chrono::floor<milliseconds>(started_.time_since_epoch() + at_);
    line_.clear();
    daemon_model::append_process_records(
        line_, records.next(count, now - behind - milliseconds(batch_interval)), behind.count());
    write_line(line_);
  }

  void write_ending() {
    at_ += batch_interval;
    if (shard_.is_closed || shape_.end == dialogue_end::shard_end) {
      write_line(daemon_model::action_line(protocol::action_kind::shard_ended));
    } else if (shape_.end == dialogue_end::shutdown) {
      write_line(daemon_model::action_line(protocol::action_kind::shutdown_requested));
      write_line(daemon_model::action_line(protocol::action_kind::lease_lost));
    } else if (shape_.end == dialogue_end::lease_lost) {
      write_line(daemon_model::action_line(protocol::action_kind::lease_lost));
    }
    transcript::entry end;
    end.at = at_;
    end.kind = entry_kind::end_of_input;
    writer_.write(end);
  }

  void write_line(std::string_view line) {
    transcript::entry one;
    one.at = at_;
    one.line = line;
    writer_.write(one);
  }

  const dialogue_shape& shape_;
  const generated_shard& shard_;
  std::chrono::system_clock::time_point started_;
  output_file file_;
  transcript::writer writer_;
  std::chrono::microseconds at_{0};
  std::string line_;  // kept for its memory
};

// Before an hour of writing.
void check_names(const std::string& directory, const std::vector<generated_shard>& shards) {
  for (const generated_shard& shard : shards) {
    const std::string name = file_of(directory, shard);
    std::error_code unknown;
    if (std::filesystem::exists(std::filesystem::symlink_status(name, unknown))) {
      throw std::system_error(EEXIST, std::generic_category(), name + " cannot be made");
    }
  }
}

void write_files(const std::string& directory, const dialogue_shape& shape,
                 const std::vector<generated_shard>& shards, const record_texts& texts,
                 random_numbers& random) {
  std::vector<std::string> made;
  try {
    for (const generated_shard& shard : shards) {
      generated_records records(shard, texts, random_numbers(random.next()));
      const std::string file = file_of(directory, shard);
      shard_writer(file, shape, shard).write(records);
      made.push_back(file);
    }
  } catch (...) {
    std::error_code ignored;
    for (const std::string& name : made) std::filesystem::remove(name, ignored);
    throw;
  }
}

}  // namespace

std::uint64_t dialogue_shape::whole_batch() const noexcept {
  return (batch + record.aggregate - 1) / record.aggregate * record.aggregate;
}

std::uint64_t dialogue_shape::longest_line(std::uint64_t records) const noexcept {
  constexpr std::uint64_t other_fields = 256;  // at most, of one record
  return records * ((record.largest + 2) / 3 * 4 + other_fields);
}

void write_transcripts(const std::string& directory, const dialogue_shape& shape,
                       const std::vector<generated_shard>& shards, random_numbers& random) {
  const record_texts texts(shape.record, random);
  const bool is_new = make_directory(directory);
  check_names(directory, shards);
  try {
    write_files(directory, shape, shards, texts, random);
  } catch (...) {
    std::error_code ignored;
    if (is_new) std::filesystem::remove(directory, ignored);
    throw;
  }
}

}  // namespace kclxx::tool
