// Outcomes that are recorded in a text file beside the test, a line each: "what: outcome". What is recorded holds until
// somebody changes it on purpose and writes the file anew:
//   TENON_WRITE_TABLES=1 build/release/tests/tenon_…_test --gtest_filter=…
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace tenon::test {

class RecordedTable {
 public:
  /// `file` is relative to the checkout.
  explicit RecordedTable(const std::string& file) : file_(TENON_SOURCE_DIR "/" + file) {
    if (std::getenv("TENON_WRITE_TABLES") != nullptr) {
      out_.open(file_);
      return;
    }
    std::ifstream in(file_);
    for (std::string line; std::getline(in, line);)
      if (const std::size_t end = line.find(": "); end != std::string::npos)
        lines_[line.substr(0, end)] = line.substr(end + 2);
  }

  /// Holds an outcome of one line against the file, or writes it there.
  void expect(const std::string& what, const std::string& outcome) {
    ASSERT_EQ(what.find(": "), std::string::npos);
    if (out_.is_open()) {
      out_ << what << ": " << outcome << '\n' << std::flush;
      return;
    }
    const auto found = lines_.find(what);
    ASSERT_NE(found, lines_.end()) << what << " is not in " << file_;
    EXPECT_EQ(outcome, found->second) << what;
  }

 private:
  std::string file_;
  std::map<std::string, std::string> lines_;
  std::ofstream out_;
};

}  // namespace tenon::test
