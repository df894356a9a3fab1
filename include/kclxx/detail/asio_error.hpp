// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>
#include <type_traits>

#include <boost/system/error_code.hpp>

#include <kclxx/error.hpp>

namespace kclxx::asio::detail {

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"  // of Boost's category
#endif
/// A category of ours for versions of Boost that cannot keep a std::error_code.
template <class Base>
class boost_category final : public Base {
 public:
  explicit boost_category(const std::error_category& from) : from_(from) {}
  [[nodiscard]] const char* name() const noexcept override { return from_.name(); }
  [[nodiscard]] std::string message(int value) const override { return from_.message(value); }

 private:
  const std::error_category& from_;
};
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

template <class Code = boost::system::error_code>
Code to_boost(const std::error_code& ec) {
  if (!ec) return {};
  if constexpr (std::is_constructible_v<Code, const std::error_code&>) {
    return Code(ec);
  } else {
    using category = boost_category<boost::system::error_category>;
    static const category local(local_category());
    static const category daemon(checkpoint_category());
    return Code(ec.value(), ec.category() == local_category() ? local : daemon);
  }
}

}  // namespace kclxx::asio::detail
