// What a function throws stands at its declaration: a source that throws is held against the docstrings of its header.
// And every field of an option struct says what it is.
#include "architecture/code_reader.h"
#include "architecture/declarations.h"
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

const std::vector<std::string> kLayers = {"tensor", "ops", "nn", "optim", "data"};

/// "Tensor::sum" of the head of its definition, "sum" of a function's; empty where there is none.
std::string name_defined(const std::string& head) {
  static const std::regex name(R"(([A-Za-z_]\w*(?:::~?\w+)*)\s*\()");
  static const std::regex arguments("<[^<>]*>");
  std::string text = head;
  for (std::size_t before = 0; before != text.size();) {  // arguments of templates, inner ones first
    before = text.size();
    text = std::regex_replace(text, arguments, "");
  }
  std::smatch found;
  return std::regex_search(text, found, name) ? found[1].str() : "";
}

std::string last_part(const std::string& name) {
  const auto colons = name.rfind("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

bool calls(const std::string& body, const std::string& function) {
  if (body.find(function) == std::string::npos) return false;  // what is quick to tell first
  return std::regex_search(body, std::regex(R"((^|[^\w.>:]))" + function + R"(\s*(<[^;{}()]*>)?\()"));
}

/// The lines between `namespace {` and `}  // namespace`, counted from 1.
std::set<std::size_t> anonymous_lines(const std::string& source) {
  std::set<std::size_t> lines;
  bool inside = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(source)) {
    ++number;
    if (line == "namespace {") inside = true;
    if (line == "}  // namespace") inside = false;
    if (inside) lines.insert(number);
  }
  return lines;
}

/// The functions for others that a source defines and that throw: by themselves, by a check_…(), or by a function of
/// the same source that does.
std::set<std::string> throwing_functions(const std::string& source) {
  static const std::regex throws(R"(\bthrow\b|\bTENON_CHECK\b|\bcheck_\w+\()");
  std::map<std::string, std::vector<std::string>> bodies;
  std::set<std::string> hidden;
  const std::set<std::size_t> anonymous = anonymous_lines(source);
  for (const FunctionBody& function : functions_of(source)) {
    const std::string name = name_defined(function.head);
    if (name.empty()) continue;
    bodies[name].push_back(function.body);
    if (anonymous.contains(function.first_line)) hidden.insert(name);
  }
  std::set<std::string> found;
  for (const auto& [name, texts] : bodies) {
    for (const std::string& text : texts)
      if (std::regex_search(text, throws)) found.insert(name);
  }
  for (std::size_t before = 0; before != found.size();) {  // those that call one, until there are no more
    before = found.size();
    for (const auto& [name, texts] : bodies) {
      if (found.contains(name)) continue;
      for (const std::string& text : texts) {
        const auto is_called = [&](const std::string& other) {
          return other.find("::") == std::string::npos && calls(text, other);
        };
        if (std::any_of(found.begin(), found.end(), is_called)) {
          found.insert(name);
          break;
        }
      }
    }
  }
  for (const std::string& name : hidden) found.erase(name);
  return found;
}

TEST(ErrorDocstrings, FunctionsThatThrowAreFoundAlsoThroughHelpers) {
  const std::set<std::string> expected = {"Tensor::sum", "direct", "check_it", "by_helper"};
  EXPECT_EQ(throwing_functions(R"(
namespace tenon {
namespace {
void helper(int x) { if (x) throw Error("no"); }
}  // namespace
void check_it(int x) { TENON_CHECK(x, "yes"); }
int direct(std::function<int(int)> f) {
  throw Error("throw");
}
Tensor Tensor::sum(const std::optional<Scalar>& p) const { check_it(p); return *this; }
int by_helper() { return helper(1); }
int calm(int x) { return "throw" ? x : object.helper(1); }
}
)"),
            expected);
}

/// What stands at the declarations of one name, by the header that has them.
struct Words {
  std::map<std::string, std::string> of_header;
  std::string all() const {
    std::string text;
    for (const auto& [header, words] : of_header) text += words;
    return text;
  }
};

/// "sum" of functions, "Tensor::sum" of methods.
std::map<std::string, Words> docstrings() {
  std::map<std::string, Words> words;
  for (const std::string& layer : kLayers) {
    for (const auto& file : files_below("framework/tenon/" + layer, {".h"})) {
      for (const auto& each : declared_functions(read_text(file), text_of_include)) {
        const std::string scope = last_part(each.scope);
        const bool is_method = !scope.empty() && std::isupper(static_cast<unsigned char>(scope[0])) != 0;
        words[(is_method ? scope + "::" : "") + each.name].of_header[shown(file)] += each.docstring;
      }
    }
  }
  return words;
}

/// Whether a text names an error, itself or by naming another function that does: "Throws Error as gather()".
bool names_errors(const std::string& text, const std::map<std::string, Words>& words, int steps = 2) {
  static const std::regex error(R"([Tt]hrows|Error|errors|[Rr]efuse)");
  static const std::regex mentioned(R"((\w+)\(\))");
  if (std::regex_search(text, error)) return true;
  if (steps == 0) return false;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), mentioned); it != std::sregex_iterator(); ++it) {
    const auto found = words.find((*it)[1]);
    if (found != words.end() && names_errors(found->second.all(), words, steps - 1)) return true;
  }
  return false;
}

std::string words_for(const std::string& name, const std::string& header, const std::map<std::string, Words>& words) {
  const auto found = words.find(name);
  if (found == words.end()) return "";
  const auto own = found->second.of_header.find(header);
  return own != found->second.of_header.end() && !own->second.empty() ? own->second : found->second.all();
}

TEST(ErrorDocstrings, AFunctionThatThrowsSaysSo) {
  const auto words = docstrings();
  std::size_t throwing = 0;
  for (const std::string layer : {"ops", "nn", "optim", "data"}) {
    for (const auto& file : files_below("framework/tenon/" + layer, {".cpp"})) {
      std::string header = shown(file);
      header.replace(header.size() - 3, 3, "h");
      for (const std::string& name : throwing_functions(read_text(file))) {
        if (!words.contains(name)) continue;  // a helper of this source, or a constructor
        ++throwing;
        std::string text = words_for(name, header, words);
        if (name.starts_with("Tensor::") && words.contains(name.substr(8))) text += words.at(name.substr(8)).all();
        for (const std::string suffix : {"_", "_out"}) {
          const std::string plain = last_part(name);
          if (plain.ends_with(suffix)) text += words_for(plain.substr(0, plain.size() - suffix.size()), header, words);
        }
        EXPECT_TRUE(names_errors(text, words)) << shown(file) << ": " << name << "() throws, and no word says of what";
      }
    }
  }
  std::cout << throwing << " functions throw\n";
  EXPECT_GT(throwing, 200u) << "the test no longer finds them";
}

/// TENON_ARG(bool, bias) with no comment behind it, nor right above.
std::vector<std::size_t> undescribed_fields(const std::string& header, std::size_t& fields) {
  static const std::regex field(R"(^\s*TENON_ARG\()");
  const auto lines = lines_of(header);
  std::vector<std::size_t> undescribed;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!std::regex_search(lines[i], field)) continue;
    ++fields;
    static const std::regex above(R"(^\s*(///|/\*\*).*|.*\*/\s*\\?$)");
    bool described = i > 0 && std::regex_search(lines[i - 1], above) && lines[i - 1].find("///<") == std::string::npos;
    for (std::size_t j = i; j < lines.size(); ++j) {
      described = described || lines[j].find("///<") != std::string::npos;
      if (lines[j].find(';') != std::string::npos) break;
    }
    if (!described) undescribed.push_back(i + 1);
  }
  return undescribed;
}

TEST(ErrorDocstrings, FieldsOfOptionsAreFoundWhetherDescribedOrNot) {
  std::size_t fields = 0;
  const std::vector<std::size_t> expected = {2, 6};
  EXPECT_EQ(undescribed_fields(R"(struct Options {
  TENON_ARG(double, lr);
  TENON_ARG(double, decay) = 0;  ///< how much is taken off
  /// How many.
  TENON_ARG(int, count) = 1;
  TENON_ARG(int, bare) = 1;
};
)",
                               fields),
            expected);
  EXPECT_EQ(fields, 4u);
}

TEST(ErrorDocstrings, EveryFieldOfAnOptionStructSaysWhatItIs) {
  std::size_t fields = 0;
  for (const std::string& layer : kLayers) {
    for (const auto& file : files_below("framework/tenon/" + layer, {".h"})) {
      for (const std::size_t line : undescribed_fields(read_text(file), fields))
        ADD_FAILURE_AT(shown(file).c_str(), static_cast<int>(line)) << "this field has no word beside or above it";
    }
  }
  std::cout << fields << " fields\n";
  EXPECT_GT(fields, 300u) << "the test no longer finds the fields";
}

}  // namespace
}  // namespace tenon::test
