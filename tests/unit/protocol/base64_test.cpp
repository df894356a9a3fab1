// SPDX-License-Identifier: Apache-2.0
#include "protocol/base64.hpp"

#include <random>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/scripted_daemon.hpp"

using kclxx::protocol::decode_base64;

namespace {

struct decoded {
  std::string text;
  std::string error;
  std::size_t at = 0;
};

decoded decode(std::string text) {
  const auto result = decode_base64(text.data(), text.size());
  if (result.error != nullptr) return {{}, result.error, result.size};
  return {text.substr(0, result.size), {}, 0};
}

}  // namespace

TEST_CASE("what was encoded comes back, for every length and every byte", "[protocol][base64]") {
  std::mt19937 random(7);
  for (std::size_t length = 0; length < 300; ++length) {
    std::string bytes(length, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    CAPTURE(length);
    const decoded back = decode(kclxx::test::base64(bytes));
    CHECK(back.error.empty());
    CHECK(back.text == bytes);
  }
}

TEST_CASE("the vectors of RFC 4648 decode to their texts", "[protocol][base64]") {
  CHECK(decode("").text.empty());
  CHECK(decode("Zg==").text == "f");
  CHECK(decode("Zm8=").text == "fo");
  CHECK(decode("Zm9v").text == "foo");
  CHECK(decode("Zm9vYmFy").text == "foobar");
  const auto encoded = [](std::string_view bytes) {
    std::string out = "before ";
    kclxx::protocol::append_base64(out, bytes);
    return out;
  };
  CHECK(encoded("") == "before ");
  CHECK(encoded("f") == "before Zg==");
  CHECK(encoded("fo") == "before Zm8=");
  CHECK(encoded("foo") == "before Zm9v");
  CHECK(encoded("foobar") == "before Zm9vYmFy");
  CHECK(encoded("\xfb\xff\xbf") == "before +/+/");
}

TEST_CASE("every character outside of the alphabet is found, at its place", "[protocol][base64]") {
  const std::string good = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=";
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t at = 0; at + 1 < good.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      if (alphabet.find(c) != std::string::npos) continue;
      if (c == '=' && at + 2 == good.size()) continue;  // two characters of padding are legal
      std::string text = good;
      text[at] = c;
      const decoded result = decode(text);
      CHECK(result.error == "is not base64");
      CHECK(result.at == at);
    }
  }
}

TEST_CASE("a length that no encoder makes is refused", "[protocol][base64]") {
  for (const char* text :
       {"Z", "Zm", "Zm8", "Zm9vY", "Zm9vYm", "Zm9vYmF", "Z===", "====", "=", "Zg="}) {
    CAPTURE(text);
    CHECK_FALSE(decode(text).error.empty());
  }
}
