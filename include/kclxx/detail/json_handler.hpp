// SPDX-License-Identifier: Apache-2.0
// The forms that a handler of values may have, and how each is called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <kclxx/error.hpp>
#include <kclxx/json_batch.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::detail {

template <class Function, class Value>
concept handles_json_record =
    is_procedure_of<Function, Value> || is_procedure_of<Function, Value, const record&> ||
    is_procedure_of<Function, Value, const record&, const shard_context&>;
template <class Function, class Value>
concept handles_json_batch = handles<Function, json_batch<Value>>;
template <class Function, class Value>
concept starts_json = is_procedure_of<Function, Value, completion> ||
    is_procedure_of<Function, Value, completion, const shard_context&>;
/// asio::parallel decides whether it is an awaitable, which this header does not know.
template <class Function, class... Arguments>
concept is_coroutine_of = std::is_invocable_v<Function&, Arguments...> &&
    std::is_class_v<std::invoke_result_t<Function&, Arguments...>>;
template <class Function, class Value>
concept awaits_json =
    is_coroutine_of<Function, Value> || is_coroutine_of<Function, Value, const record&> ||
    is_coroutine_of<Function, Value, const record&, const shard_context&>;
template <class Function, class Value>
concept handles_json =
    handles_json_record<Function, Value> || handles_json_batch<Function, Value> ||
    starts_json<Function, Value> || awaits_json<Function, Value>;
template <class Function, class Value>
concept makes_json_handler = std::is_invocable_v<Function&, const shard_context&> &&
    handles_json<std::invoke_result_t<Function&, const shard_context&>, Value>;

/// More levels of values could exhaust the stack: copying a nlohmann::json, as a from_json of a
/// tree, takes a call for each.
inline constexpr std::size_t max_json_levels = 1024;

/// Refuses what the parser takes: too many levels, and a NUL byte, after which it reads nothing.
/// Errors: permanent_error.
inline void refuse_deep_json_and_nul(std::string_view text) {
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw permanent_error("a NUL byte at byte " + std::to_string(nul + 1) + " is no part of JSON");
  }
  std::size_t level = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      is_in_string = c != '"';
    } else if (c == '[' || c == '{') {
      if (++level > max_json_levels) {
        throw permanent_error("values are nested deeper than " + std::to_string(max_json_levels) +
                              " levels");
      }
    } else if ((c == ']' || c == '}') && level > 0) {
      --level;
    } else {
      is_in_string = c == '"';
    }
  }
}

/// Parses once, and calls from_json once.
/// Errors: permanent_error, also for each std::exception of from_json; std::bad_alloc.
template <class Value>
Value parse_json(const record& source) {
  refuse_deep_json_and_nul(source.data());
  try {
    auto parsed = nlohmann::json::parse(source.data());
    if constexpr (std::is_same_v<Value, nlohmann::json>) {
      return parsed;
    } else {
      return parsed.template get<Value>();
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const permanent_error&) {
    throw;
  } catch (const nlohmann::json::parse_error& error) {
    std::string text = error.what();  // with a part of the data, which may be no text
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    throw permanent_error(text);
  } catch (const std::exception& error) {
    throw permanent_error(text_of(error));
  }
}

/// What parsing gave for the records that a key was asked of, until the handler takes it: so each
/// record is parsed once for an attempt. The records are those of one shard.
/// Thread safety: all functions may be called from any thread.
template <class Value>
class parsed_records {
 public:
  /// Data that is no value has the partition key, and fails in the handler.
  /// Errors: what the function throws; std::bad_alloc.
  template <class Key>
  std::string key_of(const record& source, Key& key) {
    result parsed;
    try {
      parsed.template emplace<Value>(parse_json<Value>(source));
    } catch (const permanent_error&) {
      parsed = std::current_exception();
    }
    const auto* const value = std::get_if<Value>(&parsed);
    std::string text =
        value != nullptr ? key(*value) : std::string(source.partition_key().value_or(""));
    const std::lock_guard lock(mutex_);
    results_.insert_or_assign(results_.end(), source.position(), std::move(parsed));
    return text;
  }
  /// A record that comes again after a failure is parsed again.
  /// Errors: those of parse_json.
  Value take(const record& source) {
    std::unique_lock lock(mutex_);
    auto found = results_.extract(source.position());
    lock.unlock();
    if (!found) return parse_json<Value>(source);
    if (const auto* error = std::get_if<std::exception_ptr>(&found.mapped())) {
      std::rethrow_exception(*error);
    }
    return std::get<Value>(std::move(found.mapped()));
  }

 private:
  using result = std::variant<std::exception_ptr, Value>;

  std::mutex mutex_;  // guards results_
  std::map<sequence_position, result> results_;
};

/// Calls the function with what its form asks for. A function of both forms gets the value alone.
/// Errors: what the function throws.
template <class Value, class Function>
decltype(auto) call_with_value(Function& function, Value value,
                               [[maybe_unused]] const record& source,
                               [[maybe_unused]] const shard_context& shard) {
  if constexpr (std::is_invocable_v<Function&, Value>) {
    return function(std::move(value));
  } else if constexpr (std::is_invocable_v<Function&, Value, const record&>) {
    return function(std::move(value), source);
  } else {
    return function(std::move(value), source, shard);
  }
}

template <class Function, class Value>
using awaitable_of =
    decltype(call_with_value(std::declval<Function&>(), std::declval<Value>(),
                             std::declval<const record&>(), std::declval<const shard_context&>()));

/// The value lives as long as the coroutine of the program, which may refer to it.
template <class Value, class Function, class Parse>
awaitable_of<Function, Value> await_with_json(Function& function, const Parse& parse,
                                              const record& source, const shard_context& shard) {
  Value value = parse(source);
  co_await call_with_value(function, std::move(value), source, shard);
}

/// Whether a batch_failure of records that failed names one of the batch.
inline bool names_any(const batch_failure& reported, const record_batch& batch) {
  const auto is_in_batch = [&](const batch_failure::failed& named) {
    const std::size_t count = batch.size() - batch.after(named.position).size();
    return count > 0 && batch[count - 1].position() == named.position;
  };
  return std::any_of(reported.records().begin(), reported.records().end(), is_in_batch);
}

template <class Value, class Function>
void call_with_batch(Function& function, const record_batch& batch,
                     [[maybe_unused]] const shard_context& shard) {
  std::vector<json_record<Value>> values;
  std::vector<batch_failure::failed> unparsed;
  values.reserve(batch.size());
  for (const record& source : batch) {
    try {
      values.push_back({parse_json<Value>(source), source});
    } catch (const permanent_error&) {
      unparsed.push_back({source.position(), std::current_exception()});
    }
  }
  try {
    if (values.empty()) {
    } else if constexpr (is_procedure_of<Function, json_batch<Value>>) {
      function(json_batch<Value>(values));
    } else {
      function(json_batch<Value>(values), shard);
    }
  } catch (const batch_failure& reported) {
    // A report of records that are not in the batch is passed on alone, and completes nothing.
    if (unparsed.empty() || !names_any(reported, batch)) throw;
    for (batch_failure::failed named : reported.records()) {
      if (!named.cause) named.cause = std::current_exception();
      unparsed.push_back(std::move(named));
    }
    throw batch_failure(std::move(unparsed), reported.last_tried());
  }
  if (!unparsed.empty()) throw batch_failure(std::move(unparsed));
}

/// A handler for `each`, `batches` or a `parallel`, from a function of values, or from one that
/// makes it for a shard. `parse` makes a value of a record; a batch has its own parser.
template <class Value, class Function, class Parse>
auto with_values(std::shared_ptr<Function> function, Parse parse) {
  if constexpr (handles_json_record<Function, Value>) {
    return [function, parse](const record& source, const shard_context& shard) {
      call_with_value(*function, parse(source), source, shard);
    };
  } else if constexpr (starts_json<Function, Value>) {
    return [function, parse](completion done, [[maybe_unused]] const shard_context& shard) {
      Value value = parse(done.record());
      if constexpr (is_procedure_of<Function, Value, completion>) {
        (*function)(std::move(value), std::move(done));
      } else {
        (*function)(std::move(value), std::move(done), shard);
      }
    };
  } else if constexpr (awaits_json<Function, Value>) {
    return [function, parse](const record& source,
                             const shard_context& shard) -> awaitable_of<Function, Value> {
      return await_with_json<Value>(*function, parse, source, shard);
    };
  } else if constexpr (handles_json_batch<Function, Value>) {
    return [function](const record_batch& batch, const shard_context& shard) {
      call_with_batch<Value>(*function, batch, shard);
    };
  } else {
    return [function, parse](const shard_context& shard) {
      using function_of_shard = std::decay_t<std::invoke_result_t<Function&, const shard_context&>>;
      auto made_function = std::make_shared<function_of_shard>((*function)(shard));
      require_function<function_of_shard>(*made_function);
      return with_values<Value>(std::move(made_function), parse);
    };
  }
}

/// What json() makes of a function. It is as empty as the function.
template <class Handler>
struct json_handler : Handler {
  bool is_there;
  explicit operator bool() const noexcept { return is_there; }
};

/// What json() makes of a function and a key. Each shard has values of its own.
template <class Value, class Function, class Key>
class keyed_json {
 public:
  using is_keyed = void;

  keyed_json(std::shared_ptr<Function> function, std::shared_ptr<Key> key)
      : function_(std::move(function)), key_(std::move(key)) {}

  /// `make(handler, options)` makes the factory of one shard. The result is not valid for an empty
  /// function, for options with a key of their own, and where that of `make` is not.
  template <class Make>
  [[nodiscard]] processor_factory factory(parallel_options options, Make make) const {
    return processor_factory::valid_or_not([&] {
      require_function(*function_);
      require_function(*key_);
      if (options.key) throw std::invalid_argument("parallel_options: json has a key, too");
      auto of_shard = [function = function_, key = key_, options = std::move(options),
                       make = std::move(make)] {
        const auto records = std::make_shared<parsed_records<Value>>();
        auto own = options;
        own.key = [records, key](const record& source) { return records->key_of(source, *key); };
        const auto take = [records](const record& source) { return records->take(source); };
        return make(with_values<Value>(function, take), std::move(own));
      };
      if (auto same = of_shard(); !same.is_valid()) return same;
      return processor_factory(
          [of_shard](const shard_context& shard) { return of_shard()(shard); });
    });
  }

 private:
  std::shared_ptr<Function> function_;
  std::shared_ptr<Key> key_;
};

}  // namespace kclxx::detail
