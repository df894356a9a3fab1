// SPDX-License-Identifier: Apache-2.0
// What one writes in C++ without a client: std::getline, a JSON document of the whole line, a
// base64 decoder, a checkpoint line for each batch.
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;

std::string decode_base64(std::string_view text) {
  static const std::array<std::uint8_t, 256> values = [] {
    std::array<std::uint8_t, 256> to{};
    constexpr std::string_view alphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
      to[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
    }
    return to;
  }();
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    bits = bits << 6U | values[static_cast<unsigned char>(c)];
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> static_cast<unsigned>(count)));
    }
  }
  return bytes;
}

void write(const json& message) { std::cout << '\n' << message.dump() << std::endl; }

/// True when the daemon has persisted it.
bool checkpoint(const json& sequence_number, const json& sub_sequence_number) {
  write({{"action", "checkpoint"},
         {"sequenceNumber", sequence_number},
         {"subSequenceNumber", sub_sequence_number}});
  std::string line;
  return std::getline(std::cin, line) && json::parse(line).at("error").is_null();
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::size_t bytes = 0;
  std::string line;
  while (std::getline(std::cin, line)) {
    const json message = json::parse(line);
    const std::string action = message.at("action");
    if (action == "processRecords") {
      const json& records = message.at("records");
      for (const json& record : records) {
        bytes += decode_base64(record.at("data").get_ref<const std::string&>()).size();
      }
      if (!records.empty()) {
        const json& last = records.back();
        checkpoint(last.at("sequenceNumber"), last.at("subSequenceNumber"));
      }
    } else if (action == "shutdownRequested") {
      checkpoint(nullptr, nullptr);
    } else if (action == "shardEnded" && !checkpoint(nullptr, nullptr)) {
      return 1;  // reporting success would lose the shard's children
    }
    write({{"action", "status"}, {"responseFor", action}});
  }
  std::cerr << bytes << " bytes\n";
}
