// The `tenon` program: finds the verb, runs it, turns errors into one line and an exit code.
// No header: the program starts here.
#include <tenon/cli/manual/help_text.h>
#include <tenon/cli/manual/mistyped.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/cli/verb.h>

#include <tenon/runtime/environment.h>

#include <unistd.h>

#include <new>
#include <string>
#include <vector>

// CMake writes verbs.inc from the list in CMakeLists.txt.
namespace tenon::cli {
#define ROW(name) void add_##name(CLI::App& program, Outcome& outcome);
#include "verbs.inc"
#undef ROW
}  // namespace tenon::cli

namespace {

using namespace tenon;

constexpr char kExamples[] =
    "Examples:\n"
    "  tenon run experiment.toml train.batch_size=64\n"
    "  tenon replay history.trace.gz --capacity 24GiB\n"
    "  tenon help replay\n"
    "Exit codes: 0 done, 1 the run failed, 2 usage or configuration, 3 a gate was tripped,\n"
    "            4 out of memory, 5 a plugin would not load";

void add_verbs(CLI::App& program, cli::Outcome& outcome) {
#define ROW(name) cli::add_##name(program, outcome);
#include "verbs.inc"
#undef ROW
}

int complain(const std::string& message, ExitCode code) {
  cli::say(toned("tenon:", Tone::kBad, cli::screen_of(STDERR_FILENO)) + " " + message);
  return static_cast<int>(code);
}

const CLI::App& deepest(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

void print_help(const CLI::App& verb) { cli::print_exactly(cli::help_text(verb, output_screen().columns)); }

/// A verb that has others below it, alone.
bool lacks_a_verb(const CLI::App& verb) {
  return verb.get_require_subcommand_min() != 0 && verb.get_subcommands().empty() && verb.remaining(true).empty();
}

int run(int argc, char** argv) {
  CLI::App program("Tensors, autograd and interchangeable allocators: memory experiments from TOML.", "tenon");
  cli::Outcome outcome;
  set_output_screen(cli::screen_of(STDOUT_FILENO));
  program.set_version_flag("--version,-V", "tenon " + environment().version);
  program.require_subcommand(1);
  program.footer(kExamples);
  add_verbs(program, outcome);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const std::string problem = cli::unknown_verb(program, words); !problem.empty())
    return complain(problem, ExitCode::kUsage);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print_help(deepest(program));
  } catch (const CLI::CallForVersion& version) {
    cli::print(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    const CLI::App& verb = deepest(program);
    if (!lacks_a_verb(verb)) return complain(cli::usage_message(verb, error), ExitCode::kUsage);
    print_help(verb);
    return static_cast<int>(ExitCode::kUsage);
  }
  return static_cast<int>(outcome.exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    return complain(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return complain("the host has no memory left", ExitCode::kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), ExitCode::kFailed);
  }
}
