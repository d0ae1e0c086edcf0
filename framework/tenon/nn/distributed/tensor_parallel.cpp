// Layers in parts, and the four ways of a tensor between whole and divided.
#include <tenon/nn/distributed/tensor_parallel.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/support/recording.h>

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

std::int64_t divided(const char* what, std::int64_t size, const Communicator& ranks) {
  if (size % ranks.size() != 0)
    throw Error(fmt::format("{}: {} ranks do not divide {} evenly", what, ranks.size(), size));
  return size / ranks.size();
}

}  // namespace

namespace distributed {
namespace {

Tensor summed(Communicator& ranks, const Tensor& tensor) {
  const NoGradGuard no_grad;
  Tensor sum = tensor.detach().clone(MemoryFormat::Contiguous);
  all_reduce(ranks, sum)->wait();
  return sum;
}

Tensor gathered(Communicator& ranks, const Tensor& tensor) {
  const NoGradGuard no_grad;
  const Tensor own = tensor.detach().contiguous();
  std::vector<std::int64_t> sizes = own.sizes().vec();
  sizes.insert(sizes.begin(), ranks.size());
  const Tensor all = own.new_empty(sizes);
  all_gather_into_tensor(ranks, all, own)->wait();
  return cat(all.unbind(0), -1);
}

Tensor own_part(const Communicator& ranks, const Tensor& tensor) {
  const std::int64_t size = divided("the last dim", tensor.size(-1), ranks);
  return tensor.detach().narrow(-1, ranks.rank() * size, size).contiguous();
}

}  // namespace

Tensor copy_to_ranks(const std::shared_ptr<Communicator>& ranks, const Tensor& tensor) {
  ops::Recording recording = ops::record<0>("CopyToRanksBackward", {&tensor},
                                            [ranks](ops::Backward& b) { b.set(0, summed(*ranks, b.grad())); });
  if (!recording) return tensor;
  Tensor copy = tensor.detach();
  recording.output(copy);
  return copy;
}

Tensor reduce_from_ranks(const std::shared_ptr<Communicator>& ranks, const Tensor& tensor) {
  ops::Recording recording =
      ops::record<0>("ReduceFromRanksBackward", {&tensor}, [](ops::Backward& b) { b.set(0, b.take_grad()); });
  Tensor sum = summed(*ranks, tensor);
  recording.output(sum);
  return sum;
}

Tensor gather_from_ranks(const std::shared_ptr<Communicator>& ranks, const Tensor& tensor) {
  ops::Recording recording = ops::record<0>("GatherFromRanksBackward", {&tensor},
                                            [ranks](ops::Backward& b) { b.set(0, own_part(*ranks, b.grad())); });
  Tensor all = gathered(*ranks, tensor);
  recording.output(all);
  return all;
}

Tensor scatter_to_ranks(const std::shared_ptr<Communicator>& ranks, const Tensor& tensor) {
  ops::Recording recording = ops::record<0>("ScatterToRanksBackward", {&tensor},
                                            [ranks](ops::Backward& b) { b.set(0, gathered(*ranks, b.grad())); });
  Tensor part = own_part(*ranks, tensor);
  recording.output(part);
  return part;
}

}  // namespace distributed

namespace nn::parallel {
namespace {

/// This rank's part of each of `sections` parts of the first dim.
Tensor rows_of_rank(const Tensor& whole, const Communicator& ranks, std::int64_t sections, const char* what) {
  const NoGradGuard no_grad;
  if (whole.size(0) % sections != 0)
    throw Error(fmt::format("{}: {} outputs are not {} equal sections", what, whole.size(0), sections));
  const std::int64_t section = whole.size(0) / sections;
  const std::int64_t size = divided(what, section, ranks);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < sections; ++i)
    parts.push_back(whole.detach().narrow(0, i * section + ranks.rank() * size, size));
  return cat(parts, 0);
}

void check_ranks(const std::shared_ptr<Communicator>& ranks, const char* what) {
  if (ranks == nullptr) throw Error(std::string(what) + " needs a communicator: distributed::init_process_group()");
}

std::int64_t heads_of_rank(const LinearImpl& qkv, const Communicator& ranks,
                           const ParallelSelfAttentionOptions& options) {
  if (options.embed_dim() % options.num_heads() != 0)
    throw Error(fmt::format("ParallelSelfAttention: embed_dim {} is no multiple of num_heads {}", options.embed_dim(),
                            options.num_heads()));
  if (qkv.options.out_features() != 3 * options.embed_dim())
    throw Error(fmt::format("ParallelSelfAttention: qkv has {} outputs in place of 3 * {}", qkv.options.out_features(),
                            options.embed_dim()));
  return divided("ParallelSelfAttention: heads", options.num_heads(), ranks);
}

}  // namespace

ColumnParallelLinearImpl::ColumnParallelLinearImpl(const LinearImpl& whole, std::shared_ptr<Communicator> ranks,
                                                   const ColumnParallelLinearOptions& options)
    : Module("ColumnParallelLinear"), ranks_(std::move(ranks)), options_(options) {
  check_ranks(ranks_, "ColumnParallelLinear");
  if (options_.gather_output() && options_.sections() != 1)
    throw Error("ColumnParallelLinear: sections are divided one by one, and gathered they would lie in another order");
  const auto part = [&](const Tensor& of) {
    return rows_of_rank(of, *ranks_, options_.sections(), "ColumnParallelLinear");
  };
  weight = register_parameter("weight", part(whole.weight));
  if (whole.bias.defined()) bias = register_parameter("bias", part(whole.bias));
}

ColumnParallelLinearImpl::ColumnParallelLinearImpl(const LinearOptions& whole, std::shared_ptr<Communicator> ranks,
                                                   const ColumnParallelLinearOptions& options)
    : ColumnParallelLinearImpl(LinearImpl(whole), std::move(ranks), options) {}

void ColumnParallelLinearImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::parallel::ColumnParallelLinear(in_features=" << weight.size(1)
         << ", out_features=" << weight.size(0) << " of " << weight.size(0) * ranks_->size() << ")";
}

Tensor ColumnParallelLinearImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const Tensor y = linear(distributed::copy_to_ranks(ranks_, input), weight, bias);
  return options_.gather_output() ? distributed::gather_from_ranks(ranks_, y) : y;
}

RowParallelLinearImpl::RowParallelLinearImpl(const LinearImpl& whole, std::shared_ptr<Communicator> ranks,
                                             const RowParallelLinearOptions& options)
    : Module("RowParallelLinear"), ranks_(std::move(ranks)), options_(options) {
  check_ranks(ranks_, "RowParallelLinear");
  const NoGradGuard no_grad;
  const std::int64_t size = divided("RowParallelLinear", whole.weight.size(1), *ranks_);
  weight = register_parameter(
      "weight", whole.weight.detach().narrow(1, ranks_->rank() * size, size).clone(MemoryFormat::Contiguous));
  if (whole.bias.defined()) bias = register_parameter("bias", whole.bias.detach().clone());
}

RowParallelLinearImpl::RowParallelLinearImpl(const LinearOptions& whole, std::shared_ptr<Communicator> ranks,
                                             const RowParallelLinearOptions& options)
    : RowParallelLinearImpl(LinearImpl(whole), std::move(ranks), options) {}

void RowParallelLinearImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::parallel::RowParallelLinear(in_features=" << weight.size(1) << " of "
         << weight.size(1) * ranks_->size() << ", out_features=" << weight.size(0) << ")";
}

Tensor RowParallelLinearImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const Tensor part = options_.input_is_parallel() ? input : distributed::scatter_to_ranks(ranks_, input);
  const Tensor sum = distributed::reduce_from_ranks(ranks_, linear(part, weight));
  return bias.defined() ? sum + bias : sum;
}

ParallelSelfAttentionImpl::ParallelSelfAttentionImpl(const LinearImpl& qkv, const LinearImpl& out,
                                                     std::shared_ptr<Communicator> ranks,
                                                     const ParallelSelfAttentionOptions& options)
    : Module("ParallelSelfAttention"), options_(options), heads_(0), qkv_(nullptr), out_(nullptr) {
  check_ranks(ranks, "ParallelSelfAttention");
  heads_ = heads_of_rank(qkv, *ranks, options);
  qkv_ = register_module("qkv", ColumnParallelLinear(qkv, ranks, ColumnParallelLinearOptions().sections(3)));
  out_ = register_module("out", RowParallelLinear(out, ranks));
}

Tensor ParallelSelfAttentionImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  const std::int64_t batch = input.size(0), length = input.size(1), depth = options_.embed_dim() / options_.num_heads();
  const auto parts = qkv_(input).view({batch, length, 3, heads_, depth}).permute({2, 0, 3, 1, 4}).unbind(0);
  const Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt,
                                                is_training() ? options_.dropout() : 0.0, options_.is_causal());
  return out_(y.transpose(1, 2).reshape({batch, length, heads_ * depth}));
}

}  // namespace nn::parallel
}  // namespace tenon
