// SPDX-License-Identifier: Apache-2.0
#include "batch_line.hpp"

#include <array>
#include <cstring>
#include <new>
#include <random>
#include <string>

namespace bench {
namespace {

// 56 digits, as Kinesis has them: these, eight of the batch, eight of the record.
constexpr std::string_view sequence_prefix = "4959033827149025660855969253836157109592";
constexpr std::size_t counter_digits = 8;
constexpr std::size_t page = 4096;

std::array<char, counter_digits> digits(std::uint64_t number) {
  std::array<char, counter_digits> text{};
  for (std::size_t i = counter_digits; i-- > 0; number /= 10) {
    text[i] = static_cast<char>('0' + number % 10);
  }
  return text;
}

void append_digits(std::string& to, std::uint64_t number) {
  const auto text = digits(number);
  to.append(text.data(), text.size());
}

void append_random_base64(std::string& to, std::size_t bytes, std::mt19937& random) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto append = [&](unsigned characters, std::uint32_t bits) {
    for (unsigned i = 0; i < characters; ++i) to += alphabet[bits >> (18U - 6U * i) & 63U];
    to.append(4 - characters, '=');
  };
  for (; bytes >= 3; bytes -= 3) append(4, random() & 0xFFFFFFU);
  if (bytes == 2) append(3, random() & 0xFFFF00U);
  if (bytes == 1) append(2, random() & 0xFF0000U);
}

}  // namespace

batch_line::batch_line(std::size_t records, std::size_t bytes) : payload_(records * bytes) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same data in every run
  std::string text = R"({"action":"processRecords","records":[)";
  for (std::size_t i = 0; i < records; ++i) {
    text += R"({"action":"record","data":")";
    append_random_base64(text, bytes, random);
    text += R"(","partitionKey":"key-)";
    append_digits(text, random() % 100'000);
    text += R"(","sequenceNumber":")";
    text += sequence_prefix;
    batch_digits_.push_back(text.size());
    append_digits(text, 0);
    append_digits(text, i);
    text += R"(","approximateArrivalTimestamp":1763700000000,"subSequenceNumber":0},)";
  }
  if (records > 0) text.pop_back();
  text += "],\"millisBehindLatest\":0}\n";
  size_ = text.size();
  text_.reset(static_cast<char*>(std::aligned_alloc(page, (size_ + page - 1) / page * page)));
  if (!text_) throw std::bad_alloc();
  text.copy(text_.get(), size_);
}

void batch_line::renumber(std::uint64_t batch) {
  const auto text = digits(batch);
  for (const std::size_t at : batch_digits_)
    std::memcpy(text_.get() + at, text.data(), text.size());
}

std::string_view batch_line::last_sequence_number() const noexcept {
  if (batch_digits_.empty()) return {};
  return text().substr(batch_digits_.back() - sequence_prefix.size(),
                       sequence_prefix.size() + 2 * counter_digits);
}

}  // namespace bench
