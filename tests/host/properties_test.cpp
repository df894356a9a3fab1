// SPDX-License-Identifier: Apache-2.0
#include "host/daemon/properties.hpp"

#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace kclxx::host;

namespace {

using pairs = std::vector<std::pair<std::string, std::string>>;

pairs pairs_of(const properties& entries) {
  pairs result;
  for (const property& property : entries) result.emplace_back(property.key, property.value);
  return result;
}

pairs parsed(std::string_view text) { return pairs_of(parse_properties(text)); }

}  // namespace

TEST_CASE("a key ends at =, : or a blank") {
  const pairs expected{{"key", "value"}};
  for (const char* text : {"key=value", "key:value", "key value", "key = value", "\t key\f:\fvalue",
                           "key\tvalue\n", "key value\r\n", "\n\r\n  key=value\r"}) {
    CAPTURE(text);
    CHECK(parsed(text) == expected);
  }
  CHECK(parsed("key==value") == pairs{{"key", "=value"}});
  CHECK(parsed("key : = value") == pairs{{"key", "= value"}});
  CHECK(parsed("a\\ b\\=c\\:d=e") == pairs{{"a b=c:d", "e"}});
  CHECK(parsed("key") == pairs{{"key", ""}});
  CHECK(parsed("=value") == pairs{{"", "value"}});
}

TEST_CASE("blanks after a value belong to it") {
  CHECK(parsed("key=value \n") == pairs{{"key", "value "}});
  CHECK(parsed("key=value # no comment") == pairs{{"key", "value # no comment"}});
}

TEST_CASE("# and ! begin a comment where a line begins") {
  CHECK(parsed("# a=1\n  ! b=2\\\nc=3\n") == pairs{{"c", "3"}});
}

TEST_CASE("an odd number of backslashes continues a line") {
  CHECK(parsed("a=1,\\\n  2,\\\r\n\t3") == pairs{{"a", "1,2,3"}});
  CHECK(parsed("a=1\\\\\nb=2") == pairs{{"a", "1\\"}, {"b", "2"}});
  CHECK(parsed("a=1\\\n# no comment") == pairs{{"a", "1# no comment"}});
  CHECK(parsed("a=1\\\n\nb=2") == pairs{{"a", "1"}, {"b", "2"}});
  CHECK(parsed("a=1\\") == pairs{{"a", "1"}});
  CHECK(parsed("\\\n# a comment\na=1") == pairs{{"a", "1"}});
  CHECK(parsed("\\\n") == pairs{{"", ""}});
  CHECK(parsed("\\\r\n").empty());
}

TEST_CASE("escapes are Java's") {
  CHECK(parsed("a=\\t\\n\\r\\f\\q\\\\") == pairs{{"a", "\t\n\r\fq\\"}});
  CHECK(parsed("a=\\u0041\\u00e9") == pairs{{"a", "A\u00e9"}});
  CHECK(parsed("a=\\ud83d\\ude00") == pairs{{"a", "\U0001F600"}});
  CHECK(parsed("a=\xe9") == pairs{{"a", "\u00e9"}});
}

TEST_CASE("a \\u without four digits is refused with its line") {
  for (const char* text :
       {"\n\na=\\u12", "\n\na=\\u12g4", "\n\na=\\u\\11F", "\n\nb\\u=", "\n\na=x\\\n\\u00"}) {
    CAPTURE(text);
    try {
      parse_properties(text);
      FAIL("no error");
    } catch (const properties_error& error) {
      CHECK(error.line() == 3);
    }
  }
}

TEST_CASE("a property knows the line it begins on") {
  const auto entries = parse_properties("# 1\r\na=\\\r\n  1\n\n! 5\r b=2\rc=3");
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].line == 2);
  CHECK(entries[1].line == 6);
  CHECK(entries[2].line == 7);
}

TEST_CASE("of a key that is there twice the last one is found") {
  const auto entries = parse_properties("a=1\nb=2\na=3");
  CHECK(entries.size() == 3);
  REQUIRE(find(entries, "a", kcl_version::kcl3) != nullptr);
  CHECK(find(entries, "a", kcl_version::kcl3)->value == "3");
  CHECK(find(entries, "A", kcl_version::kcl3) == nullptr);
}

TEST_CASE("what is written is read as the same") {
  const pairs hard{{"a b", " leading, trailing "},    {"#x", "!y"}, {"=:", "\\ \t\n\r\f"},
                   {"k\u00e9y", "\U0001F600 \u20ac"}, {"", ""},     {"u0041", "\\u0041"}};
  properties entries;
  for (const auto& [key, value] : hard) entries.push_back({key, value, 0, ""});
  const std::string text = write_properties(entries);
  CHECK(parsed(text) == hard);
  CHECK(
      text.find_first_not_of("\n !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
                             "abcdefghijklmnopqrstuvwxyz{|}~") == std::string::npos);
}

TEST_CASE("the environment overrides keys, with two underscores for a dot") {
  const auto overrides = overrides_in(
      {"PATH=/bin", "KCLXX_PROPERTY_maxRecords=5", "KCLXX_PROPERTY_kinesisClient__region=a=b",
       "KCLXX_PROPERTY_fanoutConfig.consumerName=me", "KCLXX_PROPERTY_tableName="});
  CHECK(pairs_of(overrides) == pairs{{"fanoutConfig.consumerName", "me"},
                                     {"kinesisClient.region", "a=b"},
                                     {"maxRecords", "5"},
                                     {"tableName", ""}});
  CHECK(overrides[2].origin == "KCLXX_PROPERTY_maxRecords");
  CHECK_THROWS_AS(overrides_in({"KCLXX_PROPERTY_=x"}), properties_error);
  const auto file = parse_properties("maxRecords=1\na=b\nmaxRecords=2\ntableName=t");
  CHECK(pairs_of(with_overrides(file, overrides, kcl_version::kcl3)) ==
        pairs{{"a", "b"},
              {"fanoutConfig.consumerName", "me"},
              {"kinesisClient.region", "a=b"},
              {"maxRecords", "5"}});
}

TEST_CASE("an override replaces the key in every spelling that the daemon takes") {
  const auto file = parse_properties("AwsCredentialsProvider=a\nMaxRecords=1");
  const auto overrides =
      overrides_in({"KCLXX_PROPERTY_awsCredentialsProvider=b", "KCLXX_PROPERTY_maxRecords=2"});
  CHECK(pairs_of(with_overrides(file, overrides, kcl_version::kcl3)) ==
        pairs{{"MaxRecords", "1"}, {"awsCredentialsProvider", "b"}, {"maxRecords", "2"}});
}

TEST_CASE("an empty override of a key that is neither there nor known stays, as a mistake") {
  const auto file = parse_properties("unknown=a\nmaxRecords=1");
  const auto overrides =
      overrides_in({"KCLXX_PROPERTY_unknown=", "KCLXX_PROPERTY_maxRecord=",
                    "KCLXX_PROPERTY_tableName=", "KCLXX_PROPERTY_kinesisClient__region="});
  CHECK(pairs_of(with_overrides(file, overrides, kcl_version::kcl3)) ==
        pairs{{"maxRecords", "1"}, {"maxRecord", ""}});
}
