// SPDX-License-Identifier: Apache-2.0
// The forms that a handler of values may have, and how each is called.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kclxx/detail/exception_text.hpp>
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
inline constexpr std::size_t most_json_levels = 1024;

/// Refuses what the parser takes: too many levels, and a NUL byte, after which it reads nothing.
/// Returns whether the text can have a number.
/// Errors: permanent_error.
inline bool look_at_json(std::string_view text) {
  std::size_t level = 0;
  bool is_in_string = false;
  bool has_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') {
      throw permanent_error("a NUL byte at byte " + std::to_string(i + 1) + " is no part of JSON");
    }
    if (is_in_string) {
      if (c == '\\' && i + 1 < text.size() && text[i + 1] != '\0') ++i;
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
      has_number = has_number || (c >= '0' && c <= '9');
    }
  }
  return has_number;
}

/// Whether an integer is the number that was parsed.
template <class Integer>
bool is_number(Integer value, const nlohmann::json& parsed) {
  if (parsed.is_number_float()) {
    const double number = parsed.get<double>();
    constexpr double end = std::is_signed_v<Integer> ? 0x1p63 : 0x1p64;
    // Below -2^63 an integer is read as a float, and may be rounded to that.
    constexpr double below = std::is_signed_v<Integer> ? -0x1p63 : -1;
    return number > below && number < end && number == std::trunc(number) &&
           static_cast<Integer>(number) == value;
  }
  return parsed.is_number_unsigned() ? std::cmp_equal(value, parsed.get<std::uint64_t>())
                                     : std::cmp_equal(value, parsed.get<std::int64_t>());
}

/// Whether a floating-point number is the one that was parsed, as exactly as a float can be.
inline bool is_number(double value, const nlohmann::json& parsed) {
  const double number = parsed.get<double>();
  constexpr double precision = std::numeric_limits<float>::epsilon();
  constexpr double smallest = std::numeric_limits<float>::denorm_min();
  return std::isfinite(value) &&
         std::abs(value - number) <= std::abs(number) * precision + smallest;
}

inline bool has_numbers_of(const nlohmann::json& value, const nlohmann::json& parsed);

/// A set may have another order than its text.
inline bool has_elements_of(const nlohmann::json& value, const nlohmann::json& parsed) {
  if (value.size() == parsed.size() &&
      std::equal(value.begin(), value.end(), parsed.begin(), has_numbers_of)) {
    return true;
  }
  return std::all_of(value.begin(), value.end(), [&](const nlohmann::json& one) {
    return std::any_of(parsed.begin(), parsed.end(), [&](const nlohmann::json& other) {
      return one == other && has_numbers_of(one, other);
    });
  });
}

/// Whether each number in the value is the one that was parsed for it, where one was.
inline bool has_numbers_of(const nlohmann::json& value, const nlohmann::json& parsed) {
  if (value.is_number() && parsed.is_number()) {
    return value.is_number_float()      ? is_number(value.get<double>(), parsed)
           : value.is_number_unsigned() ? is_number(value.get<std::uint64_t>(), parsed)
                                        : is_number(value.get<std::int64_t>(), parsed);
  }
  if (value.is_array() && parsed.is_array()) return has_elements_of(value, parsed);
  if (!value.is_object() || !parsed.is_object()) return true;
  for (const auto& [name, one] : value.items()) {
    const auto other = parsed.find(name);
    if (other != parsed.end() && !has_numbers_of(one, *other)) return false;
  }
  return true;
}

/// Whether to_json is the inverse of from_json; another unit, for instance, would make other
/// numbers.
template <class Value>
bool gives_back(const nlohmann::json& made) {
  try {
    return nlohmann::json(made.template get<Value>()) == made;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

/// Whether to convert the number to some type of integers would be undefined.
inline bool is_beyond_integers(const nlohmann::json& one) {
  return one.is_number_float() && !(one.get<double>() > -1 && one.get<double>() < 128);
}

/// Calls the function with each such number.
template <class Function>
void for_each_beyond_integers(nlohmann::json& one, const Function& function) {
  if (one.is_structured()) {
    for (nlohmann::json& each : one) for_each_beyond_integers(each, function);
  } else if (is_beyond_integers(one)) {
    function(one);
  }
}

/// Makes integers of such numbers where they are some, since each conversion of an integer is
/// defined. Returns whether others are left.
inline bool make_integers(nlohmann::json& parsed) {
  bool are_left = false;
  for_each_beyond_integers(parsed, [&are_left](nlohmann::json& one) {
    const double number = one.get<double>();
    if (number != std::trunc(number) || number <= -0x1p63 || number >= 0x1p64) {
      are_left = true;
    } else if (number < 0x1p63) {
      one = static_cast<std::int64_t>(number);
    } else {
      one = static_cast<std::uint64_t>(number);
    }
  });
  return are_left;
}

/// nlohmann's from_json converts numbers as static_cast does. What it made is converted back, since
/// nothing else tells the types of a user's fields.
/// Errors: permanent_error.
template <class Value>
void require_numbers(const Value& value, const nlohmann::json& parsed) {
  if constexpr (std::is_constructible_v<nlohmann::json, const Value&>) {
    const nlohmann::json made(value);
    if (has_numbers_of(made, parsed) || !gives_back<Value>(made)) return;
    throw permanent_error("a number does not fit into its field; the value became " +
                          made.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }
}

/// Refuses a number for an integer before it is converted, where that would be undefined: a half,
/// which converts to each type, shows which field is an integer.
/// Errors: permanent_error; std::bad_alloc.
template <class Value>
void require_floats_for_floats(nlohmann::json parsed) {
  if constexpr (std::is_constructible_v<nlohmann::json, const Value&>) {
    for_each_beyond_integers(parsed, [](nlohmann::json& one) { one = 0.5; });
    try {
      require_numbers(parsed.template get<Value>(), parsed);
    } catch (const permanent_error&) {
      throw permanent_error("a number does not fit into its field, which is an integer");
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // from_json may refuse the replacement, and not what was parsed
    }
  }
}

/// Errors: permanent_error; std::bad_alloc.
template <class Value>
Value parse_json(const record& source) {
  const bool has_number = look_at_json(source.data());
  try {
    auto parsed = nlohmann::json::parse(source.data());
    if constexpr (std::is_same_v<Value, nlohmann::json>) {
      return parsed;
    } else {
      if (has_number && make_integers(parsed)) require_floats_for_floats<Value>(parsed);
      auto value = parsed.template get<Value>();
      if (has_number) require_numbers(value, parsed);
      return value;
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

/// The values that a key was taken from, until the handler takes them: so each is parsed once. They
/// are those of one shard. A record that comes again after a failure is parsed again.
/// Thread safety: all functions may be called from any thread.
template <class Value>
class parsed_values {
 public:
  /// Data that is no value has the partition key, and fails in the handler.
  /// Errors: what the function throws; std::bad_alloc.
  template <class Key>
  std::string key_of(const record& source, Key& key) {
    std::optional<Value> value;
    try {
      value.emplace(parse_json<Value>(source));
    } catch (const permanent_error&) {
      return std::string(source.partition_key().value_or(""));
    }
    std::string text = key(std::as_const(*value));
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(values_.end(), source.position(), std::move(*value));
    return text;
  }
  /// Errors: those of parse_json.
  Value take(const record& source) {
    {
      const std::lock_guard lock(mutex_);
      if (auto known = values_.extract(source.position())) return std::move(known.mapped());
    }
    return parse_json<Value>(source);
  }

 private:
  std::mutex mutex_;
  std::map<sequence_position, Value> values_;
};

/// Calls the function with what its form asks for. A function of both forms gets the value alone.
/// Errors: what the function throws.
template <class Value, class Function>
decltype(auto) call_with_value(Function& function, Value value, const record& source,
                               const shard_context& shard) {
  static_cast<void>(source);
  static_cast<void>(shard);
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
  if (!names_any(*reported, batch)) throw *reported;
  for (batch_failure::failed one : reported->records()) {
    if (!one.cause) one.cause = std::current_exception();
    unparsed.push_back(std::move(one));
  }
  throw batch_failure(std::move(unparsed), reported->last_tried());
}

template <class Value, class Function>
void call_with_batch(Function& function, const record_batch& batch, const shard_context& shard) {
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

/// A handler for `each`, `batches` or a `parallel`, from a function of values, or from one that
/// makes it for a shard. `parse` makes a value of a record; a batch has its own parser.
template <class Value, class Function, class Parse>
auto with_values(std::shared_ptr<Function> function, Parse parse) {
  if constexpr (handles_json_record<Function, Value>) {
    return [function, parse](const record& source, const shard_context& shard) {
      call_with_value(*function, parse(source), source, shard);
    };
  } else if constexpr (starts_json<Function, Value>) {
    return [function, parse](completion one, const shard_context& shard) {
      Value value = parse(one.record());
      if constexpr (is_procedure_of<Function, Value, completion>) {
        static_cast<void>(shard);
        (*function)(std::move(value), std::move(one));
      } else {
        (*function)(std::move(value), std::move(one), shard);
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
      using made = std::decay_t<std::invoke_result_t<Function&, const shard_context&>>;
      auto one = std::make_shared<made>((*function)(shard));
      require_function<made>(*one);
      return with_values<Value>(std::move(one), parse);
    };
  }
}

/// What json() makes of a function and a key. Each shard has values of its own.
template <class Value, class Function, class Key>
class keyed_json {
 public:
  using is_keyed = void;

  keyed_json(std::shared_ptr<Function> function, std::shared_ptr<Key> key)
      : function_(std::move(function)), key_(std::move(key)) {}

  /// `make(handler, options)` makes the factory of one shard.
  /// It is not valid for options with a key of their own, and where that of `make` is not.
  template <class Make>
  [[nodiscard]] processor_factory factory(parallel_options options, Make make) const {
    if (options.key) {
      return processor_factory::valid_or_not([]() -> processor_factory {
        throw std::invalid_argument("parallel_options: json has a key, too");
      });
    }
    auto of_shard = [function = function_, key = key_, options = std::move(options),
                     make = std::move(make)] {
      const auto values = std::make_shared<parsed_values<Value>>();
      auto own = options;
      own.key = [values, key](const record& one) { return values->key_of(one, *key); };
      return make(
          with_values<Value>(function, [values](const record& one) { return values->take(one); }),
          std::move(own));
    };
    if (auto same = of_shard(); !same.is_valid()) return same;
    return [of_shard](const shard_context& shard) { return of_shard()(shard); };
  }

 private:
  std::shared_ptr<Function> function_;
  std::shared_ptr<Key> key_;
};

}  // namespace kclxx::detail
