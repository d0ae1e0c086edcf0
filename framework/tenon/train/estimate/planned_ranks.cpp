// A communicator without anybody else.
#include <tenon/train/estimate/planned_ranks.h>

#include <tenon/train/estimate/address_run.h>

#include <algorithm>
#include <string>

namespace tenon::train {
namespace {

class DoneAlready final : public Work {
 public:
  bool is_completed() override { return true; }
  void wait(std::chrono::milliseconds) override {}
};

class PlannedRanks final : public Communicator {
 public:
  explicit PlannedRanks(const PlannedRank& which) : which_(which) {}
  int rank() const override { return which_.rank; }
  int size() const override { return which_.size; }
  /// It takes the stand-in's memory as it lies: no buffer is copied to the host first.
  std::string device_kind() const override { return std::string(kAddressKind); }
  void monitored_barrier(std::chrono::milliseconds) override {}
  void abort(std::string_view, ExitCode) noexcept override {}

 protected:
  std::shared_ptr<Work> start(const CommRequest&) override { return std::make_shared<DoneAlready>(); }
  std::shared_ptr<Communicator> make_group(const std::vector<int>& members) override {
    const auto own = std::ranges::find(members, which_.rank);
    if (own == members.end()) return nullptr;
    return std::make_shared<PlannedRanks>(
        PlannedRank{.rank = static_cast<int>(own - members.begin()), .size = static_cast<int>(members.size())});
  }

 private:
  const PlannedRank which_;
};

}  // namespace

std::shared_ptr<Communicator> planned_ranks(const PlannedRank& which) {
  return which.size > 1 ? std::make_shared<PlannedRanks>(which) : nullptr;
}

}  // namespace tenon::train
