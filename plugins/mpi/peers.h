// Peers: the processes of the other ranks, of which those on this machine can be watched.
#pragma once

#include "lifetime.h"

#include <mpi.h>

#include <chrono>
#include <string>
#include <vector>

namespace tenon::mpi {

class Peers {
 public:
  /// Every rank tells every other who it is. Throws DistributedError where that takes longer than `timeout`, where one
  /// has ended, and where they have not the same `options`: at most 95 letters.
  Peers(MPI_Comm comm, const Arrival& arrival, std::chrono::milliseconds timeout, const std::string& options);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  /// Whether that rank's process on this machine has ended; false of one elsewhere, which cannot be seen.
  bool has_ended(int rank) const;
  /// "rank 2 (process 4711 on node3)".
  std::string text(int rank) const;
  /// "rank 0 of 4".
  std::string own_text() const;
  /// Waits until that rank's process has ended, if it is on this machine.
  void wait_for_end(int rank, std::chrono::milliseconds timeout) const;

 private:
  struct Peer {
    int process = 0;
    std::string host;
    int descriptor = -1;  ///< of the process; -1: not here, or this one
  };
  int rank_ = 0;
  std::vector<Peer> peers_;
};

/// Waits for a request of the ranks that meet without blocking in MPI. Throws DistributedError where it is not done in
/// time, or one cannot come.
void complete(MPI_Request& request, const Arrival& arrival, std::chrono::milliseconds timeout);

}  // namespace tenon::mpi
