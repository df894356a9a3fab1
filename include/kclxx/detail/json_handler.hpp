// SPDX-License-Identifier: Apache-2.0
// The forms that a handler of values may have, and how each is called.
#pragma once

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/record.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::detail {

template <class Function, class Value>
concept handles_json_record =
    is_procedure_of<Function, Value> || is_procedure_of<Function, Value, const record&> ||
    is_procedure_of<Function, Value, const record&, const shard_context&>;
template <class Function, class Value>
concept handles_json = handles_json_record<Function, Value>;
template <class Function, class Value>
concept makes_json_handler = std::is_invocable_v<Function&, const shard_context&> &&
    handles_json<std::invoke_result_t<Function&, const shard_context&>, Value>;

/// Errors: permanent_error; std::bad_alloc.
template <class Value>
Value parse_json(const record& from) {
  try {
    return nlohmann::json::parse(from.data()).template get<Value>();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const nlohmann::json::parse_error& error) {
    std::string text = error.what();  // with a part of the data, which may be no text
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    throw permanent_error(text);
  } catch (const std::exception& error) {
    throw permanent_error(error.what());
  }
}

/// Parses, and calls the function with what its form asks for.
/// Errors: permanent_error; what the function throws.
template <class Value, class Function>
void call_with_json(Function& function, const record& from, const shard_context& shard) {
  auto value = parse_json<Value>(from);
  if constexpr (is_procedure_of<Function, Value>) {
    static_cast<void>(shard);
    function(std::move(value));
  } else if constexpr (is_procedure_of<Function, Value, const record&>) {
    static_cast<void>(shard);
    function(std::move(value), from);
  } else {
    function(std::move(value), from, shard);
  }
}

}  // namespace kclxx::detail
