// train.tensor_parallel: the layers of each block divided over the ranks, Megatron-LM's way (nn/distributed/
// tensor_parallel.h): attention by heads, perceptrons by the units of their hidden layer. Every rank computes its part
// of every example; what goes from block to block is whole on each.
//
//   x, whole --into_parts--> queries, keys, values of own heads --attention--> out: partial --sum_of_parts--> whole
//
// Every rank draws whole layers with the same random numbers and keeps its part, so that N ranks begin with what one
// process begins with.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/nn/distributed/tensor_parallel.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::train {

/// A parameter of which a rank has its part of one dim: of the first one in each of so many sections behind each other.
struct TensorPart {
  Tensor parameter;
  std::int64_t dim = 0;
  std::int64_t sections = 1;
};

/// The ranks that divide layers among them, and what is divided.
class TensorParallel {
 public:
  explicit TensorParallel(std::shared_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {}

  std::int64_t size() const { return ranks_->size(); }
  const std::shared_ptr<Communicator>& ranks() const { return ranks_; }
  /// Parameters of which this rank has a part; the others are whole on every rank.
  const std::vector<TensorPart>& parts() const { return parts_; }
  void note_part(TensorPart part) { parts_.push_back(std::move(part)); }
  bool is_part(const Tensor& parameter) const;

 private:
  std::shared_ptr<Communicator> ranks_;
  std::vector<TensorPart> parts_;
};

/// Null: nothing is divided, and the functions below are the layers' own.
using SharedTensorParallel = std::shared_ptr<TensorParallel>;

/// How many ranks share the layers; 1 without.
std::int64_t layer_parts(const SharedTensorParallel& ranks);
/// `count`, of which each rank has its part. Throws Error, which names the setting, where it does not divide.
std::int64_t own_part(const SharedTensorParallel& ranks, std::int64_t count, const char* setting);

/// The layer keeps this rank's outputs, of each of `sections` parts of them.
void divide_columns(const SharedTensorParallel& ranks, nn::Linear& layer, std::int64_t sections = 1);
/// The layer keeps this rank's inputs. Its bias stays whole: it is added behind the sum.
void divide_rows(const SharedTensorParallel& ranks, nn::Linear& layer);
/// What layers divided by columns read: backward sums the gradients of all ranks.
Tensor into_parts(const SharedTensorParallel& ranks, const Tensor& whole);
/// What a layer divided by rows gives: the sum of all ranks' products, and the bias.
Tensor sum_of_parts(const SharedTensorParallel& ranks, nn::Linear& layer, const Tensor& part);
/// So, of a product that was made without the layer.
Tensor sum_of_parts(const SharedTensorParallel& ranks, const Tensor& product, const Tensor& bias);

/// While it lives dropout of what this rank has a part of is its own; the same as ever where nothing is divided.
distributed::RankRandomGuard random_of_parts(const SharedTensorParallel& ranks, Device device);

/// Scales the gradients down to that norm, which is of the whole model.
void clip_divided_grad_norm(const TensorParallel& ranks, const std::vector<Tensor>& parameters, double max_norm);

/// Throws ConfigError, with the reason, for settings that make no sense with divided layers.
void check_tensor_parallel(const ExperimentConfig& config);
/// Throws ConfigError where so many ranks are no multiple of train.tensor_parallel.
void check_tensor_ranks(const ExperimentConfig& config, int ranks);
/// As train.tensor_parallel says, neighbours among these ranks (null: one process); null where it says 1. Throws
/// ConfigError where the ranks are no multiple of it.
SharedTensorParallel tensor_parallel_of(const ExperimentConfig& config, const std::shared_ptr<Communicator>& ranks);

}  // namespace tenon::train
