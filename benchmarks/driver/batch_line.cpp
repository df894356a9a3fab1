// SPDX-License-Identifier: Apache-2.0
#include "batch_line.hpp"

#include <chrono>
#include <cstring>
#include <new>
#include <random>
#include <string>

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"

namespace bench {
namespace {

// 56 digits, as Kinesis has them: these, eight of the batch, eight of the record.
constexpr std::string_view sequence_prefix = "4959033827149025660855969253836157109592";
constexpr std::size_t counter_digits = 8;
constexpr std::size_t page = 4096;

std::string digits(std::uint64_t number) {
  std::string text = std::to_string(number);
  return text.insert(0, counter_digits - text.size(), '0');
}

std::string random_bytes(std::size_t count, std::mt19937& random) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// What the views of the records need.
struct texts {
  std::string data, partition_key, sequence_number;
};

std::string first_line(std::size_t records, std::size_t bytes) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same data in every run
  std::vector<texts> all;
  for (std::size_t i = 0; i < records; ++i) {
    all.push_back({random_bytes(bytes, random), "key-" + digits(random() % 100'000),
                   std::string(sequence_prefix) + digits(0) + digits(i)});
  }
  std::vector<kclxx::record> batch;
  for (const texts& one : all) {
    kclxx::record::fields fields;
    fields.data = one.data;
    fields.partition_key = one.partition_key;
    fields.sequence_number = one.sequence_number;
    fields.approximate_arrival_timestamp = std::chrono::milliseconds(1'763'700'000'000);
    batch.emplace_back(fields);
  }
  return kclxx::daemon_model::process_records_line(batch, 0) + '\n';
}

}  // namespace

batch_line::batch_line(std::size_t records, std::size_t bytes) : payload_(records * bytes) {
  const std::string text = first_line(records, bytes);
  for (std::size_t at = 0; (at = text.find(sequence_prefix, at)) != std::string::npos;) {
    at += sequence_prefix.size();
    batch_digits_.push_back(at);
  }
  size_ = text.size();
  text_.reset(static_cast<char*>(std::aligned_alloc(page, (size_ + page - 1) / page * page)));
  if (!text_) throw std::bad_alloc();
  text.copy(text_.get(), size_);
}

void batch_line::renumber(std::uint64_t batch) {
  const std::string text = digits(batch);
  for (const std::size_t at : batch_digits_)
    std::memcpy(text_.get() + at, text.data(), text.size());
}

std::string_view batch_line::last_sequence_number() const noexcept {
  if (batch_digits_.empty()) return {};
  return text().substr(batch_digits_.back() - sequence_prefix.size(),
                       sequence_prefix.size() + 2 * counter_digits);
}

}  // namespace bench
