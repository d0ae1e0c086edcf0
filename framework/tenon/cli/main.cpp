// The `tenon` program: finds the verb, runs it, turns errors into one line and an exit code.
// No header: the program starts here.
#include <tenon/cli/verb.h>

#include <tenon/core/options.h>
#include <tenon/runtime/environment.h>

#include <fmt/format.h>

#include <cstdio>
#include <new>

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
    "  tenon plugins list\n"
    "Exit codes: 0 done, 1 the run failed, 2 usage or configuration, 3 a gate was tripped,\n"
    "            4 out of memory, 5 a plugin would not load";

void add_verbs(CLI::App& program, cli::Outcome& outcome) {
#define ROW(name) cli::add_##name(program, outcome);
#include "verbs.inc"
#undef ROW
}

int complain(const std::string& message, ExitCode code) {
  fmt::print(stderr, "tenon: {}\n", message);
  return static_cast<int>(code);
}

const CLI::App& deepest(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

/// The word after the verbs that is neither an option nor a subcommand where one is needed: "tenon rnu x.toml".
std::string unknown_verb(CLI::App& program, int argc, char** argv) {
  CLI::App* app = &program;
  std::string so_far = "tenon";
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const auto verbs = app->get_subcommands([](CLI::App*) { return true; });
    if (verbs.empty()) return {};
    std::vector<std::string> names;
    CLI::App* next = nullptr;
    for (CLI::App* verb : verbs) {
      names.push_back(verb->get_name());
      if (verb->get_name() == argv[i]) next = verb;
    }
    if (next == nullptr) {
      const std::string near = nearest_name(argv[i], names);
      return fmt::format("unknown verb \"{} {}\"{} (see {} --help)", so_far, argv[i],
                         near.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                      : fmt::format("; did you mean \"{} {}\"?", so_far, near),
                         so_far);
    }
    app = next;
    so_far += std::string(" ") + argv[i];
  }
  return {};
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? "tenon" : path_of(*app.get_parent()) + " " + app.get_name();
}

int usage(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& verb = deepest(program);
  std::string message = error.what();
  if (const auto extras = verb.remaining(true); !extras.empty() && extras.front().starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::Option* option : verb.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::string& given = extras.front();
    const std::string near = nearest_name(given.substr(0, given.find('=')), names);
    message = fmt::format("unknown option {}{}", given, near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }
  return complain(fmt::format("{} (see {} --help)", message, path_of(verb)), ExitCode::kUsage);
}

int run(int argc, char** argv) {
  CLI::App program("Tensors, autograd and interchangeable allocators: memory experiments from TOML.", "tenon");
  cli::Outcome outcome;
  program.set_version_flag("--version", "tenon " + environment().version);
  program.require_subcommand(1);
  program.footer(kExamples);
  add_verbs(program, outcome);
  if (argc == 1) {
    fmt::print("{}", program.help());
    return static_cast<int>(ExitCode::kUsage);
  }
  if (const std::string problem = unknown_verb(program, argc, argv); !problem.empty()) {
    return complain(problem, ExitCode::kUsage);
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App& verb = deepest(program);
    cli::print(verb.help(verb.get_parent() == nullptr ? "" : path_of(*verb.get_parent())));
  } catch (const CLI::CallForVersion& version) {
    cli::print(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    return usage(program, error);
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
