// How large things are: folders, files, functions, and whether a source has its header. A place that is better
// otherwise says why in a comment line of this form:
//
//   // Long: REASON         in the first lines of a file, or right above or at the beginning of a function
//   // Declared in PATH     in the first lines of a source: the header that declares it, where that has another name
//   // No header: REASON    in the first lines of a source that declares nothing for others
#include "architecture/code_reader.h"
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string>

namespace tenon::test {
namespace {

constexpr std::size_t kMaxSourcesInFolder = 30;  // "about 25"
constexpr std::size_t kMaxFileLines = 400;
constexpr std::size_t kMaxFunctionLines = 80;
constexpr std::size_t kHeadLines = 15;

const std::vector<std::string> kRoots = {"framework", "plugins",  "allocators", "compat",
                                         "bench",     "examples", "fuzz",       "tests"};

bool gives_reason(const std::vector<std::string>& lines, std::size_t from, std::size_t to, const std::string& form) {
  const std::regex reason("^\\s*// " + form + " \\S");
  for (std::size_t i = from; i < std::min(to, lines.size()); ++i)
    if (std::regex_search(lines[i], reason)) return true;
  return false;
}

TEST(SizeRule, AFolderHoldsAboutTwentyFiveSourcesAtMost) {
  for (const auto& root : {"framework", "plugins", "allocators"}) {
    std::map<std::string, std::size_t> count;
    for (const auto& file : sources_below(root)) ++count[shown(file.parent_path())];
    for (const auto& [folder, sources] : count) EXPECT_LE(sources, kMaxSourcesInFolder) << folder;
  }
}

TEST(SizeRule, ALongFileSaysWhy) {
  for (const auto& root : kRoots) {
    for (const auto& file : sources_below(root)) {
      const auto lines = lines_of(read_text(file));
      if (lines.size() <= kMaxFileLines) continue;
      EXPECT_TRUE(gives_reason(lines, 0, kHeadLines, "Long:"))
          << shown(file) << " has " << lines.size() << " lines: look for the second concept, or say \"// Long: …\"";
    }
  }
}

TEST(SizeRule, ALongFunctionSaysWhy) {
  std::size_t functions = 0;
  for (const auto& root : kRoots) {
    for (const auto& file : sources_below(root)) {
      const std::string text = read_text(file);
      const auto lines = lines_of(text);
      for (const FunctionBody& body : functions_of(text)) {
        ++functions;
        const std::size_t length = body.last_line - body.first_line + 1;
        if (length <= kMaxFunctionLines) continue;
        const std::size_t above = body.first_line - std::min<std::size_t>(body.first_line, 8);
        EXPECT_TRUE(gives_reason(lines, above, body.first_line + 4, "Long:"))
            << shown(file) << ":" << body.first_line << ": a function of " << length << " lines";
      }
    }
  }
  EXPECT_GT(functions, 5000U) << "the test no longer finds the functions";
}

TEST(SizeRule, ASourceOfTheFrameworkHasItsHeaderOrSaysWhereItIsDeclared) {
  const std::regex declared(R"(^// Declared in ([\w./]+\.(h|inl))\b)");
  for (const auto& file : files_below("framework", {".cpp"})) {
    auto header = file;
    if (std::filesystem::exists(header.replace_extension(".h"))) continue;
    const auto lines = lines_of(read_text(file));
    if (gives_reason(lines, 0, kHeadLines, "No header:")) continue;
    std::smatch match;
    bool found = false;
    for (std::size_t i = 0; i < std::min(kHeadLines, lines.size()) && !found; ++i) {
      if (!std::regex_search(lines[i], match, declared)) continue;
      found = true;
      const std::string path = match[1];
      EXPECT_TRUE(std::filesystem::exists(kRoot / "framework/tenon" / path) ||
                  std::filesystem::exists(file.parent_path() / path))
          << shown(file) << " names " << path;
    }
    EXPECT_TRUE(found) << shown(file) << " has no header: say \"// Declared in PATH\" or \"// No header: …\"";
  }
}

}  // namespace
}  // namespace tenon::test
