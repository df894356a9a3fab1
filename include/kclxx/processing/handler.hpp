// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx {

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

}  // namespace detail

/// What processes a `Subject`: a record_handler or a batch_handler. Constructed from one of these
/// functions, which may be move-only:
///
/// - `(Subject)`
/// - `(Subject, const shard_context&)`
/// - `(const shard_context&) -> Function`: makes a function of one of the forms above; called when
///   a shard starts, for what each shard has of its own, a connection for instance
///
/// A handler returns nothing; it throws when the subject is not processed. A generic lambda is
/// taken for a function of the subject.
/// A handle: copies share the function. Thread safety: the form of processing and the number of
/// shards in the process decide from how many threads the function is called.
template <class Subject>
class basic_handler {
 public:
  /// The function of one shard. Move-only.
  class of_shard {
   public:
    /// Errors: what the function throws.
    void operator()(Subject subject, const shard_context& shard) {
      function_->call(std::forward<Subject>(subject), shard);
    }

   private:
    friend basic_handler;
    struct callable {
      callable() = default;
      callable(const callable&) = delete;
      callable& operator=(const callable&) = delete;
      virtual ~callable() = default;
      virtual void call(Subject subject, const shard_context& shard) = 0;
    };
    template <class Function>
    struct holder final : callable {
      explicit holder(std::shared_ptr<Function> shared) : function(std::move(shared)) {}
      void call(Subject subject, const shard_context& shard) override {
        if constexpr (detail::is_procedure_of<Function, Subject>) {
          (*function)(std::forward<Subject>(subject));
        } else {
          (*function)(std::forward<Subject>(subject), shard);
        }
      }
      std::shared_ptr<Function> function;
    };

    explicit of_shard(std::unique_ptr<callable> function) : function_(std::move(function)) {}
    std::unique_ptr<callable> function_;
  };

  template <class Function>
  requires(!std::is_same_v<std::decay_t<Function>, basic_handler> &&
           (detail::handles<std::decay_t<Function>, Subject> ||
            detail::makes_handler<std::decay_t<Function>, Subject>))
      // NOLINTNEXTLINE(google-explicit-constructor): as std::function
      basic_handler(Function&& function)
      : maker_(
            std::make_shared<maker_of<std::decay_t<Function>>>(std::forward<Function>(function))) {}

  /// Errors: what the function throws that makes one.
  [[nodiscard]] of_shard make(const shard_context& shard) const { return maker_->make(shard); }

 private:
  struct maker {
    maker() = default;
    maker(const maker&) = delete;
    maker& operator=(const maker&) = delete;
    virtual ~maker() = default;
    virtual of_shard make(const shard_context& shard) = 0;
  };
  template <class Function>
  static of_shard hold(std::shared_ptr<Function> function) {
    return of_shard(
        std::make_unique<typename of_shard::template holder<Function>>(std::move(function)));
  }
  template <class Function>
  struct maker_of final : maker {
    template <class From>
    explicit maker_of(From&& from)
        : function(std::make_shared<Function>(std::forward<From>(from))) {}
    of_shard make(const shard_context& shard) override {
      if constexpr (detail::handles<Function, Subject>) {
        return hold(function);
      } else {
        using made = std::decay_t<std::invoke_result_t<Function&, const shard_context&>>;
        return hold(std::make_shared<made>((*function)(shard)));
      }
    }
    std::shared_ptr<Function> function;
  };

  std::shared_ptr<maker> maker_;
};

/// What processes one record.
using record_handler = basic_handler<const record&>;
/// What processes a batch; see `batches`.
using batch_handler = basic_handler<record_batch>;

}  // namespace kclxx
