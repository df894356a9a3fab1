// SPDX-License-Identifier: Apache-2.0
#include "batch_line.hpp"

#include <random>

#include "protocol/base64_encoder.hpp"

namespace kclxx::bench {

namespace {

std::string random_bytes(std::size_t count, std::mt19937& random) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace

std::string batch_line(std::size_t records, std::size_t bytes) {
  std::mt19937 random(1);  // the same data in every run
  std::string text = R"({"action":"processRecords","records":[)";
  for (std::size_t i = 0; i < records; ++i) {
    text += i == 0 ? R"({"data":")" : R"(,{"data":")";
    protocol::append_base64(text, random_bytes(bytes, random));
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
