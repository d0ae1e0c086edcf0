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
template <class T>
int Box<T>::size() const { return a_; }
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

std::map<std::string, bool> described_in(std::string_view header, const Includes& includes = {}) {
  std::map<std::string, bool> described;
  for (const auto& each : declared_functions(header, includes))
    described[each.scope + "::" + each.name] |= each.has_docstring;
  return described;
}

TEST(Declarations, OfMacrosAreFoundWhetherTheirBodiesDescribeThemOrNot) {
  const std::map<std::string, bool> expected = {
      {"tenon::sum1d", true}, {"tenon::mean1d", false}, {"tenon::sum2d", true}, {"tenon::mean2d", false}};
  EXPECT_EQ(described_in(R"(
namespace tenon {
#define TENON_PAIR(D)                                                  \
  /** The sum; it's a number (and so is the mean). */                   \
  TENON_API Tensor sum##D##d(const Tensor& input);                      \
  inline Tensor mean##D##d(const Tensor& input, const Options& o = {}) { \
    return detail::mean<D>(input, o); /* one's own */                   \
  }
/// Counts for neither: there are two.
TENON_PAIR(1)
TENON_PAIR(2)
#undef TENON_PAIR
TENON_PAIR(3)
}  // namespace tenon
)"),
            expected);
}

TEST(Declarations, OfAMacroAreDescribedByADocstringAboveTheInvocationThatDeclaresOneFunction) {
  const std::map<std::string, bool> expected = {{"tenon::ReLUImpl::forward", true},
                                                {"tenon::MishImpl::forward", false}};
  EXPECT_EQ(described_in(R"(
namespace tenon {
#define TENON_ACTIVATION(Name)                                        \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {      \
   public:                                                            \
    explicit Name##Impl(const Name##Options& options = {});           \
    void pretty_print(std::ostream& stream) const override;           \
    Tensor forward(const Tensor& input);                              \
  };
/// max(0, x).
TENON_ACTIVATION(ReLU)
TENON_ACTIVATION(
    Mish)
}  // namespace tenon
)"),
            expected);
}

TEST(Declarations, OfIncludedRowsAreFoundInTheScopeThatIncludesThem) {
  const std::map<std::string, std::string> files = {{"tenon/rows.inl", R"(
#if !defined(TENON_ROW)
#define TENON_ROW(...)
#endif
#if !defined(TENON_OTHER)
#define TENON_OTHER(...)
#endif
/// -x.
TENON_ROW(Neg, neg, -x)
TENON_ROW(Abs, abs, x < 0 ? -x : x)
TENON_OTHER(Exp, exp, exp(x))
#undef TENON_ROW
)"},
                                                    {"tenon/arg.h", R"(
#define TENON_ARG(T, name)                              \
 public:                                                \
  /** Sets it. */                                       \
  inline auto name(const T& x)->decltype(*this) { return *this; } \
                                                        \
 private:                                               \
  T name##_
)"}};
  const std::map<std::string, bool> expected = {{"tenon::Tensor::neg", true},   {"tenon::Tensor::neg_", true},
                                                {"tenon::Tensor::abs", false},  {"tenon::Tensor::abs_", false},
                                                {"tenon::Tensor::last", false}, {"tenon::Options::lr", true}};
  const std::string header = R"(
#include <tenon/arg.h>
namespace tenon {
class Tensor {
 public:
#define TENON_TWO(Row, name, ...) \
  Tensor name() const;            \
  Tensor& name##_() const;
#define TENON_ROW TENON_TWO
#include <tenon/rows.inl>
  void last();
};
struct Options {
  TENON_ARG(double, lr) = 1;
};
}  // namespace tenon
)";
  const auto text_of = [&](const std::string& path) { return files.at(path); };
  EXPECT_EQ(described_in(header, text_of), expected);
  const auto found = declared_functions(header, text_of);
  EXPECT_EQ(found[2].file, "tenon/rows.inl");
  EXPECT_EQ(found[2].line, 10u);
  EXPECT_EQ(found[4].line, 11u) << "the line of last()";
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
Functions functions_of_layer(const std::string& layer) {
  Functions functions;
  for (const auto& file : files_below("framework/tenon/" + layer, {".h"})) {
    for (const auto& each : declared_functions(read_text(file), text_of_include)) {
      const std::string declared_in = each.file.empty() ? shown(file) : "framework/" + each.file;
      const auto [found, is_new] = functions.try_emplace(
          each.scope + "::" + each.name, Function{declared_in, each.line, each.has_docstring, each.alias_of});
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
  const Functions operators = functions_of_layer("ops");
  for (const std::string layer : {"tensor", "ops", "nn", "optim", "data"}) {
    const Functions functions = functions_of_layer(layer);
    const auto is_described = [&](const std::string& name) {
      return has_docstring(name, functions) || is_described_at_its_operator(name, operators);
    };
    std::size_t described = 0;
    for (const auto& [name, function] : functions) {
      // An alias says by its one line what it is: `Tensor absolute() const { return abs(); }`. What it stands for is
      // described here, or belongs to another layer.
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
