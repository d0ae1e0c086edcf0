// The functions that a header declares, each with whether a docstring stands at it: a reader of this tree's own style,
// not of C++ at large.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

struct Declaration {
  std::string scope;  ///< "tenon::nn::ConvNdImpl"
  std::string name;   ///< "forward"
  std::string file;   ///< the included file that declares it, "tenon/tensor/methods/shape.inl"; empty: the header
  std::size_t line = 0;
  bool has_docstring = false;  ///< a `///` comment right above it, or on its line; in macros `/** … */` above it
  std::string docstring;       ///< its text
  std::string alias_of;        ///< "abs" where the whole body is `{ return abs(…); }`
};

/// The text of an included file, by its path as it is written: "tenon/tensor/tensor.h".
using Includes = std::function<std::string(const std::string& path)>;

/// The functions declared at namespace scope and in the public parts of classes, also by macros of the header or of
/// those that it includes, and by row files (.inl) that it includes. A docstring above the invocation of a macro
/// describes the one function that it declares; where it declares several, each has its own in the macro's body. Left
/// out are constructors, destructors, operators, overrides (the base has the docstring), defaulted and deleted
/// functions, friends, unknown macros, and what is in a namespace `detail` or in none that has a name.
std::vector<Declaration> declared_functions(std::string_view header, const Includes& includes = {});

}  // namespace tenon::test
