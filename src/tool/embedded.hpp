// SPDX-License-Identifier: Apache-2.0
// Files that the tool carries in itself, so that it works wherever it is copied to.
#pragma once

#include <span>
#include <string_view>

namespace kclxx::tool::embedded {

struct file {
  std::string_view name;
  std::string_view text;
};

/// What `kclxx new` writes, with {{name}} and the like to be replaced.
extern const std::span<const file> new_project;
extern const std::string_view aws_properties;

/// What `kclxx replay --report` writes, with {{data}} to be replaced.
extern const std::string_view report_page;

}  // namespace kclxx::tool::embedded
