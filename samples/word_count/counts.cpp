// SPDX-License-Identifier: Apache-2.0
#include "counts.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "disk.hpp"

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

counts::counts(std::filesystem::path file) : file_(std::move(file)) {
  if (std::filesystem::exists(file_)) read();
}

void counts::read() {
  std::ifstream in(file_);
  const auto damaged = [&](const std::string& what) {
    return std::runtime_error(file_.string() + " is damaged: " + what);
  };
  std::string key;
  std::string sequence_number;
  std::uint64_t sub_sequence_number = 0;
  if (!(in >> key >> sequence_number >> sub_sequence_number) || key != "position") {
    throw damaged("no position in the first line");
  }
  position_ = kclxx::sequence_position(sequence_number, sub_sequence_number);
  if (!(in >> key >> records_) || key != "records") {
    throw damaged("no number of records in the second line");
  }
  for (std::uint64_t count = 0; in >> key;) {
    if (!(in >> count)) throw damaged("no count for the word " + key);
    words_[key] = count;
  }
}

void counts::add(std::string_view text, const kclxx::sequence_position& position) {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) ++words_[word];
    word.clear();
  };
  for (const char c : text) {
    if (is_letter(c)) {
      word += static_cast<char>(c | 0x20);
    } else {
      end_word();
    }
  }
  end_word();
  ++records_;
  position_ = position;
}

void counts::write() const {
  std::ostringstream text;
  text << "position\t" << position_.sequence_number() << "\t" << position_.sub_sequence_number()
       << "\nrecords\t" << records_ << "\n";
  for (const auto& [word, count] : words_) text << word << "\t" << count << "\n";
  disk::replace(file_, text.str());
}
