// What all verbs share.
#include <tenon/cli/manual/verb_facts.h>
#include <tenon/cli/terminal/status_line.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/cli/verb.h>

#include <tenon/core/units.h>
#include <tenon/report/text/display_width.h>

#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tenon::cli {

void add_format_option(CLI::App& verb, TableFormat& format) {
  CLI::Option* const option = verb.add_option_function<std::string>(
                                      "--format",
                                      [&format](const std::string& text) {
                                        format = parse_table_format(text);
                                        if (format != TableFormat::kTable)
                                          set_output_screen({});  // programs read every byte
                                      },
                                      "table, json, csv or markdown")
                                  ->type_name("FORMAT")
                                  ->default_str("table");
  set_words(option, {"table", "json", "csv", "markdown"});
  verb.add_flag_callback(
      "--wide", [] { set_output_screen({.columns = 0, .has_colour = output_screen().has_colour}); },
      "all columns of tables, however narrow the terminal is");
}

void add_quiet_option(CLI::App& verb, bool& quiet) { verb.add_flag("--quiet,-q", quiet, "no progress, no remarks"); }

CLI::Option* add_capacity_option(CLI::App& verb, std::string& capacity, const std::string& help) {
  const auto problem = [](const std::string& size) -> std::string {
    if (size.empty()) return "an empty size; without the option the device is unlimited";
    if (try_parse_size(size) == 0) return size + ": a device of 0 bytes serves nothing; leave the option out";
    return {};
  };
  return verb.add_option("--capacity", capacity, help)->type_name("SIZE")->check(CLI::Validator(problem, ""));
}

std::string example(std::string_view command_line) { return fmt::format("Example:\n  {}", command_line); }

void print(std::string_view text) { print_exactly(wrapped(text, output_screen().columns)); }

void print_exactly(std::string_view text) {
  erase_status_line();
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
  }
}

void say(std::string_view line) {
  erase_status_line();
  fmt::print(stderr, "{}\n", wrapped(line, screen_of(STDERR_FILENO).columns));
}

}  // namespace tenon::cli
