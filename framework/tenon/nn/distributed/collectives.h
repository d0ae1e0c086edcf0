// Operations between ranks on tensors: torch.distributed's functions, with the communicator as first argument.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <memory>
#include <vector>

namespace tenon::distributed {

/// Begins the operation in place and returns at once; the tensor has its values once wait() of what is returned has
/// come back, and until then it is neither read nor written (class Work). A tensor that is not contiguous,
/// or on a device whose memory the communicator does not take, goes through a copy that it does. No history is
/// recorded. Every rank calls it with a tensor of the same size and dtype. Throws DistributedError after a failure.
[[nodiscard]] TENON_API std::shared_ptr<Work> all_reduce(Communicator& ranks, const Tensor& tensor,
                                                         ReduceOp op = ReduceOp::kSum, const CommOptions& options = {});
/// The same: every rank's tensor becomes that of `root`. Throws Error for a root that is none of the ranks.
[[nodiscard]] TENON_API std::shared_ptr<Work> broadcast(Communicator& ranks, const Tensor& tensor, int root,
                                                        const CommOptions& options = {});
/// Fills `output` with the inputs of all ranks in their order. Throws Error unless it has size() times as many
/// elements.
[[nodiscard]] TENON_API std::shared_ptr<Work> all_gather_into_tensor(Communicator& ranks, const Tensor& output,
                                                                     const Tensor& input,
                                                                     const CommOptions& options = {});
/// Fills `output` with this rank's part of the reduction of all inputs. Throws Error unless `input` has size() times as
/// many elements.
[[nodiscard]] TENON_API std::shared_ptr<Work> reduce_scatter_tensor(Communicator& ranks, const Tensor& output,
                                                                    const Tensor& input, ReduceOp op = ReduceOp::kSum,
                                                                    const CommOptions& options = {});

/// Every tensor becomes that of `root`, several at a time in messages of up to `bucket_bytes`; done when it returns.
TENON_API void broadcast_coalesced(Communicator& ranks, const std::vector<Tensor>& tensors, int root,
                                   std::size_t bucket_bytes = std::size_t{25} << 20);
/// Every tensor becomes the sum of all ranks', the same way.
TENON_API void all_reduce_coalesced(Communicator& ranks, const std::vector<Tensor>& tensors,
                                    std::size_t bucket_bytes = std::size_t{25} << 20);

}  // namespace tenon::distributed
