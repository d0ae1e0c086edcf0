// Writing roff with the macros of man(7).
#include <tenon/cli/manual/man_page.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace tenon::cli {

namespace {

std::string roff_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";  // else a request
      out += c;
    }
  }
  return out;
}

std::string page_name(const VerbFacts& verb) {
  std::string name = verb.path;
  std::ranges::replace(name, ' ', '-');
  return name;
}

/// The option as an item, as in "-a, --allocator SPEC".
std::string item(const OptionFacts& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + roff_text(name);
  const std::string value =
      option.is_positional || option.value.empty() ? "" : " \\fI" + roff_text(option.value) + "\\fR";
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", names, value, roff_text(option.help));
}

std::string synopsis(const VerbFacts& verb) {
  std::string text = fmt::format(".B {}\n", roff_text(verb.path));
  if (std::ranges::any_of(verb.options, [](const OptionFacts& option) { return !option.is_positional; }))
    text += "[\\fIOPTIONS\\fR]\n";
  if (!verb.verbs.empty()) text += "\\fIVERB\\fR ...\n";
  for (const OptionFacts& option : verb.options) {
    if (!option.is_positional) continue;
    const std::string word = "\\fI" + roff_text(option.names.front()) + "\\fR" + (option.is_repeated ? " ..." : "");
    text += (option.is_required ? word : "[" + word + "]") + "\n";
  }
  return text;
}

/// The example under a help: lines as they are, indented.
std::string footer(const VerbFacts& verb) {
  std::istringstream lines(verb.footer);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += line.empty() ? ".PP\n" : roff_text(line) + "\n";
  return text.empty() ? "" : ".PP\n.nf\n" + text + ".fi\n";
}

std::string options(const VerbFacts& verb) {
  std::string text;
  for (const OptionFacts& option : verb.options) text += item(option);
  return text;
}

void add_subverbs(const VerbFacts& verb, std::string& out) {
  for (const VerbFacts& below : verb.verbs) {
    out += fmt::format(".SS {}\n{}.PP\n{}.\n{}{}", roff_text(below.path), synopsis(below), roff_text(below.help),
                       options(below), footer(below));
    add_subverbs(below, out);
  }
}

std::string list_of_verbs(const VerbFacts& program) {
  std::string out = ".SH VERBS\n";
  for (const VerbFacts& verb : program.verbs)
    out += fmt::format(".TP\n\\fB{}\\fR\n{}; see \\fB{}\\fR(1)\n", verb.name, roff_text(verb.help),
                       roff_text(page_name(verb)));
  return out;
}

constexpr char kEnvironment[] =
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBCOLUMNS\\fR\nthe width that tables fit, whatever the terminal says\n"
    ".TP\n\\fBNO_COLOR\\fR\nno colours, when it is not empty\n"
    ".TP\n\\fBCLICOLOR_FORCE\\fR\ncolours in a file or a pipe too, when it is neither empty nor 0\n"
    ".TP\n\\fBTENON_CUDA_LIBRARIES\\fR\nthe folder of cuBLASLt and cuDNN; empty: neither is used\n"
    ".TP\n\\fBTENON_PLUGIN_PATH\\fR\nfolders of plugins, with colons between them\n"
    ".TP\n\\fBTENON_\\fISECTION\\fB__\\fIKEY\\fR\na setting of an experiment, stronger than its file\n";

}  // namespace

std::string man_page(const VerbFacts& verb, const std::string& version) {
  const bool is_program = verb.name == verb.path;
  std::string title = page_name(verb);
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string out = fmt::format(".TH {} 1 \"\" \"tenon {}\" \"Tenon\"\n", title, version);
  out += fmt::format(".SH NAME\n{} \\- {}\n", roff_text(page_name(verb)), roff_text(verb.help));
  out += ".SH SYNOPSIS\n" + synopsis(verb);
  if (is_program) {
    out += list_of_verbs(verb);
  } else if (!verb.verbs.empty()) {
    out += ".SH VERBS\n";
    add_subverbs(verb, out);
  }
  out += ".SH OPTIONS\n" + options(verb);
  out += ".SH EXAMPLES\n" + footer(verb);
  if (is_program) return out + kEnvironment;
  return out + ".SH SEE ALSO\n\\fBtenon\\fR(1)\n";
}

}  // namespace tenon::cli
