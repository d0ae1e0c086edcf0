// A communicator without other ranks, for tests of what every communicator checks and says.
#pragma once

#include <tenon/comm/communicator.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

namespace tenon::test {

class DoneWork final : public Work {
 public:
  bool is_completed() override { return true; }
  void wait(std::chrono::milliseconds) override {}
};

/// Rank 1 of `size`, which keeps the requests that it gets. They are done at once.
class RecordingCommunicator final : public Communicator {
 public:
  explicit RecordingCommunicator(int size = 4) : size_(size) {}
  int rank() const override { return 1; }
  int size() const override { return size_; }
  void monitored_barrier(std::chrono::milliseconds) override {}
  void abort(std::string_view, ExitCode) noexcept override {}
  std::vector<CommRequest> requests;

 protected:
  std::shared_ptr<Work> start(const CommRequest& request) override {
    requests.push_back(request);
    return std::make_shared<DoneWork>();
  }

 private:
  const int size_;
};

}  // namespace tenon::test
