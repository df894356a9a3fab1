// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <kclxx/detail/export.hpp>
#include <kclxx/record_processor.hpp>

namespace kclxx {

namespace detail {

template <class Function>
concept makes_processor_of_context =
    std::is_invocable_r_v<std::unique_ptr<record_processor>, Function&, const shard_context&>;
template <class Function>
concept makes_processor = std::is_invocable_r_v<std::unique_ptr<record_processor>, Function&>;
template <class Function>
concept processes_with_checkpointer =
    std::is_invocable_v<Function&, record_batch, const checkpointer&>;
template <class Function>
concept processes_batch = std::is_invocable_v<Function&, record_batch>;

/// Whether it is an empty std::function, or the like.
template <class Function>
[[nodiscard]] bool is_empty_function(const Function& function) {
  // The second condition leaves lambdas out, which convert to a pointer.
  if constexpr (std::is_pointer_v<Function> || (std::is_constructible_v<bool, const Function&> &&
                                                !std::is_convertible_v<const Function&, bool>)) {
    return !static_cast<bool>(function);
  }
  return false;
}

/// The processor of a program that is a single function. The processors of all shards share the
/// function, since it may be move-only.
/// Thread safety: as the function.
template <class Function>
class function_processor final : public record_processor {
 public:
  explicit function_processor(std::shared_ptr<Function> function)
      : function_(std::move(function)) {}
  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    if constexpr (processes_with_checkpointer<Function>) {
      (*function_)(std::move(batch), checkpointer);
    } else {
      (*function_)(std::move(batch));
    }
  }

 private:
  std::shared_ptr<Function> function_;
};

}  // namespace detail

/// Makes the processor of a shard; called once per shard, on the thread of its callbacks:
///
///     return kclxx::run([db = open_database()](const kclxx::shard_context& shard) {
///       return std::make_unique<my_processor>(shard, db);
///     });
///
/// Constructed from one of these functions, which may be move-only:
///
/// - `(const shard_context&) -> std::unique_ptr<Processor>`
/// - `() -> std::unique_ptr<Processor>`
/// - `(record_batch, const checkpointer&)`: the processor calls it with each batch
/// - `(record_batch)`: the processor calls it with each batch
///
/// A generic lambda is taken for a function of a batch, so write the parameter type of a factory:
/// `[](const shard_context& shard)`. A handle: copies share the function.
///
/// Thread safety: a function that serves several shards at the same time (see `serve`) must be safe
/// to call from several threads.
/// Lifetime: `run`, `serve` and the test kit keep the function longer than its processors.
class processor_factory {
 public:
  /// Errors: std::bad_alloc, and what moving or copying the function throws.
  template <class Function>
  requires(!std::is_same_v<std::decay_t<Function>, processor_factory> &&
           (detail::processes_with_checkpointer<std::decay_t<Function>> ||
            detail::processes_batch<std::decay_t<Function>> ||
            detail::makes_processor_of_context<std::decay_t<Function>> ||
            detail::makes_processor<std::decay_t<Function>>))
      // NOLINTNEXTLINE(google-explicit-constructor): as std::function
      processor_factory(Function&& function)
      : problem_(detail::is_empty_function<std::decay_t<Function>>(function)
                     ? std::make_exception_ptr(
                           std::invalid_argument("the processor factory is an empty function"))
                     : nullptr),
        make_([shared = std::make_shared<std::decay_t<Function>>(std::forward<Function>(function))](
                  const shard_context& context) { return make(shared, context); }) {}

  /// What `make` returns or, when it throws, a factory that is not valid. So `run`, which reports
  /// what is wrong, is reached from an expression in main.
  template <class Make>
  [[nodiscard]] static processor_factory valid_or_not(Make make) {
    try {
      return make();
    } catch (const std::invalid_argument&) {
      processor_factory invalid(
          [](const shard_context&) -> std::unique_ptr<record_processor> { return nullptr; });
      invalid.problem_ = std::current_exception();
      return invalid;
    }
  }

  /// False for an empty function, and for options that cannot work. `run` and `serve` then log why,
  /// and return exit_status::start_failed before the first shard.
  [[nodiscard]] bool is_valid() const noexcept { return problem_ == nullptr; }
  /// Errors: std::invalid_argument when it is not valid.
  void require_valid() const {
    if (problem_) std::rethrow_exception(problem_);
  }

  /// A new processor. Null when the function returns null; the session then ends with
  /// exit_status::callback_failed.
  /// Errors: what the function throws, and as require_valid().
  /// Lifetime: the context must outlive the processor, which may keep a reference to it.
  /// Blocking: as long as the function takes.
  [[nodiscard]] std::unique_ptr<record_processor> operator()(const shard_context& context) const {
    require_valid();
    return make_(context);
  }

 private:
  /// Shared, since the function may be move-only.
  template <class Function>
  static std::unique_ptr<record_processor> make(const std::shared_ptr<Function>& function,
                                                const shard_context& context) {
    if constexpr (detail::processes_with_checkpointer<Function> ||
                  detail::processes_batch<Function>) {
      return std::make_unique<detail::function_processor<Function>>(function);
    } else if constexpr (detail::makes_processor_of_context<Function>) {
      return (*function)(context);
    } else {
      return (*function)();
    }
  }

  std::exception_ptr problem_;
  std::function<std::unique_ptr<record_processor>(const shard_context&)> make_;
};

/// The factory of a processor whose constructor takes the context, or nothing:
/// `run<my_processor>()` uses it.
/// Errors: none here; the factory throws what the constructor throws.
template <std::derived_from<record_processor> Processor>
[[nodiscard]] processor_factory factory_of() {
  return [](const shard_context& context) {
    if constexpr (std::is_constructible_v<Processor, const shard_context&>) {
      return std::make_unique<Processor>(context);
    } else {
      return std::make_unique<Processor>();
    }
  };
}

}  // namespace kclxx
