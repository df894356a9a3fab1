// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <sys/stat.h>
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

/// What the project of a form has in addition. Each text begins with the separator that it needs.
struct project_form {
  const char* name;
  const char* find = "";            ///< lines of CMakeLists.txt
  const char* link = "";            ///< libraries
  const char* example = "hello";    ///< the data of a record
  const char* components = "";      ///< arguments of find_package(kclxx)
  const char* arguments = "";       ///< arguments of the program
  const char* build_packages = "";  ///< Debian packages for the Dockerfile
  const char* runtime_packages = "";
};
constexpr std::array forms{
    project_form{"each"},
    project_form{"batches"},
    project_form{"class"},
    project_form{"asio", "\nfind_package(Boost 1.74 REQUIRED)", " Boost::headers"},
    project_form{"json", "\nfind_package(nlohmann_json 3.11 REQUIRED)",
                 " nlohmann_json::nlohmann_json", R"({"page": "/"})"},
    project_form{"archive",
                 "\nfind_package(nlohmann_json 3.11 REQUIRED)\nfind_package(ZLIB REQUIRED)"
                 "\nfile(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/archived)  # for ./run-local",
                 " kclxx::archive nlohmann_json::nlohmann_json ZLIB::ZLIB",
                 R"({"tenant": "acme", "at": 1764403200000})", " COMPONENTS archive", " archived",
                 " libcurl4-openssl-dev zlib1g-dev", " libcurl4 zlib1g"},
};

struct new_options {
  std::string name;
  std::string form = "each";
};

using replacements = std::initializer_list<std::pair<std::string_view, std::string>>;

std::string replaced(std::string_view text, replacements pairs) {
  std::string result(text);
  for (const auto& [from, to] : pairs) boost::replace_all(result, from, to);
  return result;
}

/// The name of a template's file in the project; empty when the template belongs to another form.
/// The templates of a form are FORM.cpp and FORM_test.cpp, or a sample of that name.
std::string name_in_project(const fs::path& name, const new_options& options) {
  for (const project_form& form : forms) {
    const std::string own = form.name;
    std::string project_name;
    if (name == own + ".cpp") project_name = "processor.cpp";
    if (name == own + "_test.cpp") project_name = "processor_test.cpp";
    if (name.parent_path() == "samples/" + own) project_name = name.filename();
    if (!project_name.empty()) return options.form == own ? project_name : "";
  }
  return name;
}

void write_project(const fs::path& folder, const new_options& options) {
  const project_form& form = *std::find_if(
      forms.begin(), forms.end(), [&](const auto& form) { return form.name == options.form; });
  const std::string example = form.example;
  const bool has_quotes = example.find('"') != std::string::npos;
  const std::string literal = has_quotes ? "R\"(" + example + ")\"" : '"' + example + '"';
  for (const embedded::file& file : embedded::new_project) {
    const std::string name = name_in_project(file.name, options);
    if (name.empty()) continue;
    write_file(folder / name,
               replaced(file.text, {{"{{name}}", options.name},
                                    {"{{find}}", form.find},
                                    {"{{components}}", form.components},
                                    {"{{build_packages}}", form.build_packages},
                                    {"{{runtime_packages}}", form.runtime_packages},
                                    {"// SPDX-License-Identifier: Apache-2.0\n", ""},
                                    {"usage: archive ", "usage: " + options.name + ' '},
                                    {"\"archive: \"", '"' + options.name + ": \""},
                                    {"{{link}}", form.link},
                                    {"{{example}}", form.example},
                                    {"{{arguments}}", form.arguments},
                                    {"{{literal}}", literal}}));
  }
  for (const char* name : {".dockerignore", ".gitignore"}) write_file(folder / name, "build/\n");
  if (fs::exists(folder / "run-local")) fs::permissions(folder / "run-local", fs::perms(0755));
  write_file(folder / (options.name + ".properties"),
             replaced(embedded::aws_properties,
                      {{"= ./my_processor\n", "= ./" + options.name + form.arguments + "\n"},
                       {"= my-application\n", "= " + options.name + "\n"},
                       {"= my-stream\n", "= " + options.name + "\n"}}));
}

void make_project(const new_options& options) {
  const fs::path folder = options.name;
  if (::mkdir(folder.c_str(), 0777) == -1) {
    if (errno == EEXIST) cannot_set_up(options.name + " is there already");
    cannot_set_up(folder, "made");
  }
  try {
    write_project(folder, options);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    throw;
  }
  std::cout << "made " << options.name << ". To build and test it:\n  cd " << options.name
            << "\n  cmake -S . -B build && cmake --build build && ctest --test-dir build\n";
  if (fs::exists(folder / "run-local")) std::cout << "To run it on a local Kinesis: ./run-local\n";
}

std::string not_a_name(const std::string& text) {
  static const std::regex allowed("[a-z][a-z0-9_-]{2,62}");
  if (!std::regex_match(text, allowed)) {
    return text + " is no name: 3 to 63 of a-z 0-9 _ -, the first a letter";
  }
  // The program is a target of this name, and CMake's policy CMP0037 reserves these.
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
       "Makes a project in a new folder: a processor of records with a test, its properties, and\n"
       "what the commands of this kclxx need to run it. It is built with CMake, GoogleTest and\n"
       "the installed kclxx.",
       "kclxx new clicks\n  kclxx new clicks --form batches"},
      child_use::none, run);
  auto options = std::make_shared<new_options>();
  command
      .add_option("NAME", options->name,
                  "The name of the folder, the program, the application and the stream")
      ->required()
      ->check(CLI::Validator(not_a_name, ""));
  std::vector<std::string> names;
  for (const project_form& form : forms) names.emplace_back(form.name);
  add_option(
      command, "each|batches|class|asio|json|archive", "--form", options->form,
      "What is called: a function for each record, or for batches; the callbacks of a\n"
      "class; a coroutine for each record, with many at once (asio); or a function for the\n"
      "value in each record (json); or the files of a commit, in a folder or in S3, exactly\n"
      "once (archive)")
      ->check(CLI::IsMember(names).description(""))
      ->capture_default_str();
  command.callback([options] { make_project(*options); });
}

}  // namespace kclxx::tool
