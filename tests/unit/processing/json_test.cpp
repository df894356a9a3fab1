// SPDX-License-Identifier: Apache-2.0
// json(): handlers that take a value of the program's own type.
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
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

struct click_of_macro {
  std::string page;
  std::uint64_t at = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(click_of_macro, page, at)

const std::string first = R"({"page": "/a", "at": 7, "user": "u"})";
const std::string second = R"({"page": "/b", "at": 8})";

}  // namespace

TEST_CASE("a function of a value gets what is in each record", "[processing][json]") {
  strings got;
  const auto program = [&] {
    switch (GENERATE(0, 1, 2, 3, 4)) {
      case 0:
        return each(json<click>([&](const click& value) { got.push_back(value.page); }));
      case 1:
        return each(json<click>([&](click value, const record& from) {
          CHECK(value.at == nlohmann::json::parse(from.data()).at("at"));
          got.push_back(std::move(value.page));
        }));
      case 2:
        return each(json<click>([&](const click& value, const record&, const shard_context& shard) {
          CHECK(shard.shard_id() == "shardId-000000000000");
          got.push_back(value.page);
        }));
      case 3:  // for each shard, and move-only
        return each(json<click>([&](const shard_context&) {
          return [&got, own = std::make_unique<int>()](const auto& value) {
            got.push_back(value.page);
          };
        }));
      default:
        return each(json<nlohmann::json>([&](const nlohmann::json& value) {
          got.push_back(value.at("page").get<std::string>());
        }));
    }
  }();
  testing::worker with(program);
  with.initialize().deliver({first, second}).request_shutdown();
  INFO(with);
  CHECK(got == strings{"/a", "/b"});
  CHECK(with.persisted() == sequence_position("2"));
}

TEST_CASE("what does not parse is parked at once, with the parser's reason", "[processing][json]") {
  int calls = 0;
  const auto lot = std::make_shared<memory_lot>();
  testing::worker with(each(json<click>([&](const click&) { ++calls; }),
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
  for (const auto& parked : lot->all) CHECK(parked.attempts == 1);
}

TEST_CASE("data with too many levels of values is parked, and exhausts no stack",
          "[processing][json]") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  const std::string in_a_text = R"({"page": "\"[" , "at": [")" + std::string(2000, '[') + "\"]}";
  const std::string side_by_side = "[[[]" + std::string(4000, ' ') + "]" + [] {
    std::string elements;
    for (int i = 0; i < 2000; ++i) elements += ",[]";
    return elements;
  }() + "]";
  strings got;
  const auto lot = std::make_shared<memory_lot>();
  testing::worker with(
      each(json<nlohmann::json>([&](const nlohmann::json& value) { got.push_back(value.dump()); }),
           {.bad_record = bad_record::park, .lot = lot}));
  with.initialize()
      .deliver({nested(1024), nested(1025), nested(400'000), in_a_text, side_by_side})
      .request_shutdown();
  CHECK(got.size() == 3);
  REQUIRE(lot->all.size() == 2);
  CHECK(lot->all[1].last_error == "values are nested deeper than 1024 levels");
  CHECK(with.persisted() == sequence_position("5"));
}

TEST_CASE("a function of a batch gets the values that parse, with their records",
          "[processing][json][batches]") {
  strings got;
  const auto lot = std::make_shared<memory_lot>();
  testing::worker with(batches(json<click>([&](json_batch<click> clicks) {
                                 for (const auto& [value, from] : clicks) {
                                   got.push_back(value.page + to_string(from.position()));
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

TEST_CASE("a position outside the batch completes no value, beside one that did not parse, too",
          "[processing][json][batches]") {
  const sequence_position outside("99");
  const bool names_all = GENERATE(false, true);
  strings done;
  const auto lot = std::make_shared<memory_lot>();
  testing::worker with(batches(json<click>([&, calls = 0](json_batch<click> clicks) mutable {
                                 if (++calls == 1 && names_all)
                                   throw batch_failure({{outside}, {sequence_position("2", 5)}});
                                 if (calls == 1) throw batch_failure(outside);
                                 for (const auto& parsed : clicks)
                                   done.push_back(parsed.value.page);
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
  testing::worker with(batches(json<click>([&](const shard_context&) {
    return [&](json_batch<click> clicks) {
      CHECK(clicks.after(sequence_position("TRIM_HORIZON")).size() == 2);
      for (const auto& parsed : clicks.after(sequence_position("1")))
        got.push_back(parsed.value.page);
    };
  })));
  with.initialize().deliver({first, second}).request_shutdown();
  INFO(with);
  CHECK(got == strings{"/b"});
}

namespace {

/// The value's text in JSON, or "refused".
template <class Value>
std::string read(const std::string& text) {
  std::string got = "refused";
  testing::worker with(
      each(json<Value>([&](const Value& value) { got = nlohmann::json(value).dump(); }),
           {.bad_record = bad_record::skip}));
  with.initialize().deliver({text}).request_shutdown();
  CHECK(with.persisted() == sequence_position("1"));
  return got;
}

/// A value whose from_json throws what has no text.
struct silent {};
void from_json(const nlohmann::json&, silent&) {
  struct error : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return nullptr; }
  };
  throw error();
}
void to_json(nlohmann::json&, const silent&) {}

struct counted_click : click {
  static inline int conversions = 0;
};
void from_json(const nlohmann::json& from, counted_click& to) {
  ++counted_click::conversions;
  from_json(from, static_cast<click&>(to));
}
[[maybe_unused]] void to_json(nlohmann::json& to, const counted_click& from) {
  to = {{"page", from.page}, {"at", from.at}};
}

const std::string no_page = R"({"page": "", "at": 6})";

}  // namespace

TEST_CASE("from_json is called once for an attempt, whatever it makes of the numbers",
          "[processing][json]") {
  counted_click::conversions = 0;
  const auto lot = std::make_shared<memory_lot>();
  const failure_policy policy{.bad_record = bad_record::park, .lot = lot};
  strings got;
  const auto handle = [&](const counted_click& value) {
    got.push_back(std::to_string(value.at));
    if (got.size() == 1) throw std::runtime_error("once");
  };
  const auto program = [&] {
    switch (GENERATE(0, 1, 2)) {
      case 0:
        return each(json<counted_click>(handle), policy);
      case 1:
        return batches(json<counted_click>([&](json_batch<counted_click> clicks) {
                         for (const auto& click : clicks) handle(click.value);
                       }),
                       policy);
      default:
        return parallel(
            json<counted_click>(handle, [](const counted_click& value) { return value.page; }),
            policy);
    }
  }();
  testing::worker with(program);
  with.initialize().deliver({R"({"page": "/a", "at": 1.5})"});  // fails once
  with.deliver({no_page, R"({"page": "/a", "at": -1})"}).end_shard();
  INFO(with);
  CHECK(got == strings{"1", "1", "18446744073709551615"});
  CHECK(lot->data() == strings{no_page});
  CHECK(counted_click::conversions == 4);
}

TEST_CASE("an exception of from_json without a text is permanent, too", "[processing][json]") {
  CHECK(read<silent>("{}") == "refused");
}

TEST_CASE("a NUL is refused, for which the parser would end the value", "[processing][json]") {
  CHECK(read<click_of_macro>(first) != "refused");
  CHECK(read<click_of_macro>(first + '\0') == "refused");
  CHECK(read<click_of_macro>(first + '\0' + second) == "refused");
  CHECK(read<std::string>(std::string("\"a\0b\"", 5)) == "refused");
  CHECK(read<std::string>(std::string("\"a\\\0\"", 5)) == "refused");
}

TEST_CASE("where the function of a batch stops, no complete value comes again",
          "[processing][json][batches]") {
  const std::size_t where = GENERATE(0U, 1U, 2U, 3U, 4U);  // what does not parse, or nothing
  const bool is_named =
      GENERATE(false, true);  // the second value, or that all before it are complete
  CAPTURE(where, is_named);
  std::vector<strings> calls;
  const auto lot = std::make_shared<memory_lot>();
  testing::worker with(batches(json<int>([&](json_batch<int> values) {
                                 calls.emplace_back();
                                 for (const auto& parsed : values) {
                                   calls.back().push_back(std::to_string(parsed.value));
                                 }
                                 if (calls.size() > 1) return;
                                 const auto at = values[1].record.position();
                                 if (!is_named) throw batch_failure(at);
                                 throw batch_failure(std::vector<batch_failure::failed>{{at, {}}});
                               }),
                               {.bad_record = bad_record::park, .lot = lot}));
  strings data{"1", "2", "3"};
  if (where < 4) data.insert(data.begin() + static_cast<std::ptrdiff_t>(where), "x");
  with.initialize().deliver(data).request_shutdown();
  INFO(with);
  const strings again = is_named ? strings{"2"} : strings{"2", "3"};
  CHECK(calls == std::vector<strings>{{"1", "2", "3"}, again});
  CHECK(lot->data() == (where < 4 ? strings{"x"} : strings{}));
  CHECK(with.persisted() == sequence_position(std::to_string(data.size())));
}

TEST_CASE("a function of a value and a completion reports when it likes",
          "[processing][json][completions]") {
  const bool takes_shard = GENERATE(false, true);
  const auto lot = std::make_shared<memory_lot>();
  std::vector<std::pair<click, completion>> started;
  const auto start = [&](click value, completion whose) {
    started.emplace_back(std::move(value), std::move(whose));
  };
  const failure_policy policy{.bad_record = bad_record::park, .lot = lot};
  testing::worker with(takes_shard ? parallel(json<click>([&](click value, completion whose,
                                                              const shard_context& shard) {
                                                CHECK(shard.shard_id() == "shardId-000000000000");
                                                start(std::move(value), std::move(whose));
                                              }),
                                              policy)
                                   : parallel(json<click>([&](click value, completion whose) {
                                                start(std::move(value), std::move(whose));
                                              }),
                                              policy));
  with.initialize();
  deliver(with, {{"a", first}, {"b", "no value"}, {"c", second}});
  INFO(with);
  REQUIRE(started.size() == 2);
  CHECK(started[1].first.at == 8);
  CHECK(lot->data() == strings{"no value"});
  for (auto& [value, whose] : started) whose.complete();
  with.request_shutdown();
  CHECK(with.persisted() == sequence_position("3"));
}

TEST_CASE("the key of parallel can be taken from the value, which is parsed once",
          "[processing][json][parallel]") {
  counted_click::conversions = 0;
  std::map<std::string, std::vector<std::uint64_t>> got;
  const auto lot = std::make_shared<memory_lot>();
  int failures = 1;
  const auto of_value = json<counted_click>(
      [&](const counted_click& value) {
        if (value.at == 1 && failures-- > 0) throw std::runtime_error("once");
        got[value.page].push_back(value.at);
      },
      [](const counted_click& value) { return value.page; });
  const failure_policy policy{.bad_record = bad_record::park, .lot = lot};
  testing::worker with(parallel(of_value, policy, {.lanes = 4}), prompt());
  with.initialize();
  // The keys of the records would have another order: /a's first fails, and its second waits.
  deliver(with, {{"x", R"({"page": "/a", "at": 1})"},
                 {"y", R"({"page": "/a", "at": 2})"},
                 {"x", R"({"page": "/b", "at": 1})"},
                 {"x", "no value"}});
  with.end_shard();
  INFO(with);
  CHECK(got == std::map<std::string, std::vector<std::uint64_t>>{{"/a", {1, 2}}, {"/b", {1}}});
  CHECK(lot->data() == strings{"no value"});
  CHECK(counted_click::conversions == 4);  // three values, of which one was tried again

  CHECK_THROWS_AS(
      parallel(of_value, policy, {.key = [](const record&) { return "k"; }}).require_valid(),
      std::invalid_argument);
  CHECK_THROWS_AS(parallel(of_value, policy, {.lanes = 0}).require_valid(), std::invalid_argument);
}

TEST_CASE("what the key of a value throws is no failure of the record",
          "[processing][json][parallel]") {
  testing::worker with(parallel(
      json<click>([](const click&) {},
                  [](const click&) -> std::string { throw std::runtime_error("no key"); })));
  with.initialize();
  deliver(with, {{"x", first}});
  INFO(with);
  CHECK(with.exit_status() == exit_status::callback_failed);
}

TEST_CASE("a function that makes the handler of a shard is none of any JSON",
          "[processing][json]") {
  int values = 0;
  testing::worker with(each(json<nlohmann::json>([&](const shard_context&) {
    return [&](const nlohmann::json& value) { values += value.get<int>(); };
  })));
  with.initialize().deliver({"1", "2"}).end_shard();
  CHECK(values == 3);
}

TEST_CASE("with an empty function of a value no form makes a valid factory", "[processing][json]") {
  const std::function<void(const click&)> none;
  const auto handle = [](const click&) {};
  const auto key = [](const click&) { return std::string(); };
  CHECK_FALSE(each(json<click>(none)).is_valid());
  CHECK_FALSE(parallel(json<click>(none)).is_valid());
  CHECK_FALSE(batches(json<click>(std::function<void(json_batch<click>)>())).is_valid());
  CHECK_FALSE(parallel(json<click>(none, key)).is_valid());
  CHECK_FALSE(parallel(json<click>(handle, std::function<std::string(const click&)>())).is_valid());
  CHECK(parallel(json<click>(handle, key)).is_valid());
}

}  // namespace kclxx::test
