// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/effect_files.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include <boost/algorithm/string/replace.hpp>

#include "tool/command_error.hpp"

namespace kclxx::replay {

namespace fs = std::filesystem;

namespace {

void read_lines(const fs::path& file, const std::string& prefix, effect_lines& lines) {
  std::ifstream in(file, std::ios::binary);
  if (!in) tool::cannot_set_up(file.string() + " cannot be opened");
  for (std::string line; std::getline(in, line);) ++lines[prefix + line];
}

/// Adds what `source` has more often than `other`.
void add_surplus(const effect_lines& source, const effect_lines& other, std::uint64_t& count,
                 std::vector<std::string>& first) {
  for (const auto& [line, times] : source) {
    const auto found = other.find(line);
    const std::uint64_t there = found == other.end() ? 0 : found->second;
    for (std::uint64_t i = there; i < times; ++i) {
      ++count;
      if (first.size() < effect_comparison::most_kept) first.push_back(line);
    }
  }
}

}  // namespace

effect_lines read_effects(const fs::path& folder) {
  effect_lines lines;
  if (!fs::is_directory(folder)) {
    read_lines(folder, "", lines);
    return lines;
  }
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    read_lines(entry.path(), entry.path().lexically_relative(folder).string() + ": ", lines);
  }
  return lines;
}

effect_comparison compare_effects(const effect_lines& without_faults,
                                  const effect_lines& with_faults) {
  effect_comparison result;
  add_surplus(without_faults, with_faults, result.lost_count, result.lost);
  add_surplus(with_faults, without_faults, result.extra_count, result.extra);
  for (const auto& [line, times] : with_faults) result.same += times;
  result.same -= result.extra_count;
  return result;
}

effect_directories::effect_directories() {
  std::string name = (fs::temp_directory_path() / "kclxx-effects-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), name + " cannot be made");
  }
  root_ = name;
  fs::create_directory(without_faults());
  fs::create_directory(with_faults());
}

effect_directories::~effect_directories() {
  std::error_code ignored;
  if (!is_kept_) fs::remove_all(root_, ignored);
}

std::string effect_directories::keep() {
  is_kept_ = true;
  return root_.string();
}

std::string effect_directories::replaced(const std::string& text, const fs::path& directory) {
  return boost::replace_all_copy(text, placeholder, directory.string());
}

}  // namespace kclxx::replay
