// How large things are: folders, files, functions, and whether a source has its header. A place that is better
// otherwise says why in a comment line of this form:
//
//   // Long: REASON         in the first lines of a file, or right above or at the beginning of a function
//   Declared in HEADER.     in the first lines of a source: the header that declares it, where that has another name
//   // No header: REASON    in the first lines of a source that declares nothing for others
//   # Long: REASON          in the CMakeLists.txt of a folder
#include "architecture/code_reader.h"
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string>

namespace tenon::test {
namespace {

constexpr std::size_t kMaxSourcesInFolder = 26;  // "about 25"
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
  for (const auto& root : {"framework", "plugins", "allocators", "tests"}) {
    std::map<std::string, std::size_t> count;
    for (const auto& file : sources_below(root)) ++count[shown(file.parent_path())];
    for (const auto& [folder, sources] : count) {
      if (sources <= kMaxSourcesInFolder) continue;
      EXPECT_NE(read_text(kRoot / folder / "CMakeLists.txt").find("# Long: "), std::string::npos)
          << folder << " has " << sources << " sources";
    }
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

/// Folders whose sources are entries of one list, gathered by their names: what declares one declares all.
bool is_entry_of_a_list(const std::string& file) {
  for (const auto* folder : {"cli/verbs/", "train/models/", "memory/layers/"})
    if (file.starts_with(std::string("framework/tenon/") + folder)) return true;
  return file.starts_with("framework/tenon/replay/formats/") && file.ends_with("_format.cpp");
}

TEST(SizeRule, ASourceOfTheFrameworkHasItsHeaderOrSaysWhereItIsDeclared) {
  const std::regex declared(R"(\bDeclared in ([\w/]+\.(h|inl))\b)");
  const auto headers = files_below("framework", {".h", ".inl"});
  const auto exists = [&](const std::string& name) {
    return std::any_of(headers.begin(), headers.end(),
                       [&](const auto& header) { return shown(header).ends_with("/" + name); });
  };
  for (const auto& file : files_below("framework", {".cpp"})) {
    auto header = file;
    if (std::filesystem::exists(header.replace_extension(".h")) || is_entry_of_a_list(shown(file))) continue;
    const auto lines = lines_of(read_text(file));
    if (gives_reason(lines, 0, kHeadLines, "No header:")) continue;
    std::string head;  // comments wrap
    for (std::size_t i = 0; i < std::min(kHeadLines, lines.size()) && lines[i].starts_with("//"); ++i)
      head += lines[i].substr(2);
    std::smatch match;
    const bool found = std::regex_search(head, match, declared);
    if (found) {
      EXPECT_TRUE(exists(match[1])) << shown(file) << " names " << match[1];
    }
    EXPECT_TRUE(found) << shown(file) << " has no header: say \"Declared in HEADER.\" or \"// No header: …\"";
  }
}

}  // namespace
}  // namespace tenon::test
