// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tool/commands.hpp"
#include "tool/generate/generated_shards.hpp"
#include "tool/generate/generated_transcripts.hpp"
#include "tool/payloads.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/random_numbers.hpp"
#include "tool/transcript/reader.hpp"

namespace kclxx::tool {

namespace {

struct generate_options {
  std::string directory;
  stream_shape stream;
  dialogue_shape dialogue;
  std::string size = "1024";
  std::string payloads;  // a file's name
  std::string end = "shutdown";
  std::uint64_t seed = 1;
};

void read_size(const std::string& text, record_shape& shape) {
  const std::size_t dots = text.find("..");
  const auto number = [&](const std::string& digits) {
    if (digits.empty() || digits.size() > 8 ||
        digits.find_first_not_of("0123456789") != std::string::npos ||
        std::stoull(digits) > max_payload) {
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

void use_payloads(const std::string& name, record_shape& shape) {
  shape.payloads = read_payloads(name);
  const auto by_size = [](const std::string& one, const std::string& other) {
    return one.size() < other.size();
  };
  shape.smallest = shape.largest =
      std::max_element(shape.payloads.begin(), shape.payloads.end(), by_size)->size();
}

// A longer line could be written but not be read again.
void check_line_length(const dialogue_shape& shape, std::uint64_t all_records) {
  const std::uint64_t records = std::min(shape.whole_batch(), all_records);
  if (shape.longest_line(records) <= transcript::reader::default_max_line) return;
  throw command_error(exit_status::usage,
                      "--batch and --size: a batch of " + std::to_string(records) +
                          " records can be a line of more than 1 GiB, which nothing reads");
}

dialogue_end end_of(const std::string& name) {
  if (name == "lease-lost") return dialogue_end::lease_lost;
  if (name == "shard-end") return dialogue_end::shard_end;
  return name == "none" ? dialogue_end::none : dialogue_end::shutdown;
}

void generate(const generate_options& options) {
  check_line_length(options.dialogue, options.stream.records);
  install_signal_handlers(ignored_signals::stay_ignored);
  random_numbers random(options.seed);
  std::vector<generated_shard> shards;
  try {
    shards = generate_shards(options.stream, random);
  } catch (const std::invalid_argument& error) {
    throw command_error(exit_status::usage, std::string("--keys: ") + error.what());
  }
  write_transcripts(options.directory, options.dialogue, shards, random);
}

/// Adds an option for a whole number from `least` to `most`.
template <class Number>
void add_number(CLI::App& command, const std::string& name, Number& value, std::uint64_t least,
                std::uint64_t most, const std::string& text) {
  add_option(command, "N", name, value, text)
      ->capture_default_str()
      ->check(whole_number_between(least, most));
}

void add_options(CLI::App& command, generate_options& options) {
  constexpr std::uint64_t most_records = 1'000'000'000'000;
  add_option(command, "DIR", "--output", options.directory,
             "The directory; created if it does not exist")
      ->required();
  add_number(command, "--shards", options.stream.shards, 1, 10'000, "Shards at the beginning");
  add_number(command, "--records", options.stream.records, 0, most_records, "Records in total");
  add_number(command, "--batch", options.dialogue.batch, 1, 10'000,
             "Records in one processRecords");
  auto* const size =
      add_option(command, "BYTES", "--size", options.size,
                 "Bytes of data: one number, or a range such as 1..2000, evenly distributed")
          ->capture_default_str();
  add_option(command, "FILE", "--data", options.payloads,
             "A file with a payload in each line: the records' data, in turn")
      ->excludes(size);
  add_number(command, "--keys", options.stream.keys, 1, 10'000'000, "Distinct partition keys");
  add_number(command, "--aggregate", options.dialogue.record.aggregate, 1, 10'000,
             "User records with the same sequence number");
  add_number(command, "--reshard", options.stream.reshardings, 0, 10'000,
             "How often a shard is split, or two are merged");
  add_option(command, "HOW", "--end", options.end,
             "How the shards that are still open end: shutdown, lease-lost, "
             "shard-end or none")
      ->capture_default_str()
      ->check(CLI::IsMember({"shutdown", "lease-lost", "shard-end", "none"}).description(""));
  add_number(command, "--seed", options.seed, 0, most_records,
             "The same seed produces the same bytes");
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
    record_shape& record = options->dialogue.record;
    read_size(options->size, record);
    if (!options->payloads.empty()) use_payloads(options->payloads, record);
    record.keys = options->stream.keys;
    options->dialogue.end = end_of(options->end);
    generate(*options);
  });
}

}  // namespace kclxx::tool
