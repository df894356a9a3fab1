// SPDX-License-Identifier: Apache-2.0
// From events to figures, to Prometheus' text and to CloudWatch's line.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <nlohmann/json.hpp>

#include <kclxx/metrics_recorder.hpp>

#include "observability/metrics_outputs.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

namespace kclxx::observability {

namespace {

using namespace std::chrono_literals;

const sequence_position at("101");

observer::shard_names names() {
  return {"shardId-000000000003", "orders", "billing", "a-random-worker"};
}

/// At one moment: 100 s on the shard's clock, 2020-09-13T12:26:40Z.
observer::event_source source() {
  return {std::make_shared<observer::shard_names>(names()),
          std::chrono::steady_clock::time_point(100s),
          std::chrono::system_clock::time_point(1'600'000'000s)};
}

figures after(const std::vector<observer::shard_event>& events) {
  figures_recorder recorder;
  for (const observer::shard_event& event : events) recorder.record(source(), event);
  return recorder.now();
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

std::string sample(const std::string& name, const std::string& value,
                   const std::string& label = {}) {
  return name + R"({application="billing",stream="orders",shard="shardId-000000000003")" +
         (label.empty() ? "" : "," + label) + "} " + value;
}

}  // namespace

TEST_CASE("each event changes the metrics that stand for it", "[observability][metrics]") {
  using outcome = observer::callback_ended::outcome;
  const figures now = after({
      observer::lease_gained{},
      observer::batch_delivered{.records = 3, .bytes = 30, .millis_behind_latest = 1500ms},
      observer::callback_ended{observer::callback_kind::process_records, 20ms},
      observer::batch_delivered{.records = 2, .bytes = 12},
      observer::callback_ended{observer::callback_kind::process_records, 80ms, outcome::threw,
                               "disk full"},
      observer::checkpoint_requested{at},
      observer::checkpoint_answered{at, 6ms},
      observer::checkpoint_answered{at, 6ms, "ThrottlingException"},
      observer::checkpoint_answered{at, 6ms, "AnErrorOfLaterYears"},
      observer::record_attempted{.position = at, .attempt = 1, .duration = 2ms},
      observer::record_retried{.position = at, .delay = 200ms},
      observer::record_retried{.position = at, .delay = 400ms},
      observer::record_parked{.position = at},
      observer::record_skipped{.position = at},
      observer::circuit_changed{.is_open = true, .failures = 20},
      observer::handlers_stuck{.handlers = 2},
      observer::gap_suspected{at, {}, {}, 25h, 24h},
  });
  CHECK(now.counter(metrics_recorder::metric::gaps) == 1);
  CHECK(now.counter(metrics_recorder::metric::batches) == 2);
  CHECK(now.counter(metrics_recorder::metric::records) == 5);
  CHECK(now.counter(metrics_recorder::metric::record_bytes) == 42);
  CHECK(now.gauge(metrics_recorder::metric::behind_latest) == 1.5);
  CHECK(now.gauge(metrics_recorder::metric::last_batch) == 1'600'000'000);
  CHECK(now.histogram(metrics_recorder::metric::process_duration).count() == 2);
  CHECK(now.histogram(metrics_recorder::metric::process_duration).sum == Approx(0.1));
  CHECK(now.counter(metrics_recorder::metric::callback_errors) == 1);
  CHECK(now.counter(metrics_recorder::metric::checkpoints) == 1);
  CHECK(now.counter(metrics_recorder::metric::checkpoint_errors) == 2);
  CHECK(now.histogram(metrics_recorder::metric::checkpoint_duration).count() == 3);
  CHECK(now.histogram(metrics_recorder::metric::record_duration).count() == 1);
  CHECK(now.counter(metrics_recorder::metric::retries) == 2);
  CHECK(now.counter(metrics_recorder::metric::parked_records) == 1);
  CHECK(now.counter(metrics_recorder::metric::skipped_records) == 1);
  CHECK(now.gauge(metrics_recorder::metric::circuit_open) == 1);
  CHECK(now.gauge(metrics_recorder::metric::stuck_handlers) == 2);
}

TEST_CASE("a lease ends once, with its reason or else with the session's",
          "[observability][metrics]") {
  using reason = observer::lease_ended::reason;
  struct end {
    std::vector<observer::shard_event> events;
    const char* label;
  };
  const observer::session_ended closed{exit_status::ok};
  const observer::session_ended failed{exit_status::callback_stuck};
  const end sample = GENERATE_COPY(values<end>({
      {{observer::lease_ended{reason::lost}, closed}, "lost"},
      {{observer::lease_ended{reason::shard_finished}, failed}, "finished"},
      {{closed}, "closed"},
      {{failed}, "failed"},
  }));
  CAPTURE(sample.label);
  std::vector<observer::shard_event> events{observer::lease_gained{}};
  events.insert(events.end(), sample.events.begin(), sample.events.end());
  const figures now = after(events);
  CHECK(now.counter(metrics_recorder::metric::leases_gained) == 1);
  CHECK(now.counter(metrics_recorder::metric::leases_ended) == 1);
  CHECK(now.counter(metrics_recorder::metric::leases_ended, sample.label) == 1);
}

TEST_CASE("a circuit that closes, or whose lease ends, is no longer reported as open",
          "[observability][metrics]") {
  const observer::shard_event end =
      GENERATE(as<observer::shard_event>(), observer::circuit_changed{}, observer::lease_ended{});
  const figures now = after({observer::circuit_changed{.is_open = true, .failures = 20}, end});
  CHECK(now.gauge(metrics_recorder::metric::circuit_open) == 0);
}

TEST_CASE("without a window the open batch is in flight", "[observability][metrics]") {
  figures_recorder recorder;
  recorder.record(source(), observer::batch_delivered{.records = 3, .bytes = 30});
  CHECK(recorder.now().gauge(metrics_recorder::metric::in_flight_records) == 3);
  CHECK(recorder.now().gauge(metrics_recorder::metric::in_flight_bytes) == 30);
  CHECK(recorder.now().gauge(metrics_recorder::metric::oldest_in_flight) == 1'600'000'000);
  recorder.record(source(),
                  observer::callback_ended{observer::callback_kind::process_records, 1ms});
  CHECK(recorder.now().gauge(metrics_recorder::metric::in_flight_records) == 0);
  CHECK(recorder.now().gauge(metrics_recorder::metric::oldest_in_flight) == 0);
}

TEST_CASE("with a window its records are in flight, until the lease ends",
          "[observability][metrics]") {
  figures_recorder recorder;
  recorder.record(
      source(), observer::window_changed{.records = 7, .bytes = 70, .oldest = source().time - 2s});
  recorder.record(source(), observer::batch_delivered{.records = 3, .bytes = 30});
  recorder.record(source(),
                  observer::callback_ended{observer::callback_kind::process_records, 1ms});
  CHECK(recorder.now().gauge(metrics_recorder::metric::in_flight_records) == 7);
  CHECK(recorder.now().gauge(metrics_recorder::metric::in_flight_bytes) == 70);
  CHECK(recorder.now().gauge(metrics_recorder::metric::oldest_in_flight) == 1'600'000'000 - 2);
  recorder.record(source(), observer::lease_ended{observer::lease_ended::reason::lost});
  CHECK(recorder.now().gauge(metrics_recorder::metric::in_flight_records) == 0);
}

TEST_CASE("once the lease has ended no process serves the shard",
          "[observability][metrics][health]") {
  figures_recorder recorder;
  recorder.record(source(), observer::lease_gained{});
  CHECK(recorder.now().gauge(metrics_recorder::metric::process_id) == ::getpid());
  recorder.record(source(), observer::lease_ended{observer::lease_ended::reason::lost});
  CHECK(recorder.now().gauge(metrics_recorder::metric::process_id) == 0);
}

TEST_CASE("the oldest call is the callback, or the attempt in it, and no wait for a retry",
          "[observability][metrics][health]") {
  figures_recorder recorder;
  auto after_event = [&, passed = 0s](const observer::shard_event& event) mutable {
    observer::event_source later = source();
    later.date += (passed += 10s);
    recorder.record(later, event);
    const double began = recorder.now().gauge(metrics_recorder::metric::oldest_call);
    return began == 0 ? -1 : began - 1'600'000'000;
  };
  CHECK(after_event(observer::lease_gained{}) == 10);
  CHECK(after_event(observer::callback_ended{observer::callback_kind::initialize, 1s}) == -1);
  CHECK(after_event(observer::batch_delivered{.records = 2}) == 30);
  CHECK(after_event(observer::checkpoint_answered{sequence_position("1"), 1s}) == 30);
  CHECK(after_event(
            observer::record_attempted{.position = sequence_position("1"), .duration = 1s}) == 50);
  CHECK(after_event(observer::record_retried{.position = sequence_position("2"), .delay = 7s}) ==
        67);
  CHECK(after_event(observer::callback_ended{observer::callback_kind::process_records, 1s}) == -1);
  // Of a handler beside the callbacks, only a report tells.
  CHECK(after_event(
            observer::record_attempted{.position = sequence_position("3"), .duration = 1s}) == -1);
  CHECK(after_event(observer::handlers_stuck{.handlers = 1, .oldest_age = 60s}) == 30);
  CHECK(after_event(observer::batch_delivered{}) == 30);
  CHECK(after_event(observer::handlers_stuck{.handlers = 2, .oldest_age = 80s}) == 30);
  CHECK(after_event(observer::callback_ended{observer::callback_kind::process_records, 1s}) == 30);
  CHECK(after_event(observer::handlers_stuck{.handlers = 1, .oldest_age = 60s}) == 70);
  CHECK(after_event(observer::handlers_stuck{}) == -1);
  CHECK(after_event(observer::handlers_stuck{.handlers = 1, .oldest_age = 60s}) == 90);
  CHECK(after_event(observer::lease_ended{observer::lease_ended::reason::lost}) == -1);
}

TEST_CASE("however many names of errors come, few series are kept", "[observability][metrics]") {
  figures_recorder recorder;
  for (int i = 0; i < 1000; ++i) {
    recorder.record(source(), observer::checkpoint_answered{at, 1ms, "Error" + std::to_string(i)});
  }
  CHECK(recorder.now().counter(metrics_recorder::metric::checkpoint_errors) == 1000);
  const std::string text = to_prometheus_text(recorder.now(), names());
  CHECK(text.find("error=\"other\"") != std::string::npos);
  std::size_t series = 0;
  for (std::size_t i = 0; (i = text.find("error=\"", i)) != std::string::npos; ++i) ++series;
  CHECK(series == 7);
}

TEST_CASE("the text has every family with its help, from the start", "[observability][metrics]") {
  const std::string text = to_prometheus_text(figures(), names()) +
                           lease_counters_text("", figures(), figures(), names());
  std::set<std::string_view> seen;
  for (const metrics_recorder::metric_family& family : metrics_recorder::families()) {
    const std::string name(family.name);
    CAPTURE(name);
    CHECK(seen.insert(family.name).second);
    CHECK(text.find("# HELP " + name + " " + std::string(family.help) + "\n# TYPE " + name) !=
          std::string::npos);
    CHECK(text.find("\n" + name +
                    (family.type == metrics_recorder::metric_type::histogram ? "_bucket" : "") +
                    "{application=\"billing\"") != std::string::npos);
  }
  CHECK(has_line(text, sample("kclxx_records_total", "0")));
  CHECK(has_line(text, sample("kclxx_checkpoint_errors_total", "0", R"(error="not answered")")));
}

TEST_CASE("histograms are cumulative and have OpenTelemetry's buckets",
          "[observability][metrics]") {
  const std::string text = to_prometheus_text(
      after({observer::callback_ended{observer::callback_kind::process_records, 5ms},
             observer::callback_ended{observer::callback_kind::process_records, 60ms},
             observer::callback_ended{observer::callback_kind::process_records, 60s}}),
      names());
  const auto bucket = [&](const std::string& bound, const std::string& count) {
    return has_line(text,
                    sample("kclxx_process_duration_seconds_bucket", count, "le=\"" + bound + "\""));
  };
  CHECK(bucket("0.005", "1"));
  CHECK(bucket("0.05", "1"));
  CHECK(bucket("0.075", "2"));
  CHECK(bucket("10", "2"));
  CHECK(bucket("+Inf", "3"));
  CHECK(has_line(text, sample("kclxx_process_duration_seconds_count", "3")));
}

TEST_CASE("the worker's random id and timestamps are in no line", "[observability][metrics]") {
  const std::string text = to_prometheus_text(after({observer::lease_gained{}}), names());
  CHECK(text.find("a-random-worker") == std::string::npos);
  CHECK(metrics_file_name(names()).find("a-random-worker") == std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    CAPTURE(line);
    // A name with labels and a value, nothing after.
    const std::size_t end_of_labels = line.find("} ");
    REQUIRE(end_of_labels != std::string::npos);
    CHECK(line.find(' ', end_of_labels + 2) == std::string::npos);
  }
}

TEST_CASE("labels are escaped, and names of files stay distinct", "[observability][metrics]") {
  const observer::shard_names odd{"shardId-1", std::nullopt, "a\"b\\c\nd/e", std::nullopt};
  const std::string text = to_prometheus_text(figures(), odd);
  CHECK(text.find(R"(application="a\"b\\c\nd/e",stream="unknown")") != std::string::npos);
  CHECK(metrics_file_name(odd) == "kclxx.a%22b%5Cc%0Ad%2Fe.unknown.shardId-1.prom");
  CHECK(metrics_file_name({"shardId-1", {}, {}, {}}) == "kclxx.unknown.unknown.shardId-1.prom");
  CHECK(metrics_file_name({"b.c", {}, "a", {}}) != metrics_file_name({"c", {}, "a.b", {}}));
  CHECK(metrics_file_name({"c", "b", "a", {}}) == "kclxx.a.b.c.prom");
  CHECK(metrics_file_name({"c", "b", "a", {}}) != metrics_file_name({"c", {}, "a.b", {}}));
}

TEST_CASE("the longest names of AWS make a name of a file, and stay distinct",
          "[observability][metrics]") {
  const auto name_of = [](char last) {
    return metrics_file_name({"shardId-000000000007", std::string(127, 's') + last,
                              std::string(255, '.'), std::nullopt});
  };
  CHECK(name_of('a').size() == 200);
  CHECK(name_of('a').starts_with("kclxx."));
  CHECK(name_of('a').ends_with("a.shardId-000000000007.prom"));
  CHECK(name_of('a') != name_of('b'));
}

TEST_CASE("the program's own figures have the shard's labels", "[observability][metrics]") {
  using type = own_metric::metric_type;
  const auto refused = [](const std::string& name, const std::string& why) {
    FAIL(name + ": " + why);
  };
  const std::string labels =
      "{application=\"billing\",stream=\"orders\",shard=\"shardId-000000000003\"";
  CHECK(own_metrics_text({{"queue_depth", "Orders, \\ and \n", type::gauge, {}, 1.5},
                          {"clicks_total", "", type::counter, {{"page", "a\"b\n\\"}}, 7},
                          {"queue_depth", "Orders, \\ and \n", type::gauge, {{"of", "x"}}, -2},
                          {"clicks_total", "", type::counter, {{"page", "b"}, {"app", ""}}, 1e20}},
                         names(), refused) ==
        "# HELP clicks_total clicks_total\n# TYPE clicks_total counter\n"
        "clicks_total" +
            labels +
            R"(,page="a\"b\n\\"} 7)"
            "\n"
            "clicks_total" +
            labels +
            ",page=\"b\"} 1e+20\n"
            R"(# HELP queue_depth Orders, \\ and \n)"
            "\n# TYPE queue_depth gauge\n"
            "queue_depth" +
            labels +
            "} 1.5\n"
            "queue_depth" +
            labels + ",of=\"x\"} -2\n");
  CHECK(own_metrics_text({}, names(), refused).empty());
}

TEST_CASE("a figure that Prometheus would not accept is left out alone",
          "[observability][metrics]") {
  using type = own_metric::metric_type;
  const own_metric good{"x", "h", type::gauge, {{"a", "1"}}, 1};
  const auto reason = [&](const own_metric& bad) {
    std::string why;
    const std::string text =
        own_metrics_text({good, bad}, names(), [&](auto&, const auto& problem) {
          CHECK(why.empty());
          why = problem;
        });
    CHECK(text == own_metrics_text({good}, names(), {}));
    return why;
  };
  for (const std::string name :
       {"", "2x", "x y", "x\n", "x{a=\"b\"}", "\xc3\xa9", "x-y", "kclxx_x"}) {
    INFO(name);
    CHECK_FALSE(reason({name, "", type::gauge, {}, 1}).empty());
  }
  for (const std::string label :
       {"", "2", "a:b", "__name__", "shard", "stream", "application", "a\""}) {
    INFO(label);
    CHECK_FALSE(reason({"y", "", type::gauge, {{label, "v"}}, 1}).empty());
  }
  CHECK(reason({"y", "\xff", type::gauge, {}, 1}) == "its help is not UTF-8");
  CHECK(reason({"y", "", type::gauge, {{"a", "\xff"}}, 1}) ==
        "the value of the label 'a' is not UTF-8");
  CHECK(reason({"y", "", type::gauge, {{"a", "1"}, {"a", "2"}}, 1}) ==
        "the label 'a' is there twice");
  CHECK(reason({"x", "h", type::gauge, {{"b", ""}, {"a", "1"}}, 1}) ==
        "it has two values with the same labels");
}

TEST_CASE("CloudWatch's line declares each metric that it has, with a unit",
          "[observability][metrics]") {
  const figures before = after({observer::batch_delivered{.records = 100, .bytes = 100}});
  const figures now =
      after({observer::batch_delivered{.records = 100, .bytes = 100},
             observer::batch_delivered{.records = 7, .bytes = 70, .millis_behind_latest = 1500ms},
             observer::callback_ended{observer::callback_kind::process_records, 4ms}});
  const auto line = nlohmann::json::parse(cloudwatch_line(before, now, names(), source().date));
  CHECK(line["_aws"]["Timestamp"] == 1'600'000'000'000);
  const auto& declared = line["_aws"]["CloudWatchMetrics"][0];
  CHECK(declared["Namespace"] == "kclxx");
  CHECK(declared["Dimensions"] ==
        nlohmann::json::parse(R"([["Application","Stream"],["Application","Stream","Shard"]])"));
  CHECK(line["Application"] == "billing");
  CHECK(line["Stream"] == "orders");
  CHECK(line["Shard"] == "shardId-000000000003");
  CHECK(line["Records"] == 7);
  CHECK(line["RecordBytes"] == 70);
  CHECK(line["BehindLatest"] == 1.5);
  CHECK(line["ProcessDuration"] == Approx(0.004).epsilon(0.001));
  CHECK_FALSE(line.contains("CheckpointDuration"));  // nothing was measured
  std::set<std::string> declared_names;
  for (const auto& one : declared["Metrics"]) {
    declared_names.insert(one["Name"]);
    CHECK(line.contains(std::string(one["Name"])));
    CHECK(one["Unit"].get<std::string>().size() > 0);
  }
  CHECK(line.size() == declared_names.size() + 4);
}

TEST_CASE("a name that is not known is no dimension of CloudWatch's", "[observability][metrics]") {
  const auto line = nlohmann::json::parse(
      cloudwatch_line(figures(), figures(), {"shardId-1", {}, {}, {}}, source().date));
  CHECK(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] ==
        nlohmann::json::parse(R"([[],["Shard"]])"));
}

namespace {

// The table of docs/metrics.md is made from the families, so that none is undocumented.
const std::string path = std::string(KCLXX_SOURCE_DIR) + "/docs/metrics.md";
constexpr std::string_view end_mark = "<!-- end -->";

std::string table() {
  static constexpr const char* types[] = {"counter", "gauge", "histogram"};
  std::string text = "| family | type | meaning |\n|---|---|---|\n";
  for (const metrics_recorder::metric_family& family : metrics_recorder::families()) {
    text.append("| `").append(family.name).append("`");
    if (!family.label.empty()) text.append(" `{").append(family.label).append("}`");
    text.append(" | ").append(types[static_cast<std::size_t>(family.type)]);
    text.append(" | ").append(family.help).append(" |\n");
  }
  return text;
}

}  // namespace

TEST_CASE("docs/metrics.md has the table of the families", "[observability][metrics]") {
  const std::string page = test::read_file(path);
  const std::size_t mark = page.find("<!-- families:");
  REQUIRE(mark != std::string::npos);
  const std::size_t begin = page.find('\n', mark) + 1;
  const std::size_t end = page.find(end_mark, begin);
  REQUIRE(end != std::string::npos);
  if (std::getenv("KCLXX_WRITE_DOCS") != nullptr) {
    std::ofstream(path) << page.substr(0, begin) + table() + page.substr(end);
  } else {
    CHECK(page.substr(begin, end - begin) == table());
  }
}

}  // namespace kclxx::observability
