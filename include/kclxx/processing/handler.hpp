// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <kclxx/processor_factory.hpp>
#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx {

/// Which records keep later ones waiting while they are processed or tried again.
enum class order {
  /// A record that fails keeps the later ones of its key waiting. `parallel` also processes the
  /// records of a key in turn, in the shard's order.
  key,
  /// No record waits for another record.
  none,
};

namespace detail {

// A result that nobody reads could be a failure, or an awaitable that never runs: it must be void.
template <class Function, class... Arguments>
concept is_procedure_of = std::is_invocable_v<Function&, Arguments...> &&
    std::is_void_v<std::invoke_result_t<Function&, Arguments...>>;
template <class Function, class Subject>
concept handles =
    is_procedure_of<Function, Subject> || is_procedure_of<Function, Subject, const shard_context&>;
template <class Function, class Subject>
concept makes_handler = std::is_invocable_v<Function&, const shard_context&> &&
    handles<std::invoke_result_t<Function&, const shard_context&>, Subject>;

/// Refuses a function that would fail at every record.
/// Errors: std::invalid_argument.
template <class Function>
void require_function(const Function& function) {
  if (is_empty_function(function)) throw std::invalid_argument("a handler is an empty function");
}

}  // namespace detail

/// What processes a `Subject`: a record_handler, a batch_handler or an async_record_handler (whose
/// subject is a completion). Constructed from one of these functions, which may be move-only:
///
/// - `(Subject)`
/// - `(Subject, const shard_context&)`
/// - `(const shard_context&) -> Function`: returns a function of one of the forms above. It is
///   called once for each shard, when the shard starts. Use it to give each shard its own
///   connection, for instance:
///
///       kclxx::each([](const kclxx::shard_context& shard) {
///         return [db = connect(shard.shard_id())](const kclxx::record& event) { db->put(event); };
///       });
///
/// A handler returns nothing; it throws when the subject is not processed. Once a stop was
/// requested (shard_context::stop_token), what it returns or throws has no effect: the record is
/// delivered again. A generic lambda is taken for a function of a record; in `batches`, of a batch.
/// For a completion or a shard_context, write the parameter's type. Copies share the function.
///
/// Thread safety: see `each`, `batches` and `parallel`. Several shards in one process call the
/// function at the same time.
/// Lifetime: the function is destroyed with the last copy and the last processor that it is in.
template <class Subject>
class basic_handler {
 public:
  /// The function of one shard.
  /// Errors: what the user's function throws.
  using of_shard = std::function<void(Subject, const shard_context&)>;

  /// From an empty function it makes an empty handler, of which no form makes a valid factory.
  /// Errors: std::bad_alloc, and what moving or copying the function throws.
  template <class Function>
  requires(
      !std::is_same_v<std::decay_t<Function>, basic_handler> &&
      // The types come first: each other check compiles the body of a generic lambda.
      (std::is_same_v<Subject, const record&> || std::is_same_v<Subject, record_batch> ||
       !detail::handles<std::decay_t<Function>,
                        const record&>)&&(detail::handles<std::decay_t<Function>, Subject> ||
                                          detail::makes_handler<std::decay_t<Function>, Subject>))
      // NOLINTNEXTLINE(google-explicit-constructor): as std::function
      basic_handler(Function&& function) {
    using stored = std::decay_t<Function>;
    if (detail::is_empty_function<stored>(function)) return;
    auto shared = std::make_shared<stored>(std::forward<Function>(function));
    if constexpr (detail::handles<stored, Subject>) {
      make_ = [call = held(std::move(shared))](const shard_context&) { return call; };
    } else {
      make_ = [shared = std::move(shared)](const shard_context& shard) {
        using result = std::decay_t<std::invoke_result_t<stored&, const shard_context&>>;
        auto function_of_shard = std::make_shared<result>((*shared)(shard));
        detail::require_function<result>(*function_of_shard);
        return held(std::move(function_of_shard));
      };
    }
  }

  /// False for an empty handler.
  explicit operator bool() const noexcept { return make_ != nullptr; }
  /// The function for one shard. Precondition: the handler is not empty.
  /// Errors: what the user's function throws, if it is of the form that makes a function;
  /// std::invalid_argument when that makes an empty one.
  /// Thread safety: this calls the user's function, and is as safe to call as that function.
  /// Blocking: as long as the user's function takes.
  [[nodiscard]] of_shard make(const shard_context& shard) const { return make_(shard); }

 private:
  /// Shared, since the function may be move-only.
  template <class Function>
  static of_shard held(std::shared_ptr<Function> function) {
    return [function = std::move(function)](Subject subject, const shard_context& shard) {
      if constexpr (detail::is_procedure_of<Function, Subject>) {
        static_cast<void>(shard);
        (*function)(std::forward<Subject>(subject));
      } else {
        (*function)(std::forward<Subject>(subject), shard);
      }
    };
  }

  std::function<of_shard(const shard_context&)> make_;
};

/// What processes one record.
using record_handler = basic_handler<const record&>;
/// What processes a batch; see `batches`.
using batch_handler = basic_handler<record_batch>;

}  // namespace kclxx
