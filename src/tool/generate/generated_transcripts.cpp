// SPDX-License-Identifier: Apache-2.0
#include "tool/generate/generated_transcripts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/transcript/lines.hpp"
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

constexpr std::size_t text_size = std::size_t{1} << 20;
constexpr std::size_t counter_digits = 32;

void append_padded(std::string& out, std::uint64_t value, std::size_t digits) {
  const std::string text = std::to_string(value);
  out.append(digits - text.size(), '0').append(text);
}

std::string make_text(std::size_t size, random_numbers& random) {
  std::string text;
  text.reserve(size + 16);
  while (text.size() < size) {
    std::uint64_t letters = random.next();
    for (std::uint64_t n = 2 + letters % 8; n > 0; --n) {
      letters /= 26;
      text += static_cast<char>('a' + letters % 26);
    }
    text += ' ';
  }
  return text;
}

std::string make_key(std::size_t number) {
  constexpr std::array<std::string_view, 3> foreign{
      "cl\xC3\xA9", "\xD0\xBA\xD0\xBB\xD1\x8E\xD1\x87", "\xE9\x8D\xB5\xF0\x9F\x94\x91"};
  std::string key(number % 8 == 7 ? foreign[number / 8 % foreign.size()] : "key");
  return key + "-" + std::to_string(number);
}

/// What the records of all shards take their text and keys from. Immutable.
class record_texts {
 public:
  record_texts(const record_shape& shape, random_numbers& random)
      : shape_(shape), text_(make_text(shape.largest + text_size, random)) {
    for (std::size_t i = 0; i < shape.keys; ++i) keys_.push_back(make_key(i));
  }

  [[nodiscard]] const record_shape& shape() const noexcept { return shape_; }
  /// Of a shard's record with this number: its payload, or words of ASCII letters, from anywhere in
  /// the text.
  [[nodiscard]] std::string_view data(std::uint64_t number, random_numbers& random) const {
    if (!shape_.payloads.empty()) return shape_.payloads[number % shape_.payloads.size()];
    const std::uint64_t size = random.between(shape_.smallest, shape_.largest);
    return std::string_view(text_).substr(random.below(text_size), size);
  }
  /// One key in eight is not ASCII.
  [[nodiscard]] std::string_view key(std::size_t number) const { return keys_[number]; }

 private:
  const record_shape& shape_;
  std::string text_;
  std::vector<std::string> keys_;
};

/// The records of one shard, batch by batch. Sequence numbers have 56 digits, rise within the
/// shard, and are higher than those of its parents.
class generated_records {
 public:
  generated_records(const generated_shard& shard, const record_texts& texts, random_numbers random)
      : shard_(shard), texts_(texts), random_(random), prefix_("49") {
    append_padded(prefix_, shard.born_in, 10);
    append_padded(prefix_, shard.number, 12);
  }

  /// The next `count` records, which arrived evenly over a second from `arrival` on; valid until
  /// the next call. Those of one aggregate arrived together.
  std::span<const record> next(std::uint64_t count, std::chrono::milliseconds arrival) {
    const record_shape& shape = texts_.shape();
    sequence_numbers_.resize((count + shape.aggregate - 1) / shape.aggregate);
    records_.clear();
    record::fields one;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t sub = i % shape.aggregate;
      std::string& sequence_number = sequence_numbers_[i / shape.aggregate];
      if (sub == 0) {
        next_sequence_number(sequence_number);
        one.sequence_number = sequence_number;
        one.approximate_arrival_timestamp =
            arrival + std::chrono::milliseconds(static_cast<std::int64_t>(i * 1000 / count));
      }
      one.sub_sequence_number = sub;
      one.data = texts_.data(records_so_far_++, random_);
      one.partition_key = texts_.key(random_.between(shard_.first_key, shard_.end_key - 1));
      records_.emplace_back(one);
    }
    return records_;
  }

 private:
  void next_sequence_number(std::string& out) {
    counter_ += random_.between(1, 1000);
    out = prefix_;
    append_padded(out, counter_, counter_digits);
  }

  const generated_shard& shard_;
  const record_texts& texts_;
  random_numbers random_;
  std::string prefix_;  // of the sequence numbers
  std::uint64_t counter_ = 0;
  std::uint64_t records_so_far_ = 0;
  std::vector<std::string> sequence_numbers_;
  std::vector<record> records_;
};

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
