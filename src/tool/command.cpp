// SPDX-License-Identifier: Apache-2.0
#include "tool/command.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <streambuf>
#include <string_view>

#include "base/printable.hpp"
#include "tool/command_error.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

/// Adds to the usage line what may follow "--", which CLI11 does not know.
class usage_with_suffix : public CLI::Formatter {
 public:
  explicit usage_with_suffix(std::string suffix) : suffix_(std::move(suffix)) {}

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    while (!usage.empty() && usage.back() == '\n') usage.pop_back();
    return usage + suffix_;
  }

 private:
  std::string suffix_;
};

/// While it exists, nothing that is written to std::cerr can be obeyed by a terminal. Messages are
/// for people, and many of them quote a child, a file or a server.
class printable_stderr : public std::streambuf {
 public:
  printable_stderr() : target_(std::cerr.rdbuf(this)) {}
  ~printable_stderr() override { std::cerr.rdbuf(target_); }
  printable_stderr(const printable_stderr&) = delete;
  printable_stderr& operator=(const printable_stderr&) = delete;

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    std::string_view unread(text, static_cast<std::size_t>(size));
    std::string lines;
    while (!unread.empty()) {
      const std::size_t end = std::min(unread.find('\n'), unread.size());
      lines += detail::printable(unread.substr(0, end));
      if (end < unread.size()) lines += '\n';
      unread.remove_prefix(std::min(end + 1, unread.size()));
    }
    const auto length = static_cast<std::streamsize>(lines.size());
    return target_->sputn(lines.data(), length) == length ? size : 0;
  }
  int_type overflow(int_type character) override {
    const char text = traits_type::to_char_type(character);
    return xsputn(&text, 1) == 1 ? character : traits_type::eof();
  }
  int sync() override { return target_->pubsync(); }

 private:
  std::streambuf* target_;
};

void say(const CLI::App& app, const std::string& text) {
  std::cerr << app.get_name();
  for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    std::cerr << ' ' << command->get_name();
  }
  std::cerr << ": " << detail::printable(text) << std::endl;
}

/// The status of a command, which is no success when its output could not be written.
int with_stdout_checked(const CLI::App& app, int status) {
  if (std::cout.flush()) return status;
  say(app, "stdout cannot be written");
  return status != 0 ? status : static_cast<int>(command_status::setup_failed);
}

std::string printed(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

/// Whether the text is a number in this range. NaN is in no range.
template <class Number>
bool is_between(const std::string& text, Number min, Number max) {
  Number value{};
  return read_number(text, value) && value >= min && value <= max;
}

CLI::Validator seconds_between(double min, double max) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        if (is_between(text, min, max)) return {};
        return "'" + text + "' is not a number of seconds between " + printed(min) + " and " +
               printed(max);
      },
      "");
}

}  // namespace

void add_seconds(CLI::App& command, const std::string& name, std::chrono::milliseconds& result,
                 const std::string& description, double max_seconds) {
  using seconds = std::chrono::duration<double>;
  command
      .add_option_function<double>(
          name,
          [&result](double value) {
            result = std::chrono::ceil<std::chrono::milliseconds>(seconds(value));
          },
          description)
      ->check(seconds_between(result.count() == 0 ? 0 : 0.001, max_seconds))
      ->type_name("SECONDS")
      ->default_str(printed(seconds(result).count()));
}

void require_child(const invocation& run) {
  if (run.child.empty()) {
    throw CLI::ValidationError("the program to start is missing; it follows --");
  }
}

CLI::Validator whole_number_between(std::uint64_t min, std::uint64_t max) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        // CLI11 itself would take 010 for 8.
        const bool is_plain = text == "0" || !text.starts_with('0');
        if (is_plain && is_between(text, min, max)) return {};
        return "'" + text + "' is not a whole number between " + std::to_string(min) + " and " +
               std::to_string(max);
      },
      "");
}

CLI::App& add_command(CLI::App& app, const command_text& text, child_use child, invocation& run) {
  CLI::App& command = *app.add_subcommand(text.name, text.description);
  command.footer("Example:\n  " + text.example);
  if (child == child_use::required) {
    command.formatter(std::make_shared<usage_with_suffix>(" -- CHILD [ARGUMENT...]\n"));
    command.parse_complete_callback([&run] { require_child(run); });
  } else if (child == child_use::options) {
    command.formatter(std::make_shared<usage_with_suffix>(" [-- OPTION...]\n"));
  } else {
    command.parse_complete_callback([&run] {
      if (run.has_separator) throw CLI::ValidationError("it starts no program: remove the --");
    });
  }
  return command;
}

int run_command_line(CLI::App& app, invocation& run, int argc, const char* const* argv) {
  const printable_stderr only_printable;
  // CLI11 would take a second "--", which belongs to the child, for its own.
  const auto* const end = argv + argc;
  const auto* const separator =
      std::find_if(argv + 1, end, [](const char* word) { return std::string_view(word) == "--"; });
  run.has_separator = separator != end;
  if (run.has_separator) run.child.assign(separator + 1, end);
  std::vector<std::string> own(argv + 1, separator);
  std::reverse(own.begin(), own.end());
  try {
    app.parse(std::move(own));
    return with_stdout_checked(app, run.status);
  } catch (const CLI::Success& request) {  // --help, --version
    return with_stdout_checked(app, app.exit(request));
  } catch (const CLI::RequiredError& error) {
    // An option is missing because it was misspelt: the message names the misspelt word.
    const std::vector<std::string> unexpected = app.remaining(true);
    say(app, (unexpected.empty() ? std::string(error.what())
                                 : "'" + unexpected.front() + "' was not expected") +
                 " (see --help)");
    return static_cast<int>(command_status::usage);
  } catch (const CLI::ParseError& error) {
    say(app, std::string(error.what()) + " (see --help)");
    return static_cast<int>(command_status::usage);
  } catch (const cancelled&) {
    leave_by_cancellation();
  } catch (const command_error& error) {
    say(app, error.what());
    return static_cast<int>(error.status());
  } catch (const std::exception& error) {
    say(app, error.what());
    return static_cast<int>(command_status::setup_failed);
  }
}

}  // namespace kclxx::tool
