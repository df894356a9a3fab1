// SPDX-License-Identifier: Apache-2.0
// shared_cache TABLE OUTPUT: a table that is loaded once, and four connections, for all shards.
//   executableName = kclxx-share ./shared_cache table.txt output.txt
// It works without kclxx-share too: then each shard has a process, and a table, of its own.
#include <exception>
#include <iostream>
#include <memory>

#include "enrich.hpp"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: shared_cache TABLE OUTPUT\n";
    return 2;
  }
  // Before run: it is there when the first shard arrives.
  const auto shared = std::make_shared<shared_state>(argv[1], argv[2], 4);
  return kclxx::run([shared](const kclxx::shard_context& shard) {
    return std::make_unique<enrich>(shard, shared);
  });
} catch (const std::exception& error) {
  std::cerr << "shared_cache: " << error.what() << "\n";
  return 1;
}
