#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include <kclxx/json.hpp>
#include <kclxx/processing.hpp>

#include "processor.hpp"

/// What a record has, as JSON.
struct page_view {
  std::string page;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(page_view, page)

kclxx::processor_factory make_processor() {
  // The record is complete once this returns. When it throws, it is called again until it succeeds.
  // A record that is no page_view is stored in a file in KCLXX_PARKING_DIR, and the next one
  // follows.
  return kclxx::each(kclxx::json<page_view>([](const page_view& view) {
                       std::cout << "got a page of " << view.page.size() << " bytes\n";
                     }),
                     {.bad_record = kclxx::bad_record::park});
}
