// SPDX-License-Identifier: Apache-2.0
// Any bytes may come as a line: they are understood, or refused with a reason; and what is
// understood stays within its memory and means the same when it is written again.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon_model/lines.hpp"
#include "fuzz/expect.hpp"
#include "support/decoded_line.hpp"

namespace {

using namespace kclxx;

std::size_t touch(const std::vector<record>& records) {
  std::size_t sum = 0;
  for (const record& one : records) {
    for (const char c : one.data()) sum += static_cast<unsigned char>(c);
    for (const char c : one.partition_key().value_or("")) sum += static_cast<unsigned char>(c);
    sum += one.position().sequence_number().size();
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static protocol::decoder decoder;  // as in production it meets one line after another
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  if (line.find('\n') != std::string_view::npos) return 0;  // the line reader's business
  const test::decoded_line first(line, decoder);
  if (first.is_error()) {
    expect(!first.error().problem.empty(), "a refusal has a reason");
    return 0;
  }
  expect(touch(first.batch) != ~std::size_t{0}, "every view can be read");
  const auto* batch = std::get_if<protocol::process_records>(&first.message().body);
  expect(batch != nullptr || first.batch.empty(), "only processRecords has records");
  if (batch == nullptr) return 0;
  const std::string again = daemon_model::process_records_line(
      first.batch, batch->millis_behind_latest
                       ? std::optional(std::int64_t{batch->millis_behind_latest->count()})
                       : std::nullopt);
  const test::decoded_line second(again, decoder);
  expect(!second.is_error(), "what was understood is again");
  expect(test::difference(first.batch, second.batch).empty(), "the same records");
  return 0;
}
