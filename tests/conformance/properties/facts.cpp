// SPDX-License-Identifier: Apache-2.0
// What src/tool/daemon believes, for Facts.java: "property_facts table N" prints the keys of KCL N,
// "providers N" credentials providers, "properties SEED" random files with what was read from them.
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "tool/daemon/diagnostics.hpp"
#include "tool/daemon/properties.hpp"
#include "tool/daemon/property_table.hpp"
#include "tool/daemon/utf16.hpp"

using namespace kclxx::tool;

namespace {

/// The name of the Java type without its package; "-" where only the name matters.
std::string_view java_type(value_type type) {
  switch (type) {
    case value_type::text:
    case value_type::uri:
    case value_type::arn:
    case value_type::provider:
      return "String";
    case value_type::int32:
      return "int";
    case value_type::int64:
      return "long";
    case value_type::int32_or_zero:
      return "Integer";
    case value_type::int64_or_zero:
      return "Long";
    case value_type::decimal:
      return "double";
    case value_type::flag:
      return "boolean";
    case value_type::flag_or_false:
      return "Boolean";
    case value_type::position:
      return "InitialPositionInStream";
    case value_type::timestamp:
      return "InitialPositionInStreamExtended";
    case value_type::retrieval:
      return "RetrievalMode";
    case value_type::metrics_level:
      return "MetricsLevel";
    case value_type::client_version:
      return "ClientVersionConfig";
    case value_type::billing:
      return "BillingMode";
    case value_type::region:
      return "Region";
    case value_type::list:
      return "String[]";
    case value_type::duration:
      return "Duration";
    case value_type::tags:
      return "TagCollection";
    case value_type::no_effect:
    case value_type::unusable:
    case value_type::none:
      break;
  }
  return "-";
}

void print_table(kcl_version which) {
  for (const property_row& row : property_table()) {
    const value_type type = row.type(which);
    if (type != value_type::none) std::cout << row.key << " " << java_type(type) << "\n";
  }
}

std::string hex(std::u16string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const char16_t c : text) {
    for (int shift = 12; shift >= 0; shift -= 4) {
      result += digits[static_cast<std::size_t>(c >> shift) & 0xF];
    }
  }
  return result;
}

/// A properties file as Java would keep it: without order, the last value of each key.
std::string kept(const std::string& text) {
  try {
    std::map<std::u16string, std::u16string> all;
    for (const property& property : parse_properties(text)) {
      all[to_utf16(property.key)] = to_utf16(property.value);
    }
    std::string result = "{";
    for (const auto& [key, value] : all) result += hex(key) + "=" + hex(value) + ",";
    return result + "}";
  } catch (const properties_error&) {
    return "malformed";
  }
}

void print_case(const std::string& text) {
  std::u16string bytes;
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  std::cout << "<" << hex(bytes) << "> " << kept(text) << "\n";
}

void print_properties(unsigned seed) {
  static const std::string pieces[] = {
      "\\",    "\\",   "\n",     "\n",      "\r", "\r\n", "=",       ":",       " ",
      "\t",    "\f",   "#",      "!",       "u",  "\\u",  "\\u00e9", "\\ud83d", "\\ude00",
      "\\u12", "\\t",  "n",      "key",     "a",  "1",    "\0",      "\v",      "\xe9",
      "\x80",  "\\\n", "\\\r\n", "\\\n  #", "=",  " ",    "\x85",    "F",       "\\\\"};
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    const auto length = random() % 24;
    for (auto piece = length; piece > 0; --piece) text += pieces[random() % std::size(pieces)];
    print_case(text);
    // And what we write of it.
    try {
      print_case(write_properties(parse_properties(text)));
    } catch (const properties_error&) {
    }
  }
}

/// Values of AwsCredentialsProvider, and whether `kclxx daemon check` accepts them.
void print_providers(kcl_version which) {
  static const std::string stems[] = {"Default",
                                      "DefaultAWS",
                                      "EnvironmentVariable",
                                      "SystemProperties",
                                      "SystemProperty",
                                      "Profile",
                                      "profile.Profile",
                                      "InstanceProfile",
                                      "Container",
                                      "EC2Container",
                                      "Anonymous",
                                      "Process",
                                      "Http",
                                      "Static",
                                      "AWSStatic",
                                      "PropertiesFile",
                                      "ClasspathPropertiesFile",
                                      "WebIdentityToken",
                                      "WebIdentityTokenFile",
                                      "StsAssumeRole",
                                      "STSAssumeRole",
                                      "STSAssumeRoleSession",
                                      "KclStsAssumeRole",
                                      "KclSTSAssumeRoleSession",
                                      "Misspelt"};
  const std::string key =
      which == kcl_version::kcl3 ? "AwsCredentialsProvider" : "AWSCredentialsProvider";
  for (const std::string& stem : stems) {
    for (const char* ending : {"CredentialsProvider", "CredentialProvider",
                               "CredentialsProviderChain", "CredentialsProviderWrapper"}) {
      std::string value = stem + ending;
      if (stem.find("AssumeRole") != std::string::npos) value += "|arn:aws:iam::1:role/r|session";
      if (stem == "PropertiesFile") value += "|/tmp/credentials";
      std::vector<diagnostic> found;
      check_values({{key, value, 1, ""}}, which, found);
      std::cout << value << " " << (found.empty() ? "accepted" : "refused") << "\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "table") {
    print_table(static_cast<kcl_version>(std::stoi(argv[2])));
  } else if (what == "providers") {
    print_providers(static_cast<kcl_version>(std::stoi(argv[2])));
  } else if (what == "properties") {
    print_properties(static_cast<unsigned>(std::stoul(argv[2])));
  } else {
    std::cerr << "usage: property_facts table|providers|properties NUMBER\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
