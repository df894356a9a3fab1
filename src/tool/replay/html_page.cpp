// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/html_page.hpp"

#include <ostream>

#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

constexpr std::string_view shared_style = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #f5f7fa;
  margin: 0 auto; max-width: 1040px; padding: 24px; }
h1 { font-size: 24px; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 0 0 8px; overflow-wrap: anywhere; }
section { background: #fff; border: 1px solid #e1e6ec; border-radius: 8px;
  padding: 20px; margin: 20px 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 5px 10px; border-bottom: 1px solid #e8ecf1;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { font-weight: 600; color: #52606d; }
.scroll { overflow-x: auto; }
.ok { color: #0b7a4b; font-weight: 600; }
.bad { color: #b42318; font-weight: 600; }
ul { padding-left: 20px; }
li { margin: 6px 0; overflow-wrap: anywhere; }
code { background: #f5f7fa; padding: 1px 4px; border-radius: 4px; font-size: 13px; }
)";

}  // namespace

void begin_page(std::ostream& out, std::string_view title, std::string_view style) {
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>"
      << xml(title) << "</title>\n<style>" << shared_style << style
      << "</style>\n</head>\n<body>\n<h1>" << xml(title) << "</h1>\n";
}

void end_page(std::ostream& out) { out << "</body>\n</html>\n"; }

}  // namespace kclxx::tool
