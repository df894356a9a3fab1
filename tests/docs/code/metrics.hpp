// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kclxx/kclxx.hpp>

/// What a program with clicks is: its options and its processors.
struct clicks_program {
  kclxx::run_options options;
  kclxx::processor_factory make_processor;
};

clicks_program make_clicks_program();
