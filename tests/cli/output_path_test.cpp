// Where a command is to write: looked at before the work, in every verb that writes a file.
#include "cli/program.h"

#include <gmock/gmock.h>

#include <filesystem>

namespace tenon::test {
namespace {

using testing::HasSubstr;

class OutputPath : public Program {};

// A report is looked for where there is something to report: after minutes, where nobody looked before.
TEST_F(OutputPath, AnOutputThatCannotBeWrittenIsRefusedBeforeTheWork) {
  folder_.write("no.trace", "this is no history\n");
  std::filesystem::create_directory(folder_.path() / "page");
  folder_.write("kept.html", "the report of yesterday");
  std::filesystem::permissions(folder_.path() / "page", std::filesystem::perms::owner_all);
  const std::vector<std::string> commands[] = {{"replay", "no.trace", "--html", "page"},
                                               {"replay", "no.trace", "--svg", "page"},
                                               {"replay", "no.trace", "-a", "caching", "--snapshot", "page"},
                                               {"view", "no.trace", "-o", "page"},
                                               {"trace", "convert", "no.trace", "page", "--to", "text"},
                                               {"trace", "slice", "no.trace", "page", "--to", "text"},
                                               {"compare", "no.trace", "no.trace", "--html", "page"}};
  for (const std::vector<std::string>& words : commands) {
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2) << words[0];
    EXPECT_THAT(said.error, HasSubstr("cannot write page: it is a folder; name a file, as page/NAME")) << words[0];
  }
  // Nothing can be made in /proc, whoever asks.
  EXPECT_THAT(tenon({"replay", "no.trace", "--html", "/proc/page.html"}).error,
              HasSubstr("cannot write /proc/page.html: "));
  EXPECT_EQ(tenon({"replay", "no.trace", "--html", "kept.html"}).code, 2);
  EXPECT_EQ(read_bytes(folder_.path() / "kept.html"), "the report of yesterday") << "looking changes nothing";
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("partial")));
}

}  // namespace
}  // namespace tenon::test
