// SPDX-License-Identifier: Apache-2.0
#include "tool/generate/generate_command.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "daemon_model/lines.hpp"
#include "tool/generate/generated_records.hpp"
#include "tool/generate/generated_shards.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/replay/random_numbers.hpp"
#include "tool/transcript/header.hpp"
#include "tool/transcript/reader.hpp"
#include "tool/transcript/transcript_file.hpp"
#include "tool/transcript/writer.hpp"

namespace kclxx::tool {

namespace {

using namespace std::chrono_literals;
using transcript::entry_kind;

struct generate_options {
  std::string directory;
  stream_shape stream;
  record_shape record;
  std::uint64_t batch = 1000;
  std::string size = "1024";
  std::string payloads;  // a file's name
  std::string end = "shutdown";
  std::uint64_t seed = 1;
};

// The same for every run, so that the same seed gives the same bytes.
constexpr std::chrono::sys_days first_day = std::chrono::year(2026) / 1 / 1;
constexpr auto epoch_length = std::chrono::hours(1);  // between two reshardings
constexpr auto batch_interval = 1s;                   // as the daemon's idleTimeBetweenReads

constexpr std::uint64_t max_size = 10'485'760;  // what Kinesis allows

void read_size(const std::string& text, record_shape& shape) {
  const std::size_t dots = text.find("..");
  const auto number = [&](const std::string& digits) {
    if (digits.empty() || digits.size() > 8 ||
        digits.find_first_not_of("0123456789") != std::string::npos ||
        std::stoull(digits) > max_size) {
      throw CLI::ValidationError("--size", "\"" + text +
                                               "\" is neither a number of bytes nor a range like "
                                               "100..2000; the most is 10485760");
    }
    return std::stoull(digits);
  };
  shape.smallest = number(text.substr(0, dots));
  shape.largest = dots == std::string::npos ? shape.smallest : number(text.substr(dots + 2));
  if (shape.smallest > shape.largest) {
    throw CLI::ValidationError("--size", "the range " + text + " is empty");
  }
}

/// The lines of a file that are not blank, without their ends.
std::vector<std::string> read_payloads(const std::string& name) {
  std::istringstream lines(text_of_file(name));
  std::vector<std::string> payloads;
  std::uint64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.size() > max_size) {
      cannot_set_up(name + ":" + std::to_string(number) +
                    " is too long: a record has at most 10485760 bytes");
    }
    if (!line.empty()) payloads.push_back(std::move(line));
  }
  if (payloads.empty()) cannot_set_up(name + " has no line with a payload");
  return payloads;
}

void use_payloads(const std::string& name, record_shape& shape) {
  shape.payloads = read_payloads(name);
  const auto by_size = [](const std::string& one, const std::string& other) {
    return one.size() < other.size();
  };
  shape.smallest = shape.largest =
      std::max_element(shape.payloads.begin(), shape.payloads.end(), by_size)->size();
}

// An aggregate is never split between batches.
std::uint64_t whole_batch(const generate_options& options) {
  const std::uint64_t whole = options.record.aggregate;
  return (options.batch + whole - 1) / whole * whole;
}

// A longer line could be written but not be read again.
void check_line_length(const generate_options& options) {
  constexpr std::uint64_t other_fields = 256;  // at most, of one record
  const std::uint64_t records = std::min(whole_batch(options), options.stream.records);
  const std::uint64_t record = (options.record.largest + 2) / 3 * 4 + other_fields;
  if (records * record <= transcript::reader::default_max_line) return;
  throw command_error(exit_status::usage,
                      "--batch and --size: a batch of " + std::to_string(records) +
                          " records can be a line of more than 1 GiB, which nothing reads");
}

std::string file_of(const generate_options& options, const generated_shard& shard) {
  return options.directory + "/" + shard.id() + ".jsonl";
}

/// Writes the file of one shard.
class shard_writer {
 public:
  shard_writer(const generate_options& options, const generated_shard& shard)
      : options_(options),
        shard_(shard),
        started_(first_day + epoch_length * shard.born_in),
        file_(file_of(options, shard)),
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
    const std::uint64_t batch = whole_batch(options_);
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
    if (shard_.is_closed || options_.end == "shard-end") {
      write_line(daemon_model::action_line(protocol::action_kind::shard_ended));
    } else if (options_.end == "shutdown") {
      write_line(daemon_model::action_line(protocol::action_kind::shutdown_requested));
      write_line(daemon_model::action_line(protocol::action_kind::lease_lost));
    } else if (options_.end == "lease-lost") {
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

  const generate_options& options_;
  const generated_shard& shard_;
  std::chrono::system_clock::time_point started_;
  output_file file_;
  transcript::writer writer_;
  std::chrono::microseconds at_{0};
  std::string line_;  // kept for its memory
};

// Before an hour of writing.
void check_names(const generate_options& options, const std::vector<generated_shard>& shards) {
  for (const generated_shard& shard : shards) {
    const std::string name = file_of(options, shard);
    std::error_code unknown;
    if (std::filesystem::exists(std::filesystem::symlink_status(name, unknown))) {
      cannot_set_up(name + " cannot be made: " + std::strerror(EEXIST));
    }
  }
}

void write_files(const generate_options& options, const std::vector<generated_shard>& shards,
                 const record_texts& texts, replay::random_numbers& random) {
  std::vector<std::string> made;
  try {
    for (const generated_shard& shard : shards) {
      generated_records records(shard, texts, replay::random_numbers(random.next()));
      shard_writer(options, shard).write(records);
      made.push_back(file_of(options, shard));
    }
  } catch (...) {
    std::error_code ignored;
    for (const std::string& name : made) std::filesystem::remove(name, ignored);
    throw;
  }
}

void generate(const generate_options& options) {
  check_line_length(options);
  install_signal_handlers(ignored_signals::stay_ignored);
  replay::random_numbers random(options.seed);
  std::vector<generated_shard> shards;
  try {
    shards = generate_shards(options.stream, random);
  } catch (const std::invalid_argument& error) {
    throw command_error(exit_status::usage, std::string("--keys: ") + error.what());
  }
  const record_texts texts(options.record, random);
  const bool is_new = make_directory(options.directory);
  check_names(options, shards);
  try {
    write_files(options, shards, texts, random);
  } catch (...) {
    std::error_code ignored;
    if (is_new) std::filesystem::remove(options.directory, ignored);
    throw;
  }
}

/// Adds an option for a whole number from `least` to `most`.
template <class Number>
void add_number(CLI::App& command, const std::string& name, Number& to, std::uint64_t least,
                std::uint64_t most, const std::string& text) {
  command.add_option(name, to, text)
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_between(least, most));
}

void add_options(CLI::App& command, generate_options& to) {
  constexpr std::uint64_t most_records = 1'000'000'000'000;
  command.add_option("--output", to.directory, "The directory; created if it does not exist")
      ->required()
      ->type_name("DIR");
  add_number(command, "--shards", to.stream.shards, 1, 10'000, "Shards at the beginning");
  add_number(command, "--records", to.stream.records, 0, most_records, "Records in total");
  add_number(command, "--batch", to.batch, 1, 10'000, "Records in one processRecords");
  auto* const size =
      command
          .add_option("--size", to.size,
                      "Bytes of data: one number, or a range such as 1..2000, evenly distributed")
          ->capture_default_str()
          ->type_name("BYTES");
  command
      .add_option("--data", to.payloads,
                  "A file with a payload in each line: the records' data, in turn")
      ->type_name("FILE")
      ->excludes(size);
  add_number(command, "--keys", to.stream.keys, 1, 10'000'000, "Distinct partition keys");
  add_number(command, "--aggregate", to.record.aggregate, 1, 10'000,
             "User records with the same sequence number");
  add_number(command, "--reshard", to.stream.reshardings, 0, 10'000,
             "How often a shard is split, or two are merged");
  command
      .add_option("--end", to.end,
                  "How the shards that are still open end: shutdown, lease-lost, "
                  "shard-end or none")
      ->capture_default_str()
      ->type_name("HOW")
      ->check(CLI::IsMember({"shutdown", "lease-lost", "shard-end", "none"}).description(""));
  add_number(command, "--seed", to.seed, 0, most_records, "The same seed produces the same bytes");
}

}  // namespace

void add_generate_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"generate",
       "Writes transcripts with invented records: the daemon's side, one file for each shard.",
       "kclxx generate --output made --shards 2 --records 100000 --size 100..2000 --reshard 1\n"
       "  kclxx generate --output views --records 1000 --data views.jsonl"},
      child_use::none, run);
  auto options = std::make_shared<generate_options>();
  add_options(command, *options);
  command.callback([options] {
    read_size(options->size, options->record);
    if (!options->payloads.empty()) use_payloads(options->payloads, options->record);
    options->record.keys = options->stream.keys;
    generate(*options);
  });
}

}  // namespace kclxx::tool
