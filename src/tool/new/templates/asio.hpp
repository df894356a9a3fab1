#pragma once

#include <boost/asio/awaitable.hpp>

#include <kclxx/kclxx.hpp>

/// Processes one record, at the same time as others.
boost::asio::awaitable<void> process_record(kclxx::record record);

/// Makes what processes the records of a shard.
kclxx::processor_factory make_processor();
