// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/effect_files.hpp"

#include <fstream>

#include <boost/algorithm/string/replace.hpp>

#include "tool/command_error.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

void read_lines(const fs::path& file, const std::string& prefix, effect_lines& lines) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw command_error(exit_status::setup_failed, file.string() + " cannot be opened");
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
  fs::create_directory(without_faults());
  fs::create_directory(with_faults());
}

std::string effect_directories::keep() {
  root_.keep();
  return root_.path().string();
}

std::string effect_directories::replaced(const std::string& text, const fs::path& directory) {
  return boost::replace_all_copy(text, placeholder, directory.string());
}

}  // namespace kclxx::tool
