// SPDX-License-Identifier: Apache-2.0
// Handlers that take a value of the program's own type, from records that are JSON. It needs
// nlohmann_json, 3.11 or newer: find_package(nlohmann_json), nlohmann_json::nlohmann_json.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <type_traits>
#include <utility>

#include <kclxx/detail/json_handler.hpp>
#include <kclxx/json_batch.hpp>  // IWYU pragma: export
#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx {

/// A handler of records whose data is JSON in UTF-8, from a function that takes the value in it:
///
///     struct page_view {
///       std::string page;
///       std::uint64_t at;
///     };
///     NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(page_view, page, at)
///
///     kclxx::each(kclxx::json<page_view>([](const page_view& view) { count(view); }), policy);
///     kclxx::batches(kclxx::json<page_view>([](kclxx::json_batch<page_view> views) {
///       for (const auto& [view, record] : views) count(view);
///     }), policy);
///
/// `Value` is what nlohmann::json::get makes: a type with from_json, or nlohmann::json itself. The
/// function has one of these forms, and returns nothing:
///
/// - `(Value)`
/// - `(Value, const record&)`
/// - `(Value, const record&, const shard_context&)`
/// - for `batches`: `(json_batch<Value>)` or `(json_batch<Value>, const shard_context&)`
/// - `(const shard_context&) -> Function`: as for basic_handler
///
/// Data that is not JSON, has more than 1024 levels of values, or makes from_json throw a
/// std::exception other than std::bad_alloc, is a permanent_error with its text. So is a number
/// that its field cannot hold: -1 or 1.5 as an unsigned, 1e39 as a float. That needs a to_json of
/// `Value`, which the macros above define, and which is the inverse of from_json. Without one,
/// numbers convert as with static_cast.
///
/// In `batches` the function gets the other values, unless there are none. Then a batch_failure
/// names the records that did not parse, and those of a batch_failure that the function threw.
/// With order::key the handler gets the later values of these records' keys again.
///
/// Errors: std::invalid_argument for an empty function; what moving or copying the function throws.
/// Thread safety: as the function.
template <class Value, class Function>
requires(detail::handles_json<std::decay_t<Function>, Value> ||
         detail::makes_json_handler<std::decay_t<Function>, Value>)
    [[nodiscard]] auto json(Function&& function) {
  using stored = std::decay_t<Function>;
  detail::require_function<stored>(function);
  if constexpr (detail::handles_json<stored, Value>) {
    using subject = std::conditional_t<detail::handles_json_record<stored, Value>, const record&,
                                       const record_batch&>;
    return [call = stored(std::forward<Function>(function))](subject source,
                                                             const shard_context& shard) mutable {
      detail::call_with_json<Value>(call, source, shard);
    };
  } else {
    return [make = stored(std::forward<Function>(function))](const shard_context& shard) mutable {
      return json<Value>(make(shard));
    };
  }
}

}  // namespace kclxx
