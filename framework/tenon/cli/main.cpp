// The `tenon` program: finds the verb, runs it, turns errors into one line and an exit code.
// No header: the program starts here.
#include <tenon/cli/manual/help_text.h>
#include <tenon/cli/manual/mistyped.h>
#include <tenon/cli/process/first_rank.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/cli/verb.h>

#include <tenon/comm/communicator.h>
#include <tenon/core/process/standard_output.h>
#include <tenon/runtime/environment.h>

#include <unistd.h>

#include <csignal>
#include <new>
#include <string>
#include <vector>

// CMake writes verbs.inc from the list in CMakeLists.txt.
namespace tenon::cli {
#define ROW(name) void add_##name(Verb program, Outcome& outcome);
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
    "Exit codes: 0 done, 1 the run failed, 2 usage or configuration,\n"
    "            3 a gate was tripped, 4 out of memory, 5 a plugin would not load;\n"
    "            1 also where 'trace diff' finds a difference, and 'tune' and\n"
    "            'doctor FILE' have nothing to recommend; 4 where 'plan' proves\n"
    "            a capacity too small;\n"
    "            130 interrupted (Ctrl-C), 143 ended (SIGTERM),\n"
    "            in general 128 + N: by signal N, as 139 for a crash (SIGSEGV)";

void add_verbs(cli::Verb program, cli::Outcome& outcome) {
#define ROW(name) cli::add_##name(program, outcome);
#include "verbs.inc"
#undef ROW
}

int complain(const std::string& message, ExitCode code, const std::vector<int>& missing = {}) {
  if (const std::string words = cli::said_after_rank_0(message, code, missing); !words.empty())
    cli::say(toned("tenon:", Tone::kBad, cli::screen_of(STDERR_FILENO)) + " " + words);
  return static_cast<int>(code);
}

void print_help(cli::Verb verb) { cli::print_exactly(cli::help_text(verb, output_screen().columns)); }

int run(int argc, char** argv) {
  cli::Program program("tenon", "Tensors, autograd and interchangeable allocators: memory experiments from TOML.",
                       environment().version);
  cli::Outcome outcome;
  set_output_screen(cli::screen_of(standard_output()));
  program.verb().require_verb(1);
  program.verb().footer(kExamples);
  add_verbs(program.verb(), outcome);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const std::string problem = cli::unknown_verb(cli::facts_of(program.verb()), words); !problem.empty())
    return complain(problem, ExitCode::kUsage);
  const cli::Parsed parsed = program.parse(argc, argv);
  switch (parsed.kind) {
    case cli::Parsed::Kind::kRan:
      break;
    case cli::Parsed::Kind::kHelp:
      print_help(parsed.verb);
      break;
    case cli::Parsed::Kind::kVersion:
      cli::print(parsed.text + "\n");
      break;
    case cli::Parsed::Kind::kRefused:
      if (!parsed.lacks_verb) return complain(cli::usage_message(parsed), ExitCode::kUsage);
      print_help(parsed.verb);
      return static_cast<int>(ExitCode::kUsage);
  }
  return static_cast<int>(outcome.exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_output();
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` a write fails, as on a full disk
  try {
    return run(argc, argv);
  } catch (const DistributedError& error) {
    return complain(error.what(), error.exit_code(), error.said_by() < 0 ? error.ranks() : std::vector<int>());
  } catch (const Error& error) {
    return complain(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return complain("the host has no memory left", ExitCode::kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), ExitCode::kFailed);
  }
}
