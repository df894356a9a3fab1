// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/algorithm/string/replace.hpp>

#include "tool/command.hpp"
#include "tool/embedded.hpp"
#include "tool/files.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::array forms{"each", "batches", "class", "asio"};

struct new_options {
  std::string name;
  std::string form = "each";
};

using replacements = std::initializer_list<std::pair<std::string_view, std::string>>;

std::string replaced(std::string_view text, replacements all) {
  std::string result(text);
  for (const auto& [from, to] : all) boost::replace_all(result, from, to);
  return result;
}

/// What a template is called in the project; nothing when it is another form's.
std::string name_in_project(std::string_view name, const new_options& options) {
  if (name == "dockerignore" || name == "gitignore") return "." + std::string(name);
  for (const char* form : forms) {
    if (name == std::string(form) + ".cpp") return options.form == form ? "processor.cpp" : "";
  }
  return std::string(name);
}

void write_project(const fs::path& folder, const new_options& options) {
  const bool is_asio = options.form == "asio";
  for (const embedded::file& file : embedded::new_project) {
    const std::string name = name_in_project(file.name, options);
    if (name.empty()) continue;
    write_file(folder / name,
               replaced(file.text,
                        {{"{{name}}", options.name},
                         {"{{find_boost}}", is_asio ? "\nfind_package(Boost 1.74 REQUIRED)" : ""},
                         {"{{link_boost}}", is_asio ? " Boost::headers" : ""}}));
  }
  fs::permissions(folder / "run-local", fs::perms(0755));
  write_file(
      folder / (options.name + ".properties"),
      replaced(embedded::aws_properties, {{"= ./my_processor\n", "= ./" + options.name + "\n"},
                                          {"= my-application\n", "= " + options.name + "\n"},
                                          {"= my-stream\n", "= " + options.name + "\n"}}));
}

void make_project(const new_options& options) {
  const fs::path folder = options.name;
  std::error_code error;
  if (!fs::create_directory(folder, error)) {
    cannot_set_up(error ? options.name + " cannot be made: " + error.message()
                        : options.name + " is there already");
  }
  try {
    write_project(folder, options);
  } catch (...) {
    fs::remove_all(folder, error);
    throw;
  }
  std::cout << "made " << options.name << ". To build and test it:\n  cd " << options.name
            << "\n  cmake -S . -B build && cmake --build build && ctest --test-dir build\n"
            << "To run it on a local Kinesis: ./run-local" << std::endl;
}

std::string not_a_name(const std::string& text) {
  static const std::regex allowed("[a-z][a-z0-9_-]{2,62}");
  if (!std::regex_match(text, allowed)) {
    return text + " is no name: 3 to 63 of a-z 0-9 _ -, the first a letter";
  }
  // CMP0037: the program is a target of this name.
  static const std::regex of_cmake(
      "all|clean|edit_cache|help|install|package|package_source|preinstall|"
      "rebuild_cache|test");
  return std::regex_match(text, of_cmake) ? text + " is no name: CMake has a target " + text : "";
}

}  // namespace

void add_new_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"new",
       "Makes a project in a new folder: a processor of records with a test, its properties, a\n"
       "script that runs it on a local Kinesis, a Dockerfile. It is built with CMake, GoogleTest "
       "and\n"
       "the installed kclxx.",
       "kclxx new clicks\n  kclxx new clicks --form batches"},
      child_use::none, run);
  auto options = std::make_shared<new_options>();
  command
      .add_option("NAME", options->name,
                  "Of the folder, the program, the application and the stream")
      ->required()
      ->check(CLI::Validator(not_a_name, ""));
  add_option(command, "each|batches|class|asio", "--form", options->form,
             "What is called: a function for each record, or for batches; the callbacks of a\n"
             "class; or a coroutine for each record, with many at once (asio)")
      ->check(CLI::IsMember(std::vector<std::string>(forms.begin(), forms.end())).description(""))
      ->capture_default_str();
  command.callback([options] { make_project(*options); });
}

}  // namespace kclxx::tool
