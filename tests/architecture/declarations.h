// The functions that a header declares, each with whether a docstring stands at it: a reader of this tree's own style,
// not of C++ at large.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

struct Declaration {
  std::string scope;  ///< "tenon::nn::ConvNdImpl"
  std::string name;   ///< "forward"
  std::size_t line = 0;
  bool has_docstring = false;  ///< a `///` comment right above it, or on its line
  std::string alias_of;        ///< "abs" where the whole body is `{ return abs(…); }`
};

/// The functions declared at namespace scope and in the public parts of classes. Left out are constructors,
/// destructors, operators, overrides (the base has the docstring), defaulted and deleted functions, friends, macros,
/// and what is in a namespace `detail` or in none that has a name.
std::vector<Declaration> declared_functions(std::string_view header);

}  // namespace tenon::test
