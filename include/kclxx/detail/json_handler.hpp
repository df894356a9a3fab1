// SPDX-License-Identifier: Apache-2.0
// The forms that a handler of values may have, and how each is called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kclxx/json_batch.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::detail {

template <class Function, class Value>
concept handles_json_record =
    is_procedure_of<Function, Value> || is_procedure_of<Function, Value, const record&> ||
    is_procedure_of<Function, Value, const record&, const shard_context&>;
template <class Function, class Value>
concept handles_json_batch = handles<Function, json_batch<Value>>;
template <class Function, class Value>
concept handles_json = handles_json_record<Function, Value> || handles_json_batch<Function, Value>;
template <class Function, class Value>
concept makes_json_handler = std::is_invocable_v<Function&, const shard_context&> &&
    handles_json<std::invoke_result_t<Function&, const shard_context&>, Value>;

/// More levels of values could exhaust the stack: copying a nlohmann::json, as a from_json of a
/// tree, takes a call for each.
inline constexpr std::size_t most_json_levels = 1024;

/// Errors: permanent_error.
inline void require_few_levels(std::string_view text) {
  std::size_t level = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      is_in_string = c != '"';
    } else if (c == '[' || c == '{') {
      if (++level > most_json_levels) {
        throw permanent_error("values are nested deeper than " + std::to_string(most_json_levels) +
                              " levels");
      }
    } else if ((c == ']' || c == '}') && level > 0) {
      --level;
    } else {
      is_in_string = c == '"';
    }
  }
}

/// Errors: permanent_error; std::bad_alloc.
template <class Value>
Value parse_json(const record& source) {
  require_few_levels(source.data());
  try {
    return nlohmann::json::parse(source.data()).template get<Value>();
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
void call_with_json(Function& function, const record& source, const shard_context& shard) {
  auto value = parse_json<Value>(source);
  if constexpr (is_procedure_of<Function, Value>) {
    static_cast<void>(shard);
    function(std::move(value));
  } else if constexpr (is_procedure_of<Function, Value, const record&>) {
    static_cast<void>(shard);
    function(std::move(value), source);
  } else {
    function(std::move(value), source, shard);
  }
}

/// Whether a batch_failure of records that failed names one of the batch.
inline bool names_any(const batch_failure& reported, const record_batch& batch) {
  const auto is_in_batch = [&](const batch_failure::failed& one) {
    const std::size_t before = batch.size() - batch.after(one.position).size();
    return before > 0 && batch[before - 1].position() == one.position;
  };
  return std::any_of(reported.records().begin(), reported.records().end(), is_in_batch);
}

/// Reports the records that failed with what the handler of the others has reported, if it did.
/// What it reports of records that are not in the batch completes nothing.
[[noreturn]] inline void throw_json_failures(const record_batch& batch,
                                             std::vector<batch_failure::failed> unparsed,
                                             const batch_failure* reported) {
  if (reported == nullptr) throw batch_failure(std::move(unparsed));
  if (reported->are_others_complete()) {
    if (!names_any(*reported, batch)) throw *reported;
    for (batch_failure::failed one : reported->records()) {
      if (!one.cause) one.cause = std::current_exception();
      unparsed.push_back(std::move(one));
    }
    throw batch_failure(std::move(unparsed));
  }
  // Those before a single position count as complete, which one that did not parse is not.
  const auto& first = unparsed.front();
  const auto& position = reported->records().front().position;
  if (position < first.position || batch.back().position() < position) throw *reported;
  throw batch_failure(first.position, first.cause);
}

template <class Value, class Function>
void call_with_json(Function& function, const record_batch& batch, const shard_context& shard) {
  std::vector<json_record<Value>> values;
  std::vector<batch_failure::failed> unparsed;
  values.reserve(batch.size());
  for (const record& one : batch) {
    try {
      values.push_back({parse_json<Value>(one), one});
    } catch (const permanent_error&) {
      unparsed.push_back({one.position(), std::current_exception()});
    }
  }
  try {
    if (values.empty()) {
    } else if constexpr (is_procedure_of<Function, json_batch<Value>>) {
      static_cast<void>(shard);
      function(json_batch<Value>(values));
    } else {
      function(json_batch<Value>(values), shard);
    }
  } catch (const batch_failure& failure) {
    if (unparsed.empty()) throw;
    throw_json_failures(batch, std::move(unparsed), &failure);
  }
  if (!unparsed.empty()) throw_json_failures(batch, std::move(unparsed), nullptr);
}

}  // namespace kclxx::detail
