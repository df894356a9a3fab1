// SPDX-License-Identifier: Apache-2.0
// Handlers that take a value of the program's own type, from records that are JSON. It needs
// nlohmann_json, 3.11 or newer: find_package(nlohmann_json), nlohmann_json::nlohmann_json.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <kclxx/detail/json_handler.hpp>
#include <kclxx/json_batch.hpp>  // IWYU pragma: export
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/processor_factory.hpp>
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
/// function has one of these forms, and returns nothing, or an awaitable of nothing:
///
/// - `(Value)`
/// - `(Value, const record&)`
/// - `(Value, const record&, const shard_context&)`
/// - for `batches`: `(json_batch<Value>)` or `(json_batch<Value>, const shard_context&)`
/// - for the `parallel` of an async_record_handler: `(Value, completion)` or `(Value, completion,
///   const shard_context&)`
/// - for asio::parallel one of the first three, as a coroutine. It may take the value by reference.
/// - `(const shard_context&) -> Function`: as for basic_handler
///
/// Data that is not JSON, has more than 1024 levels of values, or makes from_json throw a
/// std::exception other than std::bad_alloc, is a permanent_error with its text. The value is what
/// from_json makes: nlohmann's converts numbers as static_cast does, so integers narrow (4294967297
/// becomes 1 in a std::uint32_t). Three lines of a from_json refuse that:
///
///     const auto& count = value.at("count");
///     if (!count.is_number_unsigned() || count > UINT32_MAX) throw std::out_of_range("count");
///     count.get_to(result.count);
///
/// In `batches` the function gets the other values, unless there are none. Then a batch_failure
/// names the records that did not parse, and those of a batch_failure that the function threw.
/// With order::key the handler gets the later values of these records' keys again.
///
/// Errors: what moving or copying the function throws. With an empty function no form makes a valid
/// factory.
/// Thread safety: as the function.
template <class Value, class Function>
requires(detail::handles_json<std::decay_t<Function>, Value> ||
         detail::makes_json_handler<std::decay_t<Function>, Value>)
    [[nodiscard]] auto json(Function&& function) {
  using stored = std::decay_t<Function>;
  const bool is_there = !detail::is_empty_function<stored>(function);
  auto handler = detail::with_values<Value>(
      std::make_shared<stored>(std::forward<Function>(function)), detail::parse_json<Value>);
  return detail::json_handler<decltype(handler)>{std::move(handler), is_there};
}

/// A handler for `parallel` or asio::parallel, as above, with a function that takes the key of
/// order::key from the value, in place of parallel_options::key:
///
///     kclxx::parallel(kclxx::json<page_view>(count, [](const page_view& view) {
///       return view.page;
///     }), policy);
///
/// A record is parsed once, when it is delivered, and the value is in memory until its handler
/// runs; a retry parses again. Data that is no such value has its partition key. `key` is called as
/// parallel_options::key.
///
/// Errors: as above. `parallel` makes no valid factory if its options have a key, too.
template <class Value, class Function, class Key>
requires((detail::handles_json<std::decay_t<Function>, Value> ||
          detail::makes_json_handler<std::decay_t<Function>, Value>)&&std::
             is_invocable_r_v<std::string, std::decay_t<Key>&, const Value&>)
    [[nodiscard]] auto json(Function&& function, Key&& key) {
  using stored = std::decay_t<Function>;
  using stored_key = std::decay_t<Key>;
  return detail::keyed_json<Value, stored, stored_key>(
      std::make_shared<stored>(std::forward<Function>(function)),
      std::make_shared<stored_key>(std::forward<Key>(key)));
}

/// `parallel` by a key of the values; see json().
/// Errors: as `parallel` of a record_handler.
template <class Value, class Function, class Key>
[[nodiscard]] processor_factory parallel(const detail::keyed_json<Value, Function, Key>& handler,
                                         failure_policy policy = {},
                                         parallel_options options = {}) {
  return handler.factory(std::move(options), [policy = std::move(policy)](auto of_shard, auto own) {
    return parallel(std::move(of_shard), policy, std::move(own));
  });
}

}  // namespace kclxx
