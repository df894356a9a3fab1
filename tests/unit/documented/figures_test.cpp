// SPDX-License-Identifier: Apache-2.0
// The program's own figures, by shard: the code of docs/metrics.md.
#include <chrono>
#include <string>

#include "../../docs/code/metrics.hpp"
#include "../runtime/served_shard.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"

namespace kclxx::test {

TEST_CASE(
    "the counter of the documents counts each record once, though a process has several shards",
    "[runtime][metrics]") {
  const temporary_folder folder;
  clicks_program program = make_clicks_program();
  session_options options = program.options;
  options.metrics.directory = folder.path().string();
  options.metrics.write_interval = std::chrono::milliseconds(1);
  served_shard first(program.make_processor, options);
  served_shard second(program.make_processor, options);
  first.initialize("shardId-1");
  second.initialize("shardId-2");
  first.process({"a", "b"}, 1);
  second.process({"c"}, 1);
  const auto has = [&](const std::string& shard, const std::string& count) {
    const auto path = folder.path() / ("kclxx.unknown.unknown." + shard + ".prom");
    return eventually([&] {
      return contains(read_file(path),
                      "\nclicks_total{application=\"unknown\",stream=\"unknown\",shard=\"" + shard +
                          "\"} " + count + "\n");
    });
  };
  CHECK(has("shardId-1", "2"));
  CHECK(has("shardId-2", "1"));
}

}  // namespace kclxx::test
