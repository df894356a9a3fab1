// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kclxx/detail/export.hpp>
#include <kclxx/observer.hpp>

namespace kclxx::detail {

/// An observer that is called at once, on the thread where the event happens, perhaps under a lock.
/// So it must neither block nor throw. Others are called later, on a thread for observers.
/// Thread safety: events of several sessions arrive at the same time.
class KCLXX_EXPORT direct_observer : public observer {
 public:
  ~direct_observer() override;
};

}  // namespace kclxx::detail
