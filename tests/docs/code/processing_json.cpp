// SPDX-License-Identifier: Apache-2.0
// The program of docs/processing.md whose records are JSON.
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <kclxx/json.hpp>
#include <kclxx/kclxx.hpp>

struct page_view {
  std::string page;
  std::uint64_t at = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(page_view, page, at)

void count(const page_view& view);

int main() {
  return kclxx::run(
      kclxx::each(kclxx::json<page_view>(count), {.bad_record = kclxx::bad_record::park}));
}
