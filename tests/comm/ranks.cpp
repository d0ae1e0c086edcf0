// The ranks of a test program: how they are made, and what of a rank is said when a case fails.
#include "comm/ranks.h"

#include <tenon/runtime/process_group.h>

#include <gtest/gtest.h>

#include <cstdio>

namespace tenon::test {

std::shared_ptr<Communicator>& ranks() {
  static std::shared_ptr<Communicator> instance;
  return instance;
}

namespace {

std::string& first_spec() {
  static std::string spec;
  return spec;
}

class FailuresOfARank final : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOfARank(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name() ? result.file_name() : "?",
                 result.line_number(), result.message());
  }
  int rank_;
};

}  // namespace

OtherRanks::OtherRanks(const std::string& spec) {
  ranks().reset();
  ranks() = distributed::init_process_group(spec);
}
OtherRanks::~OtherRanks() {
  ranks().reset();
  ranks() = distributed::init_process_group(first_spec());
}

int run_as_rank(const std::string& spec) {
  first_spec() = spec;
  ranks() = distributed::init_process_group(spec);
  if (const int rank = ranks()->rank(); rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOfARank(rank));
  }
  const int failed = RUN_ALL_TESTS();
  ranks().reset();
  return failed;
}

}  // namespace tenon::test
