// SPDX-License-Identifier: Apache-2.0
#include "tool/feed/feed_state.hpp"

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include "tool/command_error.hpp"
#include "tool/files.hpp"
#include "tool/lockstep/lockstep_daemon.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

/// A program may keep positions by the names of its shards for years, so two runs must not get the
/// same name by chance: it has 48 random bits.
constexpr std::size_t run_digits = 12;
constexpr std::string_view head = "kclxx feed 2\nrun ";
constexpr const char* hexadecimal = "0123456789abcdef";

}  // namespace

feed_state::feed_state(std::string folder, const std::string& division)
    : folder_(std::move(folder)), run_(random_digits(run_digits)) {
  if (!is_kept()) return;
  make_private_directory(folder_);
  const std::string name = folder_ + "/feed";
  lock_ = io::descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_.is_open()) cannot_set_up(name, "opened");
  require_own(name);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    cannot_set_up(folder_ + " is in use by another kclxx feed");
  }
  const std::string text = text_of_file(name);
  if (text.empty()) {
    const std::string content = std::string(head) + run_ + "\n" + division + "\n";
    const ssize_t size = ::write(lock_.get(), content.data(), content.size());
    if (size != static_cast<ssize_t>(content.size())) cannot_set_up(name, "written");
    return;
  }
  const std::string run = text.starts_with(head) ? text.substr(head.size(), run_digits) : "";
  const std::size_t line = head.size() + run_digits;
  if (run.size() != run_digits || run.find_first_not_of(hexadecimal) != std::string::npos ||
      text.size() < line + 2 || text[line] != '\n' || text.back() != '\n') {
    cannot_set_up(name + " is not of this version of kclxx feed: name another folder");
  }
  const std::string kept_division = text.substr(line + 1, text.size() - line - 2);
  if (kept_division != division) {
    throw command_error(command_status::usage,
                        folder_ + " has positions of another division: " + kept_division);
  }
  run_ = run;
}

std::string feed_state::name_of_shard(std::uint64_t number) const {
  return shard_name(number) + "-" + run_;
}

std::string feed_state::position_file(const std::string& shard) const {
  return folder_ + "/" + shard + ".position";
}

covered_lines feed_state::covered(const std::string& shard) const {
  const std::string name = position_file(shard);
  if (!is_kept() || !std::filesystem::exists(name)) return {};
  require_own(name);
  const std::string text = text_of_file(name);
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  const std::size_t blank = line.find(' ');
  std::uint64_t count = 0;
  std::uint64_t checksum = 0;
  if (blank == std::string_view::npos || line.size() == text.size() ||
      !read_number(line.substr(0, blank), count) ||
      !read_number(line.substr(blank + 1), checksum, 16)) {
    cannot_set_up(name + " has no position, but '" + text.substr(0, 100) + "'");
  }
  return {count, checksum};
}

void feed_state::store(const std::string& shard, const covered_lines& covered) const {
  if (!is_kept()) return;
  const std::string name = position_file(shard);
  char text[64];
  const int size = std::snprintf(text, sizeof text, "%llu %016llx\n",
                                 static_cast<unsigned long long>(covered.count),
                                 static_cast<unsigned long long>(covered.checksum));
  replace_file(name, {text, static_cast<std::size_t>(size)});
}

}  // namespace kclxx::tool
