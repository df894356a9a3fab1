#pragma once

#include <kclxx/kclxx.hpp>

/// Makes what processes the records of a shard.
kclxx::processor_factory make_processor();
