// Tensor parallelism: a linear layer whose weight is divided over the ranks, each of which computes its part of every
// example. Megatron-LM's pair: the first layer is cut by columns, so that what follows element by element stays on its
// rank, and the second by rows, whose partial sums are added up once.
//
//   auto ranks = distributed::init_process_group("mpi");
//   nn::parallel::ColumnParallelLinear widen(nn::LinearOptions(512, 2048), ranks);   // x is whole on every rank
//   nn::parallel::RowParallelLinear narrow(nn::LinearOptions(2048, 512), ranks);     // and so is the result
//   auto y = narrow->forward(gelu(widen->forward(x)));
//
// Note [What is whole on every rank]: x, the result, and gradients of parameters that are not divided (norms before
// such a layer, the bias behind its sum) are the same on every rank, to the bit where sums are in the order of ranks.
// So nothing else has to be sent for them, and an optimiser on each rank keeps them equal. Source: Shoeybi et al.,
// "Megatron-LM" (2019); names as in torch.distributed.tensor.parallel and Megatron.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/device.h>
#include <tenon/nn/containers/module_holder.h>
#include <tenon/nn/module.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/tensor/generator.h>

#include <cstdint>
#include <memory>

namespace tenon::distributed {

/// The tensor itself; backward sums the gradients of all ranks. Where a tensor that is whole on every rank goes into
/// parts of a computation.
TENON_API Tensor copy_to_ranks(const std::shared_ptr<Communicator>& ranks, const Tensor& tensor);
/// The sum of all ranks' tensors; backward hands each its gradient as it is. Every rank has one of the same sizes.
TENON_API Tensor reduce_from_ranks(const std::shared_ptr<Communicator>& ranks, const Tensor& tensor);
/// All ranks' tensors in their order along the last dim: (…, n) -> (…, n * size()); backward hands each its part.
/// Throws DistributedError after a failure, as the other three do.
TENON_API Tensor gather_from_ranks(const std::shared_ptr<Communicator>& ranks, const Tensor& tensor);
/// This rank's part of the last dim: (…, n) -> (…, n / size()); backward gathers those of all. Throws Error where the
/// ranks do not divide it evenly.
TENON_API Tensor scatter_to_ranks(const std::shared_ptr<Communicator>& ranks, const Tensor& tensor);

/// While it lives the device's random numbers are this rank's own: dropout of what is divided, such as the heads of
/// attention, is independent between ranks, while that of what is whole stays the same on all of them. The stream is
/// that of the seed + 2718 + rank, mixed (Megatron-LM's model-parallel seed), from the position of the common one,
/// which goes on behind what was drawn: a state of the generators is the same on every rank, and holds for any number
/// of them.
class TENON_API RankRandomGuard {
 public:
  /// Null ranks, or one alone: nothing changes.
  RankRandomGuard(const std::shared_ptr<Communicator>& ranks, Device device);
  ~RankRandomGuard();
  RankRandomGuard(const RankRandomGuard&) = delete;
  RankRandomGuard& operator=(const RankRandomGuard&) = delete;

 private:
  Generator generator_;
  Generator::State before_;
  bool is_own_ = false;
};

}  // namespace tenon::distributed

namespace tenon::nn::parallel {

struct ColumnParallelLinearOptions {
  /// The layer's outputs are so many parts behind each other, each of which is divided: 3 for queries, keys and values.
  TENON_ARG(std::int64_t, sections) = 1;
  /// Whether every rank gets the whole output.
  TENON_ARG(bool, gather_output) = false;
};

/// y = x A^T + b with the rows of A (the outputs) divided: (*, in) -> (*, out / size()), or (*, out) gathered.
class TENON_EXPORT ColumnParallelLinearImpl : public Module {
 public:
  /// This rank's part of a layer that is the same on every rank. Throws Error where the ranks do not divide its
  /// outputs, or each of its sections, evenly.
  TENON_API ColumnParallelLinearImpl(const LinearImpl& whole, std::shared_ptr<Communicator> ranks,
                                     const ColumnParallelLinearOptions& options = {});
  /// Part of a layer that every rank draws with the same random numbers.
  TENON_API ColumnParallelLinearImpl(const LinearOptions& whole, std::shared_ptr<Communicator> ranks,
                                     const ColumnParallelLinearOptions& options = {});
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// `input` is whole on every rank: (*, in_features).
  TENON_API Tensor forward(const Tensor& input);

  Tensor weight;  ///< (out / size(), in)
  Tensor bias;    ///< (out / size()); undefined without one

 private:
  std::shared_ptr<Communicator> ranks_;
  ColumnParallelLinearOptions options_;
};
TENON_MODULE(ColumnParallelLinear);

struct RowParallelLinearOptions {
  /// Whether the input is this rank's part already, as a layer cut by columns leaves it; false: it is whole.
  TENON_ARG(bool, input_is_parallel) = true;
};

/// y = x A^T + b with the columns of A (the inputs) divided: (*, in / size()) -> (*, out), the same on every rank.
class TENON_EXPORT RowParallelLinearImpl : public Module {
 public:
  /// As ColumnParallelLinear's. Throws Error where the ranks do not divide its inputs evenly.
  TENON_API RowParallelLinearImpl(const LinearImpl& whole, std::shared_ptr<Communicator> ranks,
                                  const RowParallelLinearOptions& options = {});
  TENON_API RowParallelLinearImpl(const LinearOptions& whole, std::shared_ptr<Communicator> ranks,
                                  const RowParallelLinearOptions& options = {});
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// `input` is this rank's part of the last dim, or whole where the options say so.
  TENON_API Tensor forward(const Tensor& input);

  Tensor weight;  ///< (out, in / size())
  Tensor bias;    ///< (out), whole; undefined without one

 private:
  std::shared_ptr<Communicator> ranks_;
  RowParallelLinearOptions options_;
};
TENON_MODULE(RowParallelLinear);

struct ParallelSelfAttentionOptions {
  ParallelSelfAttentionOptions(std::int64_t embed_dim, std::int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}
  TENON_ARG(std::int64_t, embed_dim);  ///< the size of the input's last dim
  TENON_ARG(std::int64_t, num_heads);  ///< of all ranks together
  TENON_ARG(double, dropout) = 0.0;    ///< of the weights; masks are RankRandomGuard's
  TENON_ARG(bool, is_causal) = true;   ///< whether a position sees those before it alone
};

/// Self-attention whose heads are divided over the ranks: (batch, length, embed_dim), whole on every rank, to the same.
/// Two products are divided, queries, keys and values by columns and the output by rows; one sum is sent a pass.
class TENON_EXPORT ParallelSelfAttentionImpl : public Module {
 public:
  /// Parts of layers that are the same on every rank: qkv (embed_dim -> 3 * embed_dim) and out. Throws Error where the
  /// ranks do not divide the heads evenly.
  TENON_API ParallelSelfAttentionImpl(const LinearImpl& qkv, const LinearImpl& out, std::shared_ptr<Communicator> ranks,
                                      const ParallelSelfAttentionOptions& options);
  /// (batch, length, embed_dim), whole on every rank, to the same.
  TENON_API Tensor forward(const Tensor& input);

 private:
  std::shared_ptr<Communicator> ranks_;
  ParallelSelfAttentionOptions options_;
  std::int64_t heads_;  ///< of this rank
  ColumnParallelLinear qkv_;
  RowParallelLinear out_;
};
TENON_MODULE(ParallelSelfAttention);

}  // namespace tenon::nn::parallel
