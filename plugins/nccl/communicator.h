// The communicator over NCCL: one device of each rank, one stream of its own beside the program's.
#pragma once

#include "current_device.h"
#include "nccl_api.h"
#include "operation.h"

#include <tenon/comm/communicator.h>
#include <tenon/device/closing.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tenon::nccl {

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(const CommunicatorContext& context);
  ~NcclCommunicator() override;

  static OptionSchema options();

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_->group.ranks.size()); }
  std::string device_kind() const override { return "cuda"; }
  void monitored_barrier(std::chrono::milliseconds timeout) override;
  bool has_ended(int rank) const override {
    return shared_->meeting.has_ended(shared_->group.ranks[static_cast<std::size_t>(rank)]);
  }
  void abort(std::string_view reason, ExitCode code) noexcept override;

 protected:
  std::shared_ptr<Work> start(const CommRequest& request) override;
  std::shared_ptr<Communicator> make_group(const std::vector<int>& members) override;

 private:
  /// In the stream's order: after what the program has queued, and followed by the mark of the operation's end.
  using Queued = std::pair<std::shared_ptr<Operation>, std::function<Result(CudaStream)>>;

  /// Of some of another one's ranks, which meet with NCCL's id.
  NcclCommunicator(const NcclCommunicator& whole, Meeting::Group group, const UniqueId& id);
  void meet(const UniqueId& id);
  std::shared_ptr<Operation> made(CommRequest request, std::int64_t number);
  void check_memory(const CommRequest& request) const;
  void open_device();
  void close_device() noexcept;
  void connect(const UniqueId& id);
  DistributedError closed() const;
  void queue(const std::vector<Queued>& operations);
  std::function<Result(CudaStream)> call_of(const CommRequest& request) const;
  void flush();
  void settle(Result result, const std::string& what);
  void check(Result result, const std::string& what) const;
  void look();
  void end_nccl() noexcept;

  std::shared_ptr<Shared> shared_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<DeviceContext> context_;
  int rank_ = 0;
  int ordinal_ = 0;  ///< of the device
  std::int64_t groups_made_ = 0;
  DeviceState* device_ = nullptr;
  std::unique_ptr<ClosingHandle> closing_;
  StreamRef stream_{}, host_stream_{};   ///< of collectives; of copies from and to the host, which wait for none
  std::atomic<std::int64_t> number_{0};  ///< collectives that this rank came to
  std::vector<std::shared_ptr<Operation>> to_group_;  ///< sends and receives that begin together

  std::mutex mutex_;
  Comm comm_ = nullptr;  // from here on under mutex_; null: given up
  std::vector<std::weak_ptr<Operation>> under_way_;
};

}  // namespace tenon::nccl
