// How a verb of the program is made: a file verbs/NAME.cpp with a function add_NAME() that declares the verb and its
// options, and its name in the list of CMakeLists.txt.
//
//   void add_NAME(Verb program, Outcome& outcome) {
//     auto options = std::make_shared<Options>();
//     Verb verb = program.add_verb("NAME", "one line for the help");
//     verb.add_option("traces", options->traces, "trace files").required();
//     add_format_option(verb, options->format);
//     verb.footer(example("tenon NAME train.trace.gz --capacity 24GiB"));
//     verb.callback([options, &outcome] { outcome.exit_code = run(*options); });
//   }
//
// It parses options and calls; tables, sentences and JSON are made in report/.
//
// A callback throws tenon::Error for what goes wrong: main prints it as "tenon: …" and ends with its exit code.
//
// CLI11 parses the command line. Its header takes longer to compile than a verb does, so it is seen by verb.cpp, which
// hands these declarations on to it, and by manual/verb_facts.cpp, which reads them back, and by no other file.
#pragma once

#include <tenon/cli/terminal/print.h>
#include <tenon/core/error.h>
#include <tenon/report/table.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tenon::cli {

struct Outcome {
  ExitCode exit_code = ExitCode::kDone;
};

/// One option of a verb, or a word of its command line. A handle that may be copied; it is valid as long as the
/// program's table. What changes the option returns the handle, so that calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  /// What the help calls its value: FILE. Completion offers what the name stands for (see manual/verb_facts.h).
  const Option& type_name(const std::string& name) const;
  /// The command line is refused without it.
  const Option& required() const;
  /// Numbers outside the closed range are refused; the help shows it.
  const Option& range(int least, int most) const;
  const Option& range(double least, double most) const;
  /// A value is refused with the words that `problem` returns for it; none if it is fine.
  const Option& check(std::function<std::string(const std::string&)> problem) const;
  /// The words that completion offers.
  const Option& words(std::vector<std::string> words) const;
  /// The help shows the value that the variable has now.
  const Option& shows_default() const;
  /// Of a list: each use takes one word, "-a direct -a caching"; what follows it is not part of the list.
  const Option& one_at_a_time() const;
  /// Of a list: it takes exactly so many words.
  const Option& expects(int words) const;
  /// Of texts: an empty one means something.
  const Option& may_be_empty() const;
  /// The command line is refused that has both.
  const Option& excludes(const Option& other) const;
  /// Left out of help, manual and completion: for the program's own child processes.
  const Option& hidden() const;

  /// Whether the command line had it; known once that is parsed.
  bool is_given() const;

 private:
  friend class Verb;

  CLI::Option* option_;
};

/// A verb, or the program itself, which verbs are added to. A handle like Option.
class Verb {
 public:
  explicit Verb(CLI::App& app) : app_(&app) {}

  Verb add_verb(const std::string& name, const std::string& help) const;
  /// Between `least` (0 or 1) and one of the verbs below must follow.
  void require_verb(std::size_t least) const;
  /// Whether none of the verbs below followed; known once the command line is parsed.
  bool is_alone() const;
  /// The verb that the words lead to from here, as far as they do: {"trace", "info"}.
  Verb below(const std::vector<std::string>& words) const;

  /// `names`: "--jobs,-j"; without dashes a word at its place. `value` keeps what it has where the option is not given,
  /// and lives until the program ends. T: std::string, int, unsigned, std::uint64_t, double, or a vector of strings or
  /// ints, which takes all words that follow. An empty text is refused, in a list too: it would be as if nothing was
  /// given.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help = {}) const;
  /// A switch without a value.
  Option add_flag(const std::string& names, bool& value, const std::string& help) const;

  /// What stands below the options in the help.
  void footer(const std::string& text) const;
  /// Called when the command line was parsed and names this verb.
  void callback(std::function<void()> run) const;

  /// The help as CLI11 writes it, for lines of any width.
  std::string help() const;

  /// Its entry in CLI11's table.
  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

/// What became of a command line.
struct Parsed {
  enum class Kind { kRan, kHelp, kVersion, kRefused };
  Kind kind = Kind::kRan;
  Verb verb;                   ///< the last one that it names
  std::string text;            ///< the version; why it was refused
  std::string unknown_option;  ///< that it was refused for, as it was given; empty for other reasons
  bool lacks_verb = false;     ///< refused, and no more than a verb that needs another one below it
};

/// The table of all verbs.
class Program {
 public:
  Program(const std::string& name, const std::string& help, const std::string& version);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The program as the verb that all others are below.
  Verb verb() const { return Verb(*app_); }
  /// Calls the callback of the verb that the command line names; what that throws passes through.
  Parsed parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

/// --format table|json|csv|markdown and --wide, --quiet. The tables of `render` fit the terminal.
void add_format_option(Verb verb, TableFormat& format);
void add_quiet_option(Verb verb, bool& quiet);

/// --capacity SIZE; one of 0 bytes is refused, which would look as if it were unlimited, and one that has lost its
/// unit.
Option add_capacity_option(Verb verb, std::string& capacity, const std::string& help);
/// The same where sizes may be in any unit, as those of packing problems are: 8 is 8.
Option add_any_capacity_option(Verb verb, std::string& capacity, const std::string& help);

/// A seed of what is random. One with a sign is refused.
Option add_seed_option(Verb verb, std::uint64_t& seed, const std::string& help);

std::string example(std::string_view command_line);

}  // namespace tenon::cli
