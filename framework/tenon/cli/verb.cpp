// What all verbs share.
#include <tenon/cli/verb.h>

#include <tenon/core/units.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tenon::cli {

void add_format_option(CLI::App& verb, TableFormat& format) {
  verb.add_option_function<std::string>(
          "--format", [&format](const std::string& text) { format = parse_table_format(text); },
          "table, json, csv or markdown")
      ->type_name("FORMAT")
      ->default_str("table");
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

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
  }
}

void say(std::string_view line) { fmt::print(stderr, "{}\n", line); }

}  // namespace tenon::cli
