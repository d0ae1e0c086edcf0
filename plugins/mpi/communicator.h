// The communicator over MPI.
#pragma once

#include "worker.h"

#include <tenon/comm/communicator.h>

#include <memory>

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
  void abort(std::string_view reason, ExitCode code) noexcept override;

 protected:
  std::shared_ptr<Work> start(const CommRequest& request) override;

 private:
  std::unique_ptr<Worker> worker_;
};

}  // namespace tenon::mpi
