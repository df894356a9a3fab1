// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/kcl_version.hpp"

#include <array>
#include <charconv>
#include <regex>

namespace kclxx::tool {

kcl_parts tested_parts(kcl_version kcl) {
  static constexpr std::array<kcl_parts, 3> all{
      {{"1.15.3", "1.15.3"}, {"2.7.2", "2.5.4"}, {"3.5.1", "3.1.3"}}};
  return all.at(static_cast<std::size_t>(kcl) - 1);
}

std::optional<kcl_choice> kcl_choice::parse(std::string_view text) {
  static const std::regex allowed("[123](\\.[0-9]{1,4}\\.[0-9]{1,4})?");
  if (!std::regex_match(text.begin(), text.end(), allowed)) return std::nullopt;
  const auto which = static_cast<kcl_version>(text.front() - '0');
  const bool is_tested = text.size() == 1 || text == tested_parts(which).core;
  return kcl_choice{which, is_tested ? "" : std::string(text)};
}

std::string_view kcl_choice::core_version() const {
  return core.empty() ? tested_parts(which).core : core;
}

std::string kcl_choice::text() const {
  return core.empty() ? std::to_string(static_cast<int>(which)) : core;
}

std::strong_ordering compare_versions(std::string_view one, std::string_view other) {
  const auto next = [](std::string_view& left) {
    int number = 0;
    const auto end = std::from_chars(left.data(), left.data() + left.size(), number).ptr;
    left.remove_prefix(static_cast<std::size_t>(end - left.data()));
    if (!left.empty()) left.remove_prefix(1);
    return number;
  };
  while (!one.empty() || !other.empty()) {
    const auto order = next(one) <=> next(other);
    if (order != 0) return order;
  }
  return std::strong_ordering::equal;
}

std::string_view name_of(kcl_version kcl) {
  return kcl == kcl_version::kcl1 ? "KCL 1.x" : kcl == kcl_version::kcl2 ? "KCL 2.x" : "KCL 3.x";
}

std::string_view main_class(kcl_version kcl) {
  return kcl == kcl_version::kcl1 ? "com.amazonaws.services.kinesis.multilang.MultiLangDaemon"
                                  : "software.amazon.kinesis.multilang.MultiLangDaemon";
}

std::string_view main_jar(kcl_version kcl) {
  return kcl == kcl_version::kcl1 ? "amazon-kinesis-client-1." : "amazon-kinesis-client-multilang-";
}

const embedded::project& jars_of(kcl_version kcl) {
  return embedded::projects[static_cast<std::size_t>(kcl) - 1];
}

std::string_view logging_of(kcl_version kcl) {
  return kcl == kcl_version::kcl1 ? embedded::java_util_logging : embedded::logback;
}

}  // namespace kclxx::tool
