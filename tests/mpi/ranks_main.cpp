// main of test programs that mpirun starts. A rank other than 0 says what failed and nothing else.
#include "comm/ranks.h"

#include <tenon/runtime/process_group.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace tenon::test {

std::shared_ptr<Communicator>& ranks() {
  static std::shared_ptr<Communicator> instance;
  return instance;
}

namespace {

constexpr const char* kSpec = "mpi:timeout=60";

class FailuresOfARank final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", ranks()->rank(), result.file_name() ? result.file_name() : "?",
                 result.line_number(), result.message());
  }
};

}  // namespace

OtherRanks::OtherRanks(const std::string& spec) {
  ranks().reset();
  ranks() = distributed::init_process_group(spec);
}
OtherRanks::~OtherRanks() {
  ranks().reset();
  ranks() = distributed::init_process_group(kSpec);
}

}  // namespace tenon::test

int main(int count, char** words) {
  using namespace tenon::test;
  testing::InitGoogleMock(&count, words);
  ranks() = tenon::distributed::init_process_group(kSpec);
  if (ranks()->rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOfARank);
  }
  const int failed = RUN_ALL_TESTS();
  ranks().reset();
  return failed;
}
