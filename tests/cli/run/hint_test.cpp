// What a wrong name, file or size is answered with: the nearest right one, or what to do.
#include "cli/program.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Hint : public Program {};

TEST_F(Hint, AMissingFileNamesTheNearestOneOfItsFolder) {
  folder_.write("train.trace", "a 0 512 0\nf 0\n");
  EXPECT_THAT(tenon({"trace", "info", "trian.trace"}).error, HasSubstr("did you mean train.trace?"));
  EXPECT_THAT(tenon({"trace", "info", "train"}).error, HasSubstr("did you mean train.trace?"));
  EXPECT_THAT(tenon({"replay", "no/such.trace"}).error, HasSubstr("there is no folder no"));
  EXPECT_THAT(tenon({"trace", "info", "xyzzy"}).error, Not(HasSubstr("did you mean")));
  EXPECT_THAT(tenon({"run", "exp.tml"}).error, HasSubstr("did you mean exp.toml?"));
}

TEST_F(Hint, AnArchiveIsNamedAsSuchWithWhatToDo) {
  folder_.write("history.zip", std::string("PK\x03\x04\x14\0\0\0", 8) + "history.pickle");
  EXPECT_THAT(tenon({"trace", "info", "history.zip"}).error,
              AllOf(HasSubstr("a zip archive"), HasSubstr("unzip history.zip")));
  folder_.write("model.pt", std::string("PK\x03\x04\0\0\0\0", 8) + "model/data.pkl");
  EXPECT_THAT(tenon({"doctor", "model.pt"}).error, AllOf(HasSubstr("torch.save"), HasSubstr("_dump_snapshot")));
  folder_.write("history.zst", "(\xb5\x2f\xfd....");
  EXPECT_THAT(tenon({"replay", "history.zst"}).error, HasSubstr("unzstd history.zst"));
  folder_.write("report.html", "<!DOCTYPE html>");
  EXPECT_THAT(tenon({"replay", "report.html"}).error, HasSubstr("a page, not a history"));
}

TEST_F(Hint, ASizeWithHalfAUnitIsAnsweredWithTheWholeOne) {
  folder_.write("train.trace", "a 0 512 0\nf 0\n");
  EXPECT_THAT(tenon({"replay", "train.trace", "--capacity", "8G"}).error, HasSubstr("write 8GiB"));
  EXPECT_THAT(tenon({"replay", "train.trace", "--capacity", "8GB"}).error, HasSubstr("write GiB"));
}

TEST_F(Hint, AnOutputWithoutAFormatNamesTheNearestEnding) {
  folder_.write("train.trace", "a 0 512 0\nf 0\n");
  EXPECT_THAT(tenon({"trace", "convert", "train.trace", "out.pikle"}).error, HasSubstr("did you mean out.pickle?"));
  EXPECT_THAT(tenon({"trace", "convert", "train.trace", "out.traec.gz"}).error,
              HasSubstr("did you mean out.trace.gz?"));
}

}  // namespace
}  // namespace tenon::test
