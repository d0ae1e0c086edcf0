// Ranks that are not there: operations are done at once and change nothing. For what a model is made of, not for
// values.
#pragma once

#include <tenon/comm/communicator.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

class SilentRanks final : public Communicator {
 public:
  explicit SilentRanks(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  std::string device_kind() const override { return "cpu"; }
  void monitored_barrier(std::chrono::milliseconds) override {}
  void abort(std::string_view, ExitCode) noexcept override {}

 protected:
  class Done final : public Work {
   public:
    bool is_completed() override { return true; }
    void wait(std::chrono::milliseconds) override {}
  };
  std::shared_ptr<Work> start(const CommRequest&) override { return std::make_shared<Done>(); }
  std::shared_ptr<Communicator> make_group(const std::vector<int>& members) override {
    return std::make_shared<SilentRanks>(static_cast<int>(members.size()));
  }

 private:
  const int size_;
};

/// The first of so many.
inline std::shared_ptr<Communicator> silent_ranks(int size) { return std::make_shared<SilentRanks>(size); }

}  // namespace tenon::test
