// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <kclxx/kclxx.hpp>

#include "connection_pool.hpp"

/// What is known of a key, from a file of lines KEY=VALUE. Does not change once it is loaded, so
/// that callbacks of all shards may read it at the same time.
class lookup_table {
 public:
  /// Errors: std::runtime_error when the file cannot be read.
  explicit lookup_table(const std::filesystem::path& file);

  /// "unknown" when it is not there.
  [[nodiscard]] std::string_view find(std::string_view key) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// Stands for a connection to a database: lines are added to a file.
class connection {
 public:
  explicit connection(const std::filesystem::path& file) : out_(file, std::ios::app) {}
  /// Errors: std::runtime_error.
  void write(const std::string& lines);

 private:
  std::ofstream out_;
};

/// What all shards of the process share.
struct shared_state {
  shared_state(const std::filesystem::path& table_file, const std::filesystem::path& output,
               std::size_t connections);

  lookup_table table;
  connection_pool<connection> pool;
};

/// Writes a line SHARD KEY VALUE DATA for each record.
class enrich : public kclxx::record_processor {
 public:
  enrich(const kclxx::shard_context& shard, std::shared_ptr<shared_state> shared)
      : shard_id_(shard.shard_id()), shared_(std::move(shared)) {}

  void process_records(kclxx::record_batch batch, const kclxx::checkpointer&) override;

 private:
  std::string shard_id_;
  std::shared_ptr<shared_state> shared_;
};
