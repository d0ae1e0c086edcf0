// Every function that a public header of the front end declares says what it does: shapes, dtypes, errors, source.
#include "architecture/declarations.h"
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <map>
#include <utility>

namespace tenon::test {
namespace {

TEST(Declarations, AreFoundInNamespacesAndPublicPartsOfClasses) {
  const auto found = declared_functions(R"(
#pragma once
namespace tenon {
/// Doubles.
TENON_API int twice(int x, std::function<int(int)> f = [](int y) { return y; });
int bare();
namespace detail { void hidden(); }
template <class T>
class Box : public Base<T> {
 public:
  explicit Box(int x) : a_{x}, b_(x) {}
  ~Box() override = default;
  Box& operator=(const Box& other) {
    a_ = other.a_;
    return *this;
  }
  int size() const { return a_; }  ///< how many
  void run() override;
  TENON_ARG(int, lr) = 1;
  /// Adds.
  Box& add(int x) {
    if (x) { ++a_; }
    return *this;
  }
 private:
  void inside();
  int a_ = f(1);
};
inline std::vector<int> last(char c = '{') { return {}; }
}  // namespace tenon
)");
  std::vector<std::pair<std::string, bool>> names;
  for (const auto& each : found) names.emplace_back(each.scope + " " + each.name, each.has_docstring);
  const std::vector<std::pair<std::string, bool>> expected = {{"tenon twice", true},
                                                              {"tenon bare", false},
                                                              {"tenon::Box size", true},
                                                              {"tenon::Box add", true},
                                                              {"tenon last", false}};
  EXPECT_EQ(names, expected);
}

struct Function {
  std::string file;
  std::size_t line;
  bool has_docstring;
  std::string alias_of;
};
using Functions = std::map<std::string, Function>;

/// The functions of one layer by scope and name. Overloads of one header share a docstring: the first has it, the
/// others differ in how they are called.
Functions functions_of(const std::string& layer) {
  Functions functions;
  for (const auto& file : files_below("framework/tenon/" + layer, {".h", ".inl"})) {
    for (const auto& each : declared_functions(read_text(file))) {
      // What is included inside a class has its scope there.
      const std::string scope = file.extension() == ".inl" ? "tenon::Tensor" : each.scope;
      const auto [found, is_new] = functions.try_emplace(
          scope + "::" + each.name, Function{shown(file), each.line, each.has_docstring, each.alias_of});
      found->second.has_docstring |= each.has_docstring;
    }
  }
  return functions;
}

bool has_docstring(const std::string& name, const Functions& functions) {
  const auto found = functions.find(name);
  return found != functions.end() && found->second.has_docstring;
}

/// `x.sum()`, `x.relu_()` and `sum_out(…)` are described at `tenon::sum` and `tenon::relu`, their operators.
bool is_described_at_its_operator(std::string name, const Functions& operators) {
  const std::string method = "tenon::Tensor::";
  if (name.starts_with(method)) name = "tenon::" + name.substr(method.size());
  for (const auto& suffix : {"", "_", "_out"}) {
    if (name.ends_with(suffix) && has_docstring(name.substr(0, name.size() - std::strlen(suffix)), operators)) {
      return true;
    }
  }
  return false;
}

TEST(Docstrings, EveryFunctionOfTheFrontEndHasOne) {
  const Functions operators = functions_of("ops");
  for (const std::string layer : {"tensor", "ops", "nn", "optim", "data"}) {
    const Functions functions = functions_of(layer);
    const auto is_described = [&](const std::string& name) {
      return has_docstring(name, functions) || is_described_at_its_operator(name, operators);
    };
    std::size_t described = 0;
    for (const auto& [name, function] : functions) {
      // An alias says by its one line what it is: `Tensor absolute() const { return abs(); }`. What it stands for is
      // described here, or made by a row of kernel/rows, where no declaration is seen.
      const std::string scope = name.substr(0, name.rfind("::"));
      const std::string target = scope + "::" + function.alias_of;
      const bool is_alias =
          !function.alias_of.empty() &&
          (is_described(target) || is_described("tenon::Tensor::" + function.alias_of) || !functions.contains(target));
      if (is_described(name) || is_alias) {
        ++described;
      } else {
        ADD_FAILURE_AT(function.file.c_str(), static_cast<int>(function.line)) << name << " has no docstring";
      }
    }
    std::cout << layer << ": " << described << " of " << functions.size() << " functions are described\n";
    EXPECT_GT(functions.size(), 20u) << "the test no longer finds the functions of " << layer;
  }
}

}  // namespace
}  // namespace tenon::test
