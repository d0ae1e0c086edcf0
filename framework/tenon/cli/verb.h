// How a verb of the program is made: a file verbs/NAME.cpp with a function add_NAME() that adds a CLI11 subcommand, and
// its name in the list of CMakeLists.txt.
//
//   void add_NAME(CLI::App& program, Outcome& outcome) {
//     auto options = std::make_shared<Options>();
//     CLI::App* verb = program.add_subcommand("NAME", "one line for the help");
//     verb->add_option("traces", options->traces, "trace files")->required();
//     add_format_option(*verb, options->format);
//     verb->footer(example("tenon NAME train.trace.gz --capacity 24GiB"));
//     verb->callback([options, &outcome] { outcome.exit_code = run(*options); });
//   }
//
// It parses options and calls; tables, sentences and JSON are made in report/.
//
// A callback throws tenon::Error for what goes wrong: main prints it as "tenon: …" and ends with its exit code.
#pragma once

#include <tenon/core/error.h>
#include <tenon/report/table.h>

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace tenon::cli {

struct Outcome {
  ExitCode exit_code = ExitCode::kDone;
};

/// --format table|json|csv|markdown and --wide, --quiet. The tables of `render` fit the terminal.
void add_format_option(CLI::App& verb, TableFormat& format);
void add_quiet_option(CLI::App& verb, bool& quiet);

/// --capacity SIZE; an empty one (a shell variable that is not set) is refused, since it would mean unlimited, and so
/// is one of 0 bytes, which would look as if it did.
CLI::Option* add_capacity_option(CLI::App& verb, std::string& capacity, const std::string& help);

/// The footer of a verb's help.
std::string example(std::string_view command_line);

/// Writes results to stdout, at once; lines of a table for people that are longer than the terminal are broken between
/// words. Throws Error when that fails (a full disk, a closed pipe).
void print(std::string_view text);
/// The same, every byte as it is: for what programs read, as TOML or a script.
void print_exactly(std::string_view text);

/// Writes a line for people to stderr, broken between words where the terminal is narrower.
void say(std::string_view line);

}  // namespace tenon::cli
