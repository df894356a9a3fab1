// SPDX-License-Identifier: Apache-2.0
#include "batch_line.hpp"

#include <random>

#include "protocol/base64.hpp"

namespace kclxx::bench {

namespace {

void append_random_base64(std::string& to, std::size_t bytes, std::mt19937& random) {
  const auto append = [&](unsigned characters, std::uint32_t bits) {
    for (unsigned i = 0; i < characters; ++i) {
      to += protocol::base64_alphabet[bits >> (18U - 6U * i) & 63U];
    }
    to.append(4 - characters, '=');
  };
  for (; bytes >= 3; bytes -= 3) append(4, random() & 0xFFFFFFU);
  if (bytes == 2) append(3, random() & 0xFFFF00U);
  if (bytes == 1) append(2, random() & 0xFF0000U);
}

}  // namespace

std::string batch_line(std::size_t records, std::size_t bytes) {
  std::mt19937 random(1);  // the same data in every run
  std::string text = R"({"action":"processRecords","records":[)";
  for (std::size_t i = 0; i < records; ++i) {
    text += i == 0 ? R"({"data":")" : R"(,{"data":")";
    append_random_base64(text, bytes, random);
    text += R"(","partitionKey":"key-)" + std::to_string(random() % 100'000);
    text += R"(","sequenceNumber":"495903382714902566085596925383615710959)";
    text += std::to_string(10'000'000'000'000'000 + i);
    text += R"(","approximateArrivalTimestamp":1763700000000,"subSequenceNumber":0,)";
    text += R"("action":"record"})";
  }
  return text + R"(],"millisBehindLatest":0})";
}

std::string spaced_batch_line(std::size_t records, std::size_t bytes) {
  std::string text = "{ ";
  return text.append(batch_line(records, bytes), 1);
}

}  // namespace kclxx::bench
