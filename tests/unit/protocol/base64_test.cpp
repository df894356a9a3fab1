// SPDX-License-Identifier: Apache-2.0
#include "protocol/base64.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/scripted_daemon.hpp"

using kclxx::protocol::base64_alphabet;
using kclxx::protocol::base64_result;
using kclxx::protocol::decode_base64;
using kclxx::protocol::decode_base64_with;

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
  std::vector<std::size_t> lengths{1024, 20480, 1000001};
  for (std::size_t length = 0; length < 300; ++length) lengths.push_back(length);
  for (const std::size_t length : lengths) {
    std::string bytes(length, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    CAPTURE(length);
    const decoded back = decode(kclxx::test::base64(bytes));
    CHECK(back.error.empty());
    CHECK((back.text == bytes));
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

// The vectorized decoders give what the scalar one gives. Each text is alone between two pages
// that must not be touched.
namespace {

/// Pages with an inaccessible one on each side.
class fenced_pages {
 public:
  fenced_pages() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* at = ::mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    pages_ = static_cast<char*>(at);
    REQUIRE(::mprotect(begin(), page_, PROT_READ | PROT_WRITE) == 0);
  }
  ~fenced_pages() { ::munmap(pages_, 3 * page_); }
  fenced_pages(const fenced_pages&) = delete;
  fenced_pages& operator=(const fenced_pages&) = delete;

  [[nodiscard]] char* begin() const { return pages_ + page_; }
  [[nodiscard]] char* end() const { return begin() + page_; }

 private:
  std::size_t page_;
  char* pages_ = nullptr;
};

struct outcome {
  explicit outcome(const base64_result& result, const char* text)
      : size(result.size),
        error(result.error == nullptr ? "" : result.error),
        groups(result.groups),
        bytes(result.error == nullptr ? std::string(text, result.size) : std::string()) {}
  std::size_t size;
  std::string error;
  std::size_t groups;
  std::string bytes;
  bool operator==(const outcome&) const = default;
};

/// True when both decoders give the same, at either end of the page, and the text of a failed one
/// can be restored.
bool agree(const fenced_pages& pages, const std::string& text) {
  std::string scalar = text;
  const outcome expected(decode_base64_with(nullptr, scalar.data(), scalar.size()), scalar.data());
  for (char* at : {pages.begin(), pages.end() - text.size()}) {
    std::copy(text.begin(), text.end(), at);
    const base64_result result = kclxx::protocol::decode_base64(at, text.size());
    if (outcome(result, at) != expected) return false;
    if (result.error == nullptr) continue;
    kclxx::protocol::restore_base64(at, result.groups);
    if (std::string(at, text.size()) != text) return false;
  }
  return true;
}

std::string random_text(std::mt19937& random, std::size_t length) {
  std::string text(length, '\0');
  for (char& c : text) c = base64_alphabet[random() % base64_alphabet.size()];
  return text;
}

}  // namespace

TEST_CASE("base64 is decoded by the vectorized decoder that the processor has",
          "[protocol][base64]") {
  const bool is_vectorized = kclxx::protocol::vectorized_base64_blocks() != nullptr;
#if defined(__x86_64__)
  CHECK(is_vectorized == (__builtin_cpu_supports("avx2") != 0));
#elif defined(__aarch64__)
  CHECK(is_vectorized);
#else
  CHECK_FALSE(is_vectorized);
#endif
}

TEST_CASE("the vectorized and the scalar base64 decoder agree on every length and form of padding",
          "[protocol][base64]") {
  const fenced_pages pages;
  std::mt19937 random(11);
  for (std::size_t length = 0; length <= 200; ++length) {
    const std::string text = random_text(random, length);
    for (const char* padding : {"", "=", "==", "===", "====", "=A", "A=", "=A=", "= ", "\n"}) {
      CAPTURE(text, padding);
      CHECK(agree(pages, text + padding));
    }
  }
}

TEST_CASE("all base64 decoders name the same bad character, at every place of a block",
          "[protocol][base64]") {
  const fenced_pages pages;
  std::mt19937 random(12);
  for (const std::size_t length : {32U, 64U, 68U, 100U, 128U, 200U}) {
    const std::string good = random_text(random, length);
    for (std::size_t at = 0; at < length; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text = good;
        text[at] = static_cast<char>(byte);
        if (agree(pages, text)) continue;
        CAPTURE(text, at, byte);
        FAIL("the decoders disagree");
      }
    }
  }
}

TEST_CASE("the vectorized and the scalar base64 decoder agree on random bytes among good text",
          "[protocol][base64]") {
  const fenced_pages pages;
  std::mt19937 random(13);
  for (int round = 0; round < 20000; ++round) {
    std::string text = random_text(random, random() % 400);
    for (std::size_t bad = random() % 3; bad > 0 && !text.empty(); --bad) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    if (agree(pages, text)) continue;
    CAPTURE(text);
    FAIL("the decoders disagree");
  }
}
