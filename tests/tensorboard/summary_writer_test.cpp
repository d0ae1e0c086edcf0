// SummaryWriter: what each call writes, and where. The fields are those of summary.proto.
#include "support/message_of.h"
#include "support/scratch_folder.h"
#include "tensorboard/file_limit.h"
#include "tensorboard/read_events.h"

#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

class Writer : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }
  std::string folder_ = scratch_folder() + "runs";
};

TEST_F(Writer, AScalarHasItsTagStepAndTime) {
  SummaryWriter writer(folder_);
  writer.add_scalar("Memory/Allocated", 1e9, 3, 99.5);
  writer.add_scalar("loss", tensor({0.25F}), 4);
  writer.add_scalar("no step", 1);
  writer.close();
  const std::vector<ReadValue> values = values_in(folder_);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].tag, "Memory/Allocated");
  EXPECT_EQ(values[0].scalar(), 1e9F);
  EXPECT_EQ(values[0].step, 3);
  EXPECT_EQ(values[0].wall_time, 99.5);
  EXPECT_EQ(values[1].scalar(), 0.25F);
  EXPECT_EQ(values[2].step, 0);
}

TEST_F(Writer, ATensorOfSeveralElementsIsNoScalar) {
  SummaryWriter writer(folder_);
  try {
    writer.add_scalar("loss", zeros({2, 3}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("has 1 element, got a tensor of shape [2, 3] for 'loss'"));
  }
}

TEST_F(Writer, ScalarsOfOnePictureAreRunsOfTheirOwn) {
  SummaryWriter writer(folder_);
  writer.add_scalars("memory/peak", {{"caching", 3}, {"expandable", 2}}, 1);
  writer.close();
  EXPECT_EQ(values_in(folder_ + "/memory_peak_caching").at(0).tag, "memory/peak");
  EXPECT_EQ(values_in(folder_ + "/memory_peak_expandable").at(0).scalar(), 2);
}

TEST_F(Writer, ScalarsOfOneEventShareItsStepAndTime) {
  SummaryWriter writer(folder_);
  writer.add_scalar_event({{"a", 1}, {"b", 2}}, 5);
  writer.close();
  const std::vector<ReadValue> values = values_in(folder_);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[1].tag, "b");
  EXPECT_EQ(values[0].wall_time, values[1].wall_time);
}

TEST_F(Writer, AHistogramCountsValuesAndKeepsAnEmptyBinInFront) {
  SummaryWriter writer(folder_);
  writer.add_histogram("weights", tensor({0.0F, 0.5F, 1.0F, 3.0F}), 2, std::vector<double>{-2, -1, 0, 1, 2, 3, 4});
  writer.close();
  const std::string histogram = inside(values_in(folder_).at(0).message, 5);
  EXPECT_EQ(double_in(histogram, 1), 0);
  EXPECT_EQ(double_in(histogram, 2), 3);
  EXPECT_EQ(double_in(histogram, 3), 4);
  EXPECT_EQ(double_in(histogram, 4), 4.5);
  EXPECT_EQ(double_in(histogram, 5), 10.25);
  EXPECT_THAT(doubles_in(histogram, 6), testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(doubles_in(histogram, 7), testing::ElementsAre(0, 2, 1, 0, 1));
}

TEST_F(Writer, AHistogramThatIsCountedIsWrittenAsItIs) {
  SummaryWriter writer(folder_);
  writer.add_histogram_raw("latency", 1, 9, 3, 15, 91, {2, 10}, {1, 2}, 7);
  EXPECT_THROW(writer.add_histogram_raw("latency", 1, 9, 3, 15, 91, {2, 10}, {1}), Error);
  writer.close();
  EXPECT_THAT(doubles_in(inside(values_in(folder_).at(0).message, 5), 7), testing::ElementsAre(1, 2));
}

TEST_F(Writer, ATextIsAStringOfThePluginText) {
  SummaryWriter writer(folder_);
  writer.add_text("notes", "**caching** wins", 1);
  writer.close();
  const ReadValue value = values_in(folder_).at(0);
  EXPECT_EQ(value.tag, "notes/text_summary");
  EXPECT_EQ(inside(inside(inside(value.message, 9), 1), 1), "text");
  EXPECT_EQ(inside(inside(value.message, 8), 8), "**caching** wins");
}

TEST_F(Writer, ATextIsATensorOfOneString) {
  SummaryWriter writer(folder_);
  writer.add_text("notes", "short", 1);
  writer.close();
  const std::string tensor = inside(values_in(folder_).at(0).message, 8);
  EXPECT_EQ(number_in(tensor, 1), 7u) << "DT_STRING";
  EXPECT_EQ(number_in(inside(inside(tensor, 2), 2), 1), 1u) << "elements";
}

TEST_F(Writer, AnExperimentHasTheNamesAndTypesOfItsHyperparameters) {
  SummaryWriter writer(folder_);
  writer.add_hparams({{"lr", 0.1}, {"nesterov", true}, {"allocator", "caching"}}, {}, "trial");
  writer.close();
  const std::string content = inside(inside(inside(values_in(folder_ + "/trial").at(0).message, 9), 1), 2);
  EXPECT_EQ(number_in(content, 1), 0u) << "the version of what follows";
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const Field& field : fields(content)) {
    if (field.number != 2) continue;
    for (const Field& info : fields(field.bytes)) found.emplace_back(inside(info.bytes, 1), number_in(info.bytes, 4));
  }
  using testing::Pair;
  EXPECT_THAT(found, testing::UnorderedElementsAre(Pair("lr", 3), Pair("nesterov", 2), Pair("allocator", 1)));
}

TEST_F(Writer, AFlushWritesWhatWaits) {
  SummaryWriter writer(folder_);
  writer.add_scalar("a", 1, 1);
  writer.flush();
  EXPECT_EQ(values_in(folder_).size(), 1u);
}

TEST_F(Writer, HyperparametersAndMetricsAreARunOfTheTable) {
  SummaryWriter writer(folder_);
  writer.add_hparams({{"lr", 0.1}, {"batch_size", 32}, {"nesterov", true}, {"allocator", "caching"}},
                     {{"hparam/loss", 0.5}}, "trial");
  writer.close();
  const std::vector<ReadValue> values = values_in(folder_ + "/trial");
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[0].tag, "_hparams_/experiment");
  EXPECT_EQ(values[1].tag, "_hparams_/session_start_info");
  EXPECT_EQ(values[2].tag, "hparam/loss");
  EXPECT_EQ(values[3].tag, "_hparams_/session_end_info");
  const std::string start = inside(inside(inside(inside(values[1].message, 9), 1), 2), 3);
  const std::vector<Field> entries = fields(start);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(inside(entries[0].bytes, 1), "lr");
  EXPECT_EQ(double_in(inside(entries[0].bytes, 2), 2), 0.1);
  EXPECT_EQ(double_in(inside(entries[1].bytes, 2), 2), 32);
  EXPECT_EQ(number_in(inside(entries[2].bytes, 2), 4), 1u);
  EXPECT_EQ(inside(inside(entries[3].bytes, 2), 3), "caching");
  const std::string end = inside(inside(inside(inside(values[3].message, 9), 1), 2), 4);
  EXPECT_EQ(number_in(end, 1), 1u) << "success";
}

TEST_F(Writer, NoHyperparametersAreARunOfTheTableToo) {
  SummaryWriter writer(folder_);
  writer.add_hparams({}, {}, "none");
  writer.close();
  const std::vector<ReadValue> values = values_in(folder_ + "/none");
  ASSERT_EQ(values.size(), 3u);
  const auto kinds = [&](std::size_t i) {
    std::vector<std::uint64_t> numbers;
    for (const Field& field : fields(inside(inside(inside(values[i].message, 9), 1), 2)))
      numbers.push_back(field.number);
    return numbers;
  };
  EXPECT_THAT(kinds(0), testing::ElementsAre(1, 2)) << "an experiment, which is empty";
  EXPECT_THAT(kinds(1), testing::ElementsAre(1, 3)) << "the start of a session";
}

TEST_F(Writer, WhatIsNoUtf8IsReplaced) {
  SummaryWriter writer(folder_);
  writer.add_scalar(
      "a\xff"
      "b",
      1);
  writer.add_scalar("Größe", 1);
  writer.add_text("text", "cut \xe2\x82");
  writer.close();
  const std::vector<ReadValue> values = values_in(folder_);
  EXPECT_EQ(values.at(0).tag,
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(values.at(1).tag, "Größe");
  EXPECT_EQ(inside(inside(values.at(2).message, 8), 8), "cut \xef\xbf\xbd");
}

TEST_F(Writer, TheQueueIsWrittenWhenItIsFull) {
  SummaryWriter writer(folder_, {.max_queue = 3});
  writer.add_scalar("a", 1, 1);
  writer.add_scalar("a", 2, 2);
  EXPECT_EQ(values_in(folder_).size(), 0u);
  writer.add_scalar("a", 3, 3);
  EXPECT_EQ(values_in(folder_).size(), 3u);
}

TEST_F(Writer, AnEventThatComesLateHasTheOthersWritten) {
  SummaryWriter writer(folder_, {.max_queue = 1000, .flush_secs = 0});
  writer.add_scalar("a", 1, 1);
  EXPECT_EQ(values_in(folder_).size(), 1u);
}

TEST_F(Writer, ACloseThatCannotWriteSaysSo) {
  SummaryWriter writer(folder_);
  writer.add_scalar("a", 1, 1);
  const auto path = fs::directory_iterator(folder_)->path();
  const auto size = fs::file_size(path);
  {
    const FileLimit limit(size);
    EXPECT_EQ(message_of([&] { writer.close(); }), "cannot write " + path.string() + ": File too large");
  }
  EXPECT_EQ(fs::file_size(path), size);
}

TEST_F(Writer, WhatIsAddedAfterCloseGoesToANewFile) {
  SummaryWriter writer(folder_);
  writer.add_scalar("a", 1, 1);
  writer.close();
  writer.add_scalar("a", 2, 2);
  writer.close();
  EXPECT_EQ(values_in(folder_).size(), 2u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
}

TEST_F(Writer, AFolderThatIsNotGivenIsNamedByTimeHostAndComment) {
  fs::create_directories(folder_);
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  std::string name;
  {
    const SummaryWriter writer("", {.comment = "-lenet"});
    name = writer.log_dir();
    EXPECT_TRUE(fs::is_directory(name));
  }
  fs::current_path(before);
  EXPECT_THAT(name, testing::MatchesRegex("runs/[A-Z][a-z]*[0-9]*_[0-9-]*_.*-lenet"));
}

TEST_F(Writer, StepsFromAPurgedOneOnAreVoid) {
  const SummaryWriter writer(folder_, {.purge_step = 12});
  const fs::path file = fs::directory_iterator(folder_)->path();
  const std::string restart = records(content_of(file.string())).at(1);
  EXPECT_EQ(number_in(restart, 2), 12u);
}

TEST_F(Writer, ThreadsMayShareOne) {
  SummaryWriter writer(folder_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&writer, t] {
      for (int step = 0; step < 500; ++step) writer.add_scalar("thread/" + std::to_string(t), step, step);
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.close();
  EXPECT_EQ(values_in(folder_).size(), 2000u);
}

TEST_F(Writer, AFolderThatCannotBeMadeIsSaid) { EXPECT_THROW(SummaryWriter("/proc/no/such"), Error); }

}  // namespace
}  // namespace tenon::test
