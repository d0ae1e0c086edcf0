// What holds for every file of the tree: it says what it is for, stays small, and names no machine.
#include "architecture/source_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

namespace tenon::test {
namespace {

TEST(Tree, EverySourceFileOpensWithWhatItIsFor) {
  for (const auto& root : {"framework", "plugins", "allocators", "tests", "bench", "examples", "compat"}) {
    for (const auto& file : sources_below(root)) {
      const std::string text = read_text(file);
      EXPECT_TRUE(text.starts_with("// ") || text.starts_with("/*")) << shown(file);
    }
  }
}

TEST(Tree, EveryHeaderIsIncludedOnce) {
  for (const auto& root : {"framework", "plugins", "allocators", "tests", "bench", "examples", "compat"}) {
    for (const auto& file : files_below(root, {".h", ".cuh"})) {
      EXPECT_NE(read_text(file).find("#pragma once"), std::string::npos) << shown(file);
    }
  }
}

TEST(Tree, NoFileNamesAPathOfTheMachineItWasWrittenOn) {
  // The checkout's own place is the likeliest to slip in; home and temporary folders come next.
  const std::string checkout = std::filesystem::canonical(kRoot).string() + "/";
  const std::string shared = std::string("/") + "work/";  // so that this file does not name it
  const std::regex home(R"((^|[^A-Za-z0-9_$\}.-])(/home/[a-z]|/root/|/Users/|)" + shared + ")");
  std::size_t checked = 0;
  for (const auto& file : files_below("")) {
    const auto extension = file.extension().string();
    const bool text = extension != ".gz" && extension != ".png" && extension != ".pickle" && extension != ".bin";
    if (!text || std::filesystem::file_size(file) > 2'000'000) continue;
    if (shown(file) == "tests/architecture/tree_test.cpp") continue;
    const std::string content = read_text(file);
    ++checked;
    if (checkout.size() > 3) {
      EXPECT_EQ(content.find(checkout), std::string::npos) << shown(file);
    }
    if (content.find("/home/") == std::string::npos && content.find("/root/") == std::string::npos &&
        content.find("/Users/") == std::string::npos && content.find(shared) == std::string::npos) {
      continue;  // the regular expression is slow; these are rare
    }
    std::smatch match;
    EXPECT_FALSE(std::regex_search(content, match, home)) << shown(file) << ": " << match.str();
  }
  EXPECT_GT(checked, 50u) << "the test no longer finds the tree";
}

TEST(Tree, NoSourceHoldsAPromiseInsteadOfCode) {
  const std::regex promise(R"(\b(TODO|FIXME|XXX)\b)");
  for (const auto& root : {"framework", "plugins", "allocators", "bench", "examples", "compat"}) {
    for (const auto& file : sources_below(root)) {
      EXPECT_FALSE(std::regex_search(read_text(file), promise)) << shown(file);
    }
  }
}

}  // namespace
}  // namespace tenon::test
