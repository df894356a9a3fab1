// SPDX-License-Identifier: Apache-2.0
// The least that a child can do: reads the lines without keeping them, takes the last sequence
// number from a batch's end, sends one checkpoint line, waits for the answer, and answers the
// action. Decodes nothing. With --unwaited checkpoint and status are one write, and the answer is
// skipped when it comes. It uses no part of the C++ library that has to be linked, so that it
// starts as fast as a process can.
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace {

constexpr std::size_t capacity = std::size_t{256} << 10;
// How much of the end of a long line is kept. A record's fields after its data are shorter.
constexpr std::size_t kept_end = 1024;

// The kernel's copy is fastest to the beginning of a page.
alignas(4096) std::array<char, capacity> buffer;
std::size_t line_begin = 0;  // where the kept bytes of the current line begin
std::size_t filled = 0;      // where the bytes end

/// The next line, or its last part when it is long, with the action's name from its beginning.
struct line {
  std::array<char, 32> name;
  std::string_view end;
};

void take_name(line& to, std::string_view text) {
  constexpr std::string_view before = R"({"action":")";
  to.name = {};
  if (text.substr(0, before.size()) != before) _exit(1);
  text.remove_prefix(before.size());
  const std::size_t size = text.find('"');
  if (size >= to.name.size()) _exit(1);
  std::memcpy(to.name.data(), text.data(), size);
}

bool read_line(line& to) {
  bool named = false;
  std::size_t searched = line_begin;
  while (true) {
    if (!named && filled - line_begin > 64) {
      take_name(to, {buffer.data() + line_begin, 64});
      named = true;
    }
    const void* found = std::memchr(buffer.data() + searched, '\n', filled - searched);
    if (found != nullptr) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - buffer.data());
      to.end = {buffer.data() + line_begin, end - line_begin};
      if (!named) take_name(to, to.end);
      line_begin = end + 1;
      return true;
    }
    if (line_begin == filled) {
      line_begin = filled = 0;
    } else if (filled > capacity / 2) {
      const std::size_t kept = filled - line_begin < kept_end ? filled - line_begin : kept_end;
      std::memmove(buffer.data(), buffer.data() + filled - kept, kept);
      line_begin = 0;
      filled = kept;
    }
    searched = filled;
    const ssize_t size = read(STDIN_FILENO, buffer.data() + filled, capacity - filled);
    if (size <= 0) return false;
    filled += static_cast<std::size_t>(size);
  }
}

void write_all(const char* text, int size) {
  if (write(STDOUT_FILENO, text, static_cast<std::size_t>(size)) != size) _exit(1);
}

constexpr std::size_t max_answer = 512;  // a checkpoint and a status

/// Appends the checkpoint of a batch; false when the batch is empty.
bool append_checkpoint(char* to, int& length, std::string_view batch_end) {
  constexpr std::string_view key = R"("sequenceNumber":")";
  const std::size_t at = batch_end.rfind(key);
  if (at == std::string_view::npos) return false;
  batch_end.remove_prefix(at + key.size());
  const auto size = static_cast<int>(batch_end.find('"'));
  length += std::snprintf(
      to + length, max_answer / 2,
      "\n{\"action\":\"checkpoint\",\"sequenceNumber\":\"%.*s\",\"subSequenceNumber\":0}\n", size,
      batch_end.data());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const bool unwaited = argc == 2 && std::strcmp(argv[1], "--unwaited") == 0;
#ifdef F_SETPIPE_SZ
  fcntl(STDIN_FILENO, F_SETPIPE_SZ, 1 << 20);  // refused by some hosts; then it stays as it is
#endif
  line next{};
  while (read_line(next)) {
    const std::array<char, 32> action = next.name;
    if (std::strcmp(action.data(), "checkpoint") == 0) continue;
    std::array<char, max_answer> text;
    int length = 0;
    if (std::strcmp(action.data(), "processRecords") == 0 &&
        append_checkpoint(text.data(), length, next.end) && !unwaited) {
      write_all(text.data(), length);
      length = 0;
      if (!read_line(next)) return 1;
    }
    length += std::snprintf(text.data() + length, max_answer / 2,
                            "\n{\"action\":\"status\",\"responseFor\":\"%s\"}\n", action.data());
    write_all(text.data(), length);
  }
  return 0;
}
