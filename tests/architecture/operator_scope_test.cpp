// Every public operator opens a scope: a profiler that misses one shows its time and its memory as somebody else's.
#include "architecture/declarations.h"
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>

namespace tenon::test {
namespace {

/// What is declared among the operators and is none, or is one by another name: why it opens no scope of its own.
const std::map<std::string, std::string>& without_scope() {
  static const auto* names = new std::map<std::string, std::string>{
#include "architecture/without_scope.inl"
  };
  return *names;
}

/// The names behind TENON_SCOPE(, TENON_VIEW( and TENON_AUTOCAST( in the sources of ops; those of rows are in the row
/// files.
std::set<std::string> names_with_scope() {
  std::set<std::string> names;
  const std::regex head(R"(TENON_(?:SCOPE|VIEW|AUTOCAST|AUTOCAST_METHOD)\(([A-Za-z0-9_#]+)[,)])");
  for (const auto& file : files_below("framework/tenon/ops", {".cpp"})) {
    const std::string text = read_text(file);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), head); it != std::sregex_iterator(); ++it) {
      const std::string name = (*it)[1];
      const auto hashes = name.find("##");
      if (hashes == std::string::npos) {
        names.insert(name);
        continue;
      }
      // conv##spatial##d, max_pool##D##d: of one, two and three dimensions.
      const auto last = name.rfind("##");
      for (const char* dimensions : {"1", "2", "3"})
        names.insert(name.substr(0, hashes) + dimensions + (last == hashes ? "" : name.substr(last + 2)));
    }
  }
  // The recurrent layers and the shifts are made by macros of their sources.
  const std::regex made(R"(\nTENON_(?:RECURRENT|SHIFT)\((\w+), )");
  for (const auto& file : files_below("framework/tenon/ops", {".cpp"})) {
    const std::string text = read_text(file);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), made); it != std::sregex_iterator(); ++it)
      for (const char* form : {"", "_", "_cell"}) names.insert((*it)[1].str() + form);
  }
  const std::regex row(R"(TENON_(?:UNARY|UNARY_WITH|BINARY|COMPARISON|BITWISE|PREDICATE)\(\w+, (\w+))");
  for (const auto& file : files_below("framework/tenon/kernel/rows", {".inl"})) {
    const std::string text = read_text(file);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), row); it != std::sregex_iterator(); ++it) {
      names.insert((*it)[1]);
      names.insert((*it)[1].str() + "_");
    }
  }
  return names;
}

std::string include_text(const std::string& path) { return read_text(kRoot / "framework" / path); }

TEST(OperatorScope, IsOpenedByEveryPublicOperator) {
  const std::set<std::string> opened = names_with_scope();
  ASSERT_GE(opened.size(), 300u) << "the test no longer finds the heads of operators";
  std::set<std::string> unused;
  for (const auto& [name, reason] : without_scope()) unused.insert(name);
  std::size_t checked = 0;
  const auto check = [&](const std::string& file, const Declaration& declared) {
    std::string name = declared.name;
    if (!declared.alias_of.empty()) return;
    if (name.ends_with("_out")) name.resize(name.size() - 4);
    if (declared.scope.ends_with("linalg") || declared.scope.ends_with("special")) {
      const auto dot = declared.scope.rfind(':');
      const std::string own = declared.scope.substr(dot + 1) + "_" + name;
      if (opened.contains(own)) return;
    }
    ++checked;
    unused.erase(name);
    if (without_scope().contains(name)) return;
    EXPECT_TRUE(opened.contains(name)) << file << ":" << declared.line << ": the operator " << declared.name
                                       << " opens no scope: TENON_SCOPE or TENON_AUTOCAST at its head, or TENON_VIEW";
  };
  for (const auto& path : files_below("framework/tenon/ops", {".h"})) {
    if (shown(path).find("/support/") != std::string::npos || shown(path).find("/autocast/") != std::string::npos)
      continue;
    for (const Declaration& declared : declared_functions(read_text(path), include_text)) {
      if (declared.scope != "tenon" && !declared.scope.ends_with("::linalg") && !declared.scope.ends_with("::special"))
        continue;
      check(shown(path), declared);
    }
  }
  for (const Declaration& declared :
       declared_functions(read_text(kRoot / "framework/tenon/tensor/tensor.h"), include_text)) {
    if (declared.scope != "tenon::Tensor" || declared.file.find("methods/") == std::string::npos) continue;
    check(declared.file, declared);
  }
  EXPECT_GE(checked, 300u) << "the test no longer finds the operators";
  for (const std::string& name : unused) ADD_FAILURE() << name << " is no operator: take it out of without_scope.inl";
}

}  // namespace
}  // namespace tenon::test
