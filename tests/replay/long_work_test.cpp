// Long work tells how far it is: reading, replaying and writing, each by its name and with a share that only grows.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/trace/long_work.h>

#include <gmock/gmock.h>

#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;

/// What is told while it lives, one work after the other.
class Listener {
 public:
  Listener() {
    listen_to_work([this](std::string_view what, double share) {
      if (works.empty() || works.back() != what) {
        works.emplace_back(what);
        first_shares.push_back(share);
        last_share_ = 0;
      }
      EXPECT_GE(share, last_share_) << what;
      EXPECT_LE(share, 1) << what;
      last_share_ = share;
      ++times;
    });
  }
  ~Listener() { listen_to_work({}); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  double last_share() const { return last_share_; }

  std::vector<std::string> works;
  std::vector<double> first_shares;
  int times = 0;

 private:
  double last_share_ = 0;
};

std::string path_of(const std::string& name) { return (std::filesystem::path(test::scratch_folder()) / name).string(); }

Trace long_history() {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "a " + std::to_string(i) + " 512 0\nf " + std::to_string(i) + "\n";
  return read_one(text);
}

TEST(LongWork, OfASnapshotIsOneWorkFromItsBytesToItsHistory) {
  const std::string path = path_of("long_work.pickle");
  write_snapshot(image_of_replay(long_history(), plain_policy(), std::nullopt), path);
  const Listener listener;
  EXPECT_EQ(read_traces(path).front().facts.allocations, 20000u);
  EXPECT_THAT(listener.works, ElementsAre("reading " + path));
  EXPECT_LT(listener.first_shares.front(), 0.9) << "the bytes are not all of it";
  EXPECT_GT(listener.last_share(), 0.97);
}

TEST(LongWork, OfWritingNamesTheFile) {
  const Trace trace = long_history();
  for (const char* name : {"long_work.trace.gz", "long_work.tenon", "long_work.csv", "long_work.json"}) {
    const std::string path = path_of(name);
    const Listener listener;
    format_of_name(path).write(trace, path, {});
    EXPECT_THAT(listener.works, ElementsAre("writing " + path));
    EXPECT_GT(listener.last_share(), 0.98) << name;
  }
  const SnapshotImage image = image_of_replay(trace, plain_policy(), std::nullopt);
  const Listener listener;
  write_snapshot(image, path_of("again.pickle"));
  EXPECT_THAT(listener.works, ElementsAre("writing " + path_of("again.pickle")));
}

TEST(LongWork, IsToldSomeHundredTimesAtMost) {
  const Listener listener;
  WorkMeter meter("counting", 1000000);
  for (int i = 0; i < 1000000; ++i) meter.step();
  EXPECT_EQ(listener.times, 200);
}

TEST(LongWork, OfAPartIsAShareOfTheWhole) {
  Listener listener;
  const WorkPart whole("reading x", 0.5, 1);
  const WorkPart part("decoding", 0, 0.5);
  tell_work("step", 0.5);
  EXPECT_THAT(listener.works, ElementsAre("reading x"));
  EXPECT_DOUBLE_EQ(listener.last_share(), 0.5 + 0.5 * 0.25);
}

}  // namespace
}  // namespace tenon::replay
