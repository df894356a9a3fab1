// SPDX-License-Identifier: Apache-2.0
// The code of docs/failures.md.
#include <exception>
#include <stdexcept>

#include <kclxx/kclxx.hpp>

struct broken_connection : std::runtime_error {
  using std::runtime_error::runtime_error;
};

kclxx::failure_policy policy_of_a_database();

kclxx::failure_policy policy_of_a_database() {
  kclxx::failure_policy policy;
  policy.is_outage = [](const std::exception& error) {
    return dynamic_cast<const broken_connection*>(&error) != nullptr;
  };
  return policy;
}
