// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/utf16.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <boost/locale/utf.hpp>

namespace kclxx::tool {

namespace {

using utf8 = boost::locale::utf::utf_traits<char>;
using utf16 = boost::locale::utf::utf_traits<char16_t>;

/// How many bytes the sequence has that begins the text, also one of half a surrogate pair; 0: none
/// begins there.
std::size_t sequence_size(std::string_view text) {
  const int more = utf8::trail_length(text.front());
  if (more < 0) return 0;
  const std::string_view trail = text.substr(1, static_cast<std::size_t>(more));
  const bool is_whole = trail.size() == static_cast<std::size_t>(more) &&
                        std::all_of(trail.begin(), trail.end(), utf8::is_trail);
  return is_whole ? trail.size() + 1 : 0;
}

}  // namespace

std::string to_utf8(std::u16string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char32_t c = text[i];
    const bool is_pair = utf16::is_first_surrogate(text[i]) && i + 1 < text.size() &&
                         utf16::is_second_surrogate(text[i + 1]);
    if (is_pair) c = utf16::combine_surrogate(text[i], text[i + 1]);
    i += is_pair ? 1 : 0;
    utf8::encode(c, std::back_inserter(result));
  }
  return result;
}

std::u16string to_utf16(std::string_view text) {
  std::u16string result;
  while (!text.empty()) {
    const std::size_t size = sequence_size(text);
    const char* begin = text.data();
    const char32_t c = size == 0 ? static_cast<unsigned char>(*begin) : utf8::decode_valid(begin);
    utf16::encode(c, std::back_inserter(result));
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return result;
}

}  // namespace kclxx::tool
