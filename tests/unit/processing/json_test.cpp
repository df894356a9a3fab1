// SPDX-License-Identifier: Apache-2.0
// json(): handlers that take a value of the program's own type.
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kclxx/json.hpp>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

struct click {
  std::string page;
  std::uint64_t at = 0;
};

void from_json(const nlohmann::json& from, click& to) {
  from.at("page").get_to(to.page);
  from.at("at").get_to(to.at);
  if (to.page.empty()) throw std::invalid_argument("an empty page");
}

const std::string first = R"({"page": "/a", "at": 7, "user": "u"})";
const std::string second = R"({"page": "/b", "at": 8})";

}  // namespace

TEST_CASE("a function of a value gets what is in each record", "[processing][json]") {
  strings got;
  const auto program = [&] {
    switch (GENERATE(0, 1, 2, 3, 4)) {
      case 0:
        return each(json<click>([&](const click& one) { got.push_back(one.page); }));
      case 1:
        return each(json<click>([&](click one, const record& from) {
          CHECK(one.at == nlohmann::json::parse(from.data()).at("at"));
          got.push_back(std::move(one.page));
        }));
      case 2:
        return each(json<click>([&](const click& one, const record&, const shard_context& shard) {
          CHECK(shard.shard_id() == "shardId-000000000000");
          got.push_back(one.page);
        }));
      case 3:  // for each shard, and move-only
        return each(json<click>([&](const shard_context&) {
          return
              [&got, own = std::make_unique<int>()](const auto& one) { got.push_back(one.page); };
        }));
      default:
        return each(json<nlohmann::json>(
            [&](const nlohmann::json& one) { got.push_back(one.at("page").get<std::string>()); }));
    }
  }();
  testing::daemon with(program);
  with.initialize().deliver({first, second}).request_shutdown();
  INFO(with);
  CHECK(got == strings{"/a", "/b"});
  CHECK(with.persisted() == sequence_position("2"));
}

TEST_CASE("what does not parse is parked at once, with the parser's reason", "[processing][json]") {
  int calls = 0;
  const auto lot = std::make_shared<memory_lot>();
  testing::daemon with(each(json<click>([&](const click&) { ++calls; }),
                            {.bad_record = bad_record::park, .lot = lot}));
  with.initialize()
      .deliver({"no", R"({"page": "/"})", R"({"page": 5, "at": 6})", R"({"page": "", "at": 6})",
                "\xff\n", "", first})
      .request_shutdown();
  INFO(with);
  CHECK(calls == 1);
  CHECK(with.persisted() == sequence_position("7"));
  REQUIRE(lot->all.size() == 6);
  const auto reason = [&](std::size_t which) { return lot->all[which].last_error; };
  CHECK(reason(0).find("parse error at line 1, column 2") != std::string::npos);
  CHECK(reason(1).find("key 'at' not found") != std::string::npos);
  CHECK(reason(2).find("type must be string") != std::string::npos);
  CHECK(reason(3) == "an empty page");
  CHECK(reason(4).find("last read: '?'") != std::string::npos);  // a text in UTF-8
  CHECK(reason(5).find("unexpected end of input") != std::string::npos);
  for (const auto& one : lot->all) CHECK(one.attempts == 1);
}

TEST_CASE("data with too many levels of values is parked, and exhausts no stack",
          "[processing][json]") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  const std::string in_a_text = R"({"page": "\"[" , "at": [")" + std::string(2000, '[') + "\"]}";
  const std::string side_by_side = "[[[]" + std::string(4000, ' ') + "]" + [] {
    std::string more;
    for (int i = 0; i < 2000; ++i) more += ",[]";
    return more;
  }() + "]";
  strings got;
  const auto lot = std::make_shared<memory_lot>();
  testing::daemon with(
      each(json<nlohmann::json>([&](const nlohmann::json& one) { got.push_back(one.dump()); }),
           {.bad_record = bad_record::park, .lot = lot}));
  with.initialize()
      .deliver({nested(1024), nested(1025), nested(400'000), in_a_text, side_by_side})
      .request_shutdown();
  CHECK(got.size() == 3);
  REQUIRE(lot->all.size() == 2);
  CHECK(lot->all[1].last_error == "values are nested deeper than 1024 levels");
  CHECK(with.persisted() == sequence_position("5"));
}

TEST_CASE("a handler of values fails as any other", "[processing][json]") {
  int calls = 0;
  testing::daemon with(each(json<click>([&](const click&) {
    if (++calls == 1) throw std::runtime_error("busy");
  })));
  with.initialize().deliver({first}).request_shutdown();
  INFO(with);
  CHECK(calls == 2);
  CHECK(with.persisted() == sequence_position("1"));
}

TEST_CASE("a function of a batch gets the values that parse, with their records",
          "[processing][json][batches]") {
  strings got;
  const auto lot = std::make_shared<memory_lot>();
  testing::daemon with(batches(json<click>([&](json_batch<click> clicks) {
                                 for (const auto& [one, from] : clicks) {
                                   got.push_back(one.page + to_string(from.position()));
                                 }
                               }),
                               {.bad_record = bad_record::park, .lot = lot}));
  with.initialize().deliver({"no", first, "no, too", second}).deliver({"not one"});
  with.request_shutdown();
  INFO(with);
  CHECK(got == strings{"/a2/0", "/b4/0"});
  CHECK(lot->data() == strings{"no", "no, too", "not one"});
  CHECK(lot->all[0].last_error.find("parse error") != std::string::npos);
  CHECK(with.persisted() == sequence_position("5"));
}

TEST_CASE("what the function of a batch reports does not complete a record that did not parse",
          "[processing][json][batches]") {
  const auto busy = std::make_exception_ptr(std::runtime_error("busy"));
  strings done;
  int calls = 0;
  const bool names_all = GENERATE(false, true);
  const auto lot = std::make_shared<memory_lot>();
  testing::daemon with(
      batches(json<click>([&](json_batch<click> clicks, const shard_context&) {
                if (++calls < 3) {
                  const auto at = clicks.back().record.position();
                  if (names_all) {
                    for (const auto& one : clicks.first(clicks.size() - 1)) {
                      done.push_back(one.value.page);
                    }
                    throw batch_failure(std::vector<batch_failure::failed>{{at, busy}});
                  }
                  throw batch_failure(clicks.front().record.position(), busy);
                }
                for (const auto& one : clicks) done.push_back(one.value.page);
              }),
              {.bad_record = bad_record::park, .lot = lot}));
  with.initialize().deliver({"no", first, "no, too", second, "nor this"}).request_shutdown();
  INFO(with);
  CHECK(done == strings{"/a", "/b"});
  CHECK(lot->data() == strings{"no", "no, too", "nor this"});
  CHECK(with.persisted() == sequence_position("5"));
}

TEST_CASE("a position outside the batch completes no value, beside one that did not parse, too",
          "[processing][json][batches]") {
  const sequence_position outside("99");
  const bool names_all = GENERATE(false, true);
  strings done;
  const auto lot = std::make_shared<memory_lot>();
  testing::daemon with(batches(json<click>([&, calls = 0](json_batch<click> clicks) mutable {
                                 if (++calls == 1 && names_all)
                                   throw batch_failure({{outside}, {sequence_position("2", 5)}});
                                 if (calls == 1) throw batch_failure(outside);
                                 for (const auto& one : clicks) done.push_back(one.value.page);
                               }),
                               {.bad_record = bad_record::park, .lot = lot}));
  with.initialize().deliver({first, "no", second}).request_shutdown();
  INFO(with);
  CHECK(done == strings{"/a", "/b"});
  CHECK(lot->data() == strings{"no"});
  CHECK(with.persisted() == sequence_position("3"));
}

TEST_CASE("values after a position", "[processing][json][batches]") {
  strings got;
  testing::daemon with(batches(json<click>([&](const shard_context&) {
    return [&](json_batch<click> clicks) {
      CHECK(clicks.after(sequence_position("TRIM_HORIZON")).size() == 2);
      for (const auto& one : clicks.after(sequence_position("1"))) got.push_back(one.value.page);
    };
  })));
  with.initialize().deliver({first, second}).request_shutdown();
  INFO(with);
  CHECK(got == strings{"/b"});
}

TEST_CASE("an empty function of a value is refused", "[processing][json]") {
  CHECK_THROWS_AS(json<click>(std::function<void(const click&)>()), std::invalid_argument);
}

}  // namespace kclxx::test
