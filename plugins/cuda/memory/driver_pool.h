// A pool of CUDA's stream-ordered allocator: cudaMallocAsync and cudaFreeAsync, from a pool of one's own, so that its
// settings are nobody else's.
//
// Note [Several streams]: the driver orders a free behind one stream. A block that several streams used is freed on a
// stream of this pool, which waits for all of them.
//
// Note [Frees during a capture]: a free on a captured stream would belong to the graph, and run with each launch. Such
// a block is kept until its streams have got there after the capture, and then freed by the next call.
#pragma once

#include "context.h"
#include "timeline.h"

#include <tenon/memory/driver_pool.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace tenon::cuda {

class CudaMemorySource;

class CudaDriverPool final : public DriverPool {
 public:
  /// Null where the device has no such pools. `source` outlives it.
  static std::unique_ptr<CudaDriverPool> make(CudaMemorySource& source, const DriverPoolOptions& options);
  ~CudaDriverPool() override;

  void* acquire(std::size_t bytes, StreamRef stream) override;
  void release(void* address, std::size_t bytes, std::span<const StreamRef> streams) noexcept override;
  std::size_t reserved_bytes() const noexcept override;
  void trim(std::size_t keep_bytes) noexcept override;

  /// `device` too may read and write what comes from here, and what has.
  void share_with(int device);

 private:
  CudaDriverPool(CudaMemorySource& source, const DriverPoolOptions& options);

  /// A block whose streams were captured when it was given back.
  struct Kept {
    void* address;  ///< null: freed
    std::vector<Ticket> until;
  };

  cudaStream_t joining_stream();
  void free_behind(void* address, std::span<const StreamRef> streams);
  void free_what_was_kept();

  CudaMemorySource& source_;
  cudaMemPool_t pool_ = nullptr;
  mutable std::atomic<std::size_t> reserved_bytes_{0};  ///< as the driver said last
  std::mutex mutex_;                                    // guards what follows
  cudaStream_t joining_ = nullptr;
  std::vector<Kept> kept_;
  std::atomic<bool> keeps_{false};  ///< whether kept_ has any
};

}  // namespace tenon::cuda
