// How a verb of the program is made: one file each, with one function that adds a CLI11 subcommand.
//
//   void add_replay(CLI::App& program, Outcome& outcome) {
//     auto options = std::make_shared<ReplayOptions>();
//     CLI::App* verb = program.add_subcommand("replay", "run memory traces under allocators and compare");
//     verb->add_option("traces", options->traces, "trace files")->required();
//     add_format_option(*verb, options->format);
//     verb->footer(example("tenon replay train.trace.gz --capacity 24GiB"));
//     verb->callback([options, &outcome] { outcome.exit_code = replay(*options); });
//   }
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

void add_run(CLI::App& program, Outcome& outcome);
void add_plugins(CLI::App& program, Outcome& outcome);
void add_plugins_test(CLI::App& plugins, Outcome& outcome);  ///< `tenon plugins test`
void add_devices(CLI::App& program, Outcome& outcome);
void add_config(CLI::App& program, Outcome& outcome);
void add_doctor(CLI::App& program, Outcome& outcome);
void add_new(CLI::App& program, Outcome& outcome);
void add_replay(CLI::App& program, Outcome& outcome);
void add_tune(CLI::App& program, Outcome& outcome);
void add_trace(CLI::App& program, Outcome& outcome);
void add_view(CLI::App& program, Outcome& outcome);

/// --format table|json|csv|markdown, --quiet.
void add_format_option(CLI::App& verb, TableFormat& format);
void add_quiet_option(CLI::App& verb, bool& quiet);

/// --capacity SIZE; an empty one (a shell variable that is not set) is refused, since it would mean unlimited, and so
/// is one of 0 bytes, which would look as if it did.
CLI::Option* add_capacity_option(CLI::App& verb, std::string& capacity, const std::string& help);

/// The footer of a verb's help.
std::string example(std::string_view command_line);

/// Writes results to stdout, at once. Throws Error when that fails (a full disk, a closed pipe).
void print(std::string_view text);

/// Writes a line for people to stderr.
void say(std::string_view line);

}  // namespace tenon::cli
