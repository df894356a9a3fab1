// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <prometheus/text_serializer.h>
#include <string>

#include <kclxx/kclxx.hpp>
#include <kclxx/metrics_recorder.hpp>
#include <kclxx/prometheus.hpp>
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"
#include "support/run_options.hpp"
#include "support/text.hpp"

namespace {

using kclxx::test::contains;
using kclxx::test::prompt;
using kclxx::testing::daemon;

daemon one_shard(const kclxx::run_options& options) {
  return daemon([](kclxx::record_batch) {}, options,
                {.stream_name = "orders", .application_name = "billing"});
}

std::string text_of(const prometheus::Registry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

TEST_CASE("the registry has the documented families, with the same help and type", "[prometheus]") {
  const auto registry = std::make_shared<prometheus::Registry>();
  const auto observer = std::make_shared<kclxx::prometheus_observer>(registry);
  auto shard = one_shard(prompt(observer));
  shard.initialize("shardId-1");
  const auto collected = registry->Collect();
  REQUIRE(collected.size() == kclxx::metrics_recorder::families().size());
  for (const kclxx::metrics_recorder::metric_family& family : kclxx::metrics_recorder::families()) {
    CAPTURE(std::string(family.name));
    const auto found = std::find_if(collected.begin(), collected.end(),
                                    [&](const auto& one) { return one.name == family.name; });
    REQUIRE(found != collected.end());
    CHECK(found->help == family.help);
    const auto type = family.type == kclxx::metrics_recorder::metric_type::counter
                          ? prometheus::MetricType::Counter
                      : family.type == kclxx::metrics_recorder::metric_type::gauge
                          ? prometheus::MetricType::Gauge
                          : prometheus::MetricType::Histogram;
    CHECK((found->type == type));
    CHECK_FALSE(found->metric.empty());
  }
}

TEST_CASE("several shards are in one registry, each until its lease ends", "[prometheus]") {
  const auto registry = std::make_shared<prometheus::Registry>();
  const auto options = prompt(std::make_shared<kclxx::prometheus_observer>(registry));
  auto first = one_shard(options);
  auto second = one_shard(options);
  first.initialize("shardId-1").deliver({"a", "b"});
  second.initialize("shardId-2").fail_next_checkpoint("ThrottlingException").deliver({"abc"});
  const auto labels = [](const std::string& shard) {
    return R"(application="billing",shard=")" + shard + R"(",stream="orders")";
  };
  std::string text = text_of(*registry);
  CAPTURE(text);
  CHECK(contains(text, "kclxx_records_total{" + labels("shardId-1") + "} 2\n"));
  CHECK(contains(text, "kclxx_record_bytes_total{" + labels("shardId-2") + "} 3\n"));
  CHECK(contains(text, "kclxx_process_duration_seconds_count{" + labels("shardId-1") + "} 1\n"));
  CHECK(contains(text, R"(error="ThrottlingException",shard="shardId-2",stream="orders"} 1)"));
  first.lose_lease();
  text = text_of(*registry);
  CHECK_FALSE(contains(text, "shardId-1"));
  CHECK(contains(text, "shardId-2"));
  second.end_input();
  CHECK_FALSE(contains(text_of(*registry), "shardId-2"));
}

TEST_CASE("a shard that two sessions have for a moment keeps its series", "[prometheus]") {
  const auto registry = std::make_shared<prometheus::Registry>();
  const auto options = prompt(std::make_shared<kclxx::prometheus_observer>(registry));
  auto former = one_shard(options);
  auto present = one_shard(options);
  former.initialize("shardId-1").deliver({"a"});
  present.initialize("shardId-1");
  former.lose_lease();
  present.deliver({"b"});
  CHECK(contains(text_of(*registry),
                 R"(kclxx_records_total{application="billing",shard="shardId-1")"));
}

}  // namespace
