// What readers, writers and comparisons say, to the word: a reason stands behind its place, a difference names what
// differs.
#include "replay/support.h"
#include "support/scratch_folder.h"

#include <tenon/replay/formats/writers.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/replay/results/row_json.h>
#include <tenon/replay/results/slice_diff.h>

#include <gmock/gmock.h>

#include <regex>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(FidelityInWords, CountsTheCallsAsPeopleDo) {
  Fidelity fidelity;
  fidelity.is_known = fidelity.is_exact = true;
  EXPECT_THAT(fidelity.sentence(), HasSubstr("makes no device call, as the recording, and ends"));
  fidelity.recorded_actions = 1;
  EXPECT_THAT(fidelity.sentence(), HasSubstr("makes the same device call at the same event and ends"));
  fidelity.recorded_actions = 2;
  EXPECT_THAT(fidelity.sentence(), HasSubstr("makes the same 2 device calls at the same events and ends"));
}

TEST(Difference, NamesAnotherBlockOnlyWhereTheSizesAgree) {
  const auto between = [](const char* a, const char* b) {
    const TraceDifference found = difference(read_one(a), read_one(b));
    EXPECT_FALSE(found.are_equal) << a << b;
    return found.what;
  };
  EXPECT_THAT(between("a 0 8 0\na 1 8 0\nf 0\nf 1\n", "a 0 8 0\na 1 8 0\nf 1\nf 0\n"), EndsWith(" (another block)"));
  EXPECT_THAT(between("a 0 8 0\n", "a 0 9 0\n"), Not(HasSubstr("another block")));
  EXPECT_THAT(between("a 0 8 0\n", "a 0 8 1\n"), Not(HasSubstr("another block")));
  EXPECT_THAT(between("a 0 8 0\nu 0 1\n", "a 0 8 0\nu 0 2\n"), Not(HasSubstr("another block")));
}

TEST(Difference, StreamsThatAreNumberedInAnotherOrderAreTheSame) {
  // In the second file stream 5 comes first, and is its first; ids of blocks are names.
  EXPECT_TRUE(difference(read_one("a 0 8 5\nf 0\n"), read_one("a 7 8 5\nf 7\n")).are_equal);
  EXPECT_FALSE(difference(read_one("a 0 8 5\na 1 8 6\n"), read_one("a 0 8 6\na 1 8 5\n")).are_equal);
}

TEST(ChromeWriter, CountsTheLiveBytesAfterEachEvent) {
  const std::string path = test::scratch_folder() + "live.json";
  write_trace(read_one("a 0 8 0\na 1 5 0\nu 0 1\nf 0\nf 1\n"), path);
  const std::string text = content(path);
  const std::regex value("\"bytes\":([0-9]+)");
  std::vector<std::string> values;
  for (std::sregex_iterator it(text.begin(), text.end(), value), end; it != end; ++it) values.push_back((*it)[1]);
  EXPECT_THAT(values, ElementsAre("8", "13", "5", "0"));
}

TEST(Snapshot, AReasonStandsBehindItsPlace) {
  using std::string_literals::operator""s;
  EXPECT_THAT(refusal_of("\x80\x02K\x05."s),
              EndsWith("a pickle whose root is neither a dict nor a list is not a memory snapshot"));
  EXPECT_THAT(refusal_of("\x80\x02}U\x0d"
                         "device_tracesK\x05s."s),
              EndsWith("device_traces: is not a list"));
  EXPECT_THAT(refusal_of("\x80\x02}U\x0d"
                         "device_traces]K\x05"
                         "as."s),
              EndsWith("device_traces[0]: is not a list"));
  EXPECT_THAT(refusal_of("\x80\x02}U\x08segmentsK\x05s."s), EndsWith("segments: is not a list"));
}

TEST(Baseline, AFileThatIsNotThereIsSaidToBeMissingAndWhatABaselineIs) {
  try {
    read_rows("/nonexistent/rows.json");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/nonexistent/rows.json: cannot be opened; a baseline is what --format json wrote");
  }
}

}  // namespace
}  // namespace tenon::replay
