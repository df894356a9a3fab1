// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>
#include <type_traits>

#include <boost/system/error_code.hpp>

#include <kclxx/error.hpp>

namespace kclxx::asio::detail {

// Boost's category has a protected destructor that is not virtual: nobody deletes through it.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#endif
/// A category of ours for versions of Boost that cannot keep a std::error_code: before 1.81. It has
/// the same name and the same messages, so a log reads alike with every version.
///
/// A template, so that it is compiled only where it is used.
/// Thread safety: immutable.
/// Lifetime: `source` must outlive it. The library's categories are never destroyed.
template <class Base>
class boost_category final : public Base {
 public:
  explicit boost_category(const std::error_category& source) : source_(source) {}
  [[nodiscard]] const char* name() const noexcept override { return source_.name(); }
  [[nodiscard]] std::string message(int value) const override { return source_.message(value); }

 private:
  const std::error_category& source_;
};
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/// Converts a code of this library into the one that Asio's completion tokens receive. An empty
/// code stays empty.
///
/// With Boost 1.81 or newer it holds `ec` itself, and converts back to it. With an older one it has
/// the same value and text in a category of ours, and does not convert back.
/// Precondition: `ec` is empty, of local_category() or of checkpoint_category().
/// Thread safety: may be called from any thread.
/// Lifetime: the result may be used until static objects are destroyed, at exit.
template <class Code = boost::system::error_code>
Code to_boost(const std::error_code& ec) {
  if (!ec) return {};
  if constexpr (std::is_constructible_v<Code, const std::error_code&>) {
    return Code(ec);
  } else {
    // The two categories that the library's codes have.
    using category = boost_category<boost::system::error_category>;
    static const category local(local_category());
    static const category daemon(checkpoint_category());
    return Code(ec.value(), ec.category() == local_category() ? local : daemon);
  }
}

}  // namespace kclxx::asio::detail
