// What verbs declare, handed on to CLI11, and what all of them share.
#include <tenon/cli/manual/verb_facts.h>
#include <tenon/cli/verb.h>

#include <tenon/core/units.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace tenon::cli {

namespace {

constexpr char kNotEmpty[] = "not empty";  // the check that texts have

}  // namespace

const Option& Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}
const Option& Option::required() const {
  option_->required();
  return *this;
}
const Option& Option::range(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}
const Option& Option::range(double least, double most) const {
  option_->check(CLI::Range(least, most));
  // Which is neither below the one nor above the other.
  return check([least, most](const std::string& text) {
    return std::isnan(std::strtod(text.c_str(), nullptr))
               ? fmt::format("Value {} not in range {} to {}", text, least, most)
               : std::string();
  });
}
const Option& Option::check(std::function<std::string(const std::string&)> problem) const {
  option_->check(std::move(problem));
  return *this;
}
const Option& Option::words(std::vector<std::string> words) const {
  set_words(option_, std::move(words));
  return *this;
}
const Option& Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}
const Option& Option::one_at_a_time() const {
  option_->allow_extra_args(false);
  return *this;
}
const Option& Option::expects(int words) const {
  option_->expected(words);
  return *this;
}
const Option& Option::may_be_empty() const {
  option_->get_validator(kNotEmpty)->active(false);
  return *this;
}
const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}
const Option& Option::hidden() const {
  option_->group("");
  return *this;
}
bool Option::is_given() const { return option_->count() != 0; }

Verb Verb::add_verb(const std::string& name, const std::string& help) const {
  return Verb(*app_->add_subcommand(name, help));
}
void Verb::require_verb(std::size_t least) const { app_->require_subcommand(least, 1); }
bool Verb::is_alone() const { return app_->get_subcommands().empty(); }

template <class T>
Option Verb::add_option(const std::string& names, T& value, const std::string& help) const {
  const Option option(*app_->add_option(names, value, help));
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>) {
    const char* const next = names.starts_with('-') ? "; leave the option out for none" : "";
    const auto problem = [next](const std::string& text) -> std::string {
      return text.empty() ? fmt::format("an empty value, as of a shell variable that is not set{}", next) : "";
    };
    option.option_->check(CLI::Validator(problem, "", kNotEmpty));
  }
  return option;
}
template Option Verb::add_option(const std::string&, std::string&, const std::string&) const;
template Option Verb::add_option(const std::string&, int&, const std::string&) const;
template Option Verb::add_option(const std::string&, unsigned&, const std::string&) const;
template Option Verb::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Verb::add_option(const std::string&, double&, const std::string&) const;
template Option Verb::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option Verb::add_option(const std::string&, std::vector<int>&, const std::string&) const;

Option Verb::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(*app_->add_flag(names, value, help));
}
Verb Verb::below(const std::vector<std::string>& words) const {
  CLI::App* verb = app_;
  for (const std::string& word : words) {
    const auto named = verb->get_subcommands([&](const CLI::App* it) { return it->get_name() == word; });
    if (named.empty()) break;
    verb = named.front();
  }
  return Verb(*verb);
}
std::string Verb::help() const {
  // Not App::help, which is that of the verb on the command line.
  return app_->get_formatter()->make_help(app_, facts_of(*this).path, CLI::AppFormatMode::Normal);
}
void Verb::footer(const std::string& text) const { app_->footer(text); }
void Verb::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

namespace {

CLI::App& deepest(CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

}  // namespace

Program::Program(const std::string& name, const std::string& help, const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->set_version_flag("--version,-V", name + " " + version);
}
Program::~Program() = default;

Parsed Program::parse(int argc, char** argv) {
  const auto parsed = [this](Parsed::Kind kind, std::string text = {}) {
    return Parsed{.kind = kind, .verb = Verb(deepest(*app_)), .text = std::move(text)};
  };
  try {
    app_->parse(argc, argv);
    return parsed(Parsed::Kind::kRan);
  } catch (const CLI::CallForHelp&) {
    return parsed(Parsed::Kind::kHelp);
  } catch (const CLI::CallForVersion& version) {
    return parsed(Parsed::Kind::kVersion, version.what());
  } catch (const CLI::ParseError& error) {
    Parsed refused = parsed(Parsed::Kind::kRefused, error.what());
    const CLI::App& verb = refused.verb.app();
    const std::vector<std::string> extras = verb.remaining(true);
    if (!extras.empty() && extras.front().starts_with("-")) refused.unknown_option = extras.front();
    refused.lacks_verb = verb.get_require_subcommand_min() != 0 && verb.get_subcommands().empty() && extras.empty();
    return refused;
  }
}

void add_format_option(Verb verb, TableFormat& format) {
  CLI::Option* const option = verb.app()
                                  .add_option_function<std::string>(
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
  verb.app().add_flag_callback(
      "--wide", [] { set_output_screen({.columns = 0, .has_colour = output_screen().has_colour}); },
      "all columns of tables, however narrow the terminal is");
}

void add_quiet_option(Verb verb, bool& quiet) { verb.add_flag("--quiet,-q", quiet, "no progress, no remarks"); }

Option add_any_capacity_option(Verb verb, std::string& capacity, const std::string& help) {
  const auto problem = [](const std::string& size) -> std::string {
    if (try_parse_size(size) == 0) return size + ": a device of 0 bytes serves nothing; leave the option out";
    return {};
  };
  return verb.add_option("--capacity", capacity, help).type_name("SIZE").check(problem);
}

Option add_capacity_option(Verb verb, std::string& capacity, const std::string& help) {
  return add_any_capacity_option(verb, capacity, help).check([](const std::string& size) {
    return forgotten_unit(size);
  });
}

Option add_seed_option(Verb verb, std::uint64_t& seed, const std::string& help) {
  const auto problem = [](const std::string& text) -> std::string {
    return text.starts_with('-') ? text + ": a seed has no sign" : "";
  };
  return verb.add_option("--seed", seed, help).type_name("N").check(problem);
}

std::string example(std::string_view command_line) { return fmt::format("Example:\n  {}", command_line); }

}  // namespace tenon::cli
