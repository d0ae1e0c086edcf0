// The communicator over MPI.
#pragma once

#include "worker.h"

#include <tenon/comm/communicator.h>

#include <memory>
#include <utility>
#include <vector>

namespace tenon::mpi {

/// What MPI counts in one call.
inline constexpr std::size_t kMostElements = 2'147'483'647;

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(const CommunicatorContext& context);
  ~MpiCommunicator() override;

  static OptionSchema options();

  int rank() const override;
  int size() const override;
  void monitored_barrier(std::chrono::milliseconds timeout) override;
  bool has_ended(int rank) const override;
  void abort(std::string_view reason, ExitCode code) noexcept override;

 protected:
  std::shared_ptr<Work> start(const CommRequest& request) override;
  std::shared_ptr<Communicator> make_group(const std::vector<int>& members) override;

 private:
  MpiCommunicator(std::shared_ptr<Worker> worker, Group& group) : worker_(std::move(worker)), group_(&group) {}

  std::shared_ptr<Worker> worker_;  ///< of this one and those that it is divided into
  Group* group_ = nullptr;
};

}  // namespace tenon::mpi
