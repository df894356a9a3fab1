// SPDX-License-Identifier: Apache-2.0
#include "counts.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

void write_to_disk(const std::filesystem::path& file, const std::string& text) {
  const auto fail = [&](const char* step) {
    throw std::system_error(errno, std::generic_category(), step + (" " + file.string()));
  };
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd == -1) fail("cannot open");
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(fd, text.data() + written, text.size() - written);
    if (n == -1 && errno != EINTR) fail("cannot write");
    if (n > 0) written += static_cast<std::size_t>(n);
  }
  if (::fsync(fd) == -1) fail("cannot sync");
  if (::close(fd) == -1) fail("cannot close");
}

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
  position_.emplace(sequence_number, sub_sequence_number);
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

void counts::flush() const {
  if (!position_) return;
  std::ostringstream text;
  text << "position\t" << position_->sequence_number() << "\t" << position_->sub_sequence_number()
       << "\nrecords\t" << records_ << "\n";
  for (const auto& [word, count] : words_) text << word << "\t" << count << "\n";
  auto next = file_;
  next += ".new";
  write_to_disk(next, text.str());
  std::filesystem::rename(next, file_);
}
