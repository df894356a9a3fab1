// SPDX-License-Identifier: Apache-2.0
// What src/host/daemon believes, for Facts.java: "property_facts table N" prints the keys of KCL N,
// "property_facts files SEED" random properties files, and what the tool writes of each.
#include <iostream>
#include <random>
#include <string>
#include <string_view>

#include "host/daemon/properties.hpp"

using namespace kclxx::host;

namespace {

void print_table(kcl_version which) {
  for (const property_row& row : property_table()) {
    if (row.is_in(which)) std::cout << row.key << "\n";
  }
}

std::string hex(std::string_view bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    result.append({digits[byte >> 4U], digits[byte & 0xFU]});
  }
  return result;
}

void print_files(unsigned seed) {
  static const std::string pieces[] = {
      "\\",    "\\",   "\n",     "\n",      "\r", "\r\n", "=",       ":",       " ",
      "\t",    "\f",   "#",      "!",       "u",  "\\u",  "\\u00e9", "\\ud83d", "\\ude00",
      "\\u12", "\\t",  "n",      "key",     "a",  "1",    "\0",      "\v",      "\xe9",
      "\x80",  "\\\n", "\\\r\n", "\\\n  #", "=",  " ",    "\x85",    "F",       "\\\\"};
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    const auto length = random() % 24;
    for (auto piece = length; piece > 0; --piece) text += pieces[random() % std::size(pieces)];
    std::cout << "<" << hex(text) << "> ";
    try {
      std::cout << hex(write_properties(parse_properties(text))) << "\n";
    } catch (const properties_error&) {
      std::cout << "malformed\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "table") {
    print_table(static_cast<kcl_version>(std::stoi(argv[2])));
  } else if (what == "files") {
    print_files(static_cast<unsigned>(std::stoul(argv[2])));
  } else {
    std::cerr << "usage: property_facts table|files NUMBER\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
