// SPDX-License-Identifier: Apache-2.0
// The look of the page of --report: one file that needs nothing from anywhere.
#pragma once

#include <iosfwd>
#include <string_view>

namespace kclxx::tool {

/// Up to and with the page's heading, which is its title. `style`: the CSS of this kind of page.
void begin_page(std::ostream& out, std::string_view title, std::string_view style);
void end_page(std::ostream& out);

}  // namespace kclxx::tool
