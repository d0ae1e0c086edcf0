// What a fused, observed or quantized layer computes in place of its own forward.
#pragma once

#include <tenon/core/owned.h>
#include <tenon/nn/forward_override.h>
#include <tenon/nn/module.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/quantization/observer.h>

#include <memory>

namespace tenon::nn::quantization {

/// Returns its input: what a batch norm or a ReLU is that became part of the layer before it. Such a module has a
/// buffer "fused", so that an archive says so.
class Fused final : public ForwardOverride {
 public:
  Tensor forward(Module& self, const Tensor& input) override;
  std::shared_ptr<ForwardOverride> for_clone(const Module& self, Module& copy) const override;
};
inline constexpr const char* kFusedName = "fused";
/// Registers that buffer and lets the module return its input.
void make_fused(Module& module);
/// Takes the tensors out of a batch norm; of other modules nothing.
void drop_norm(Module& module);

/// How a layer computes. Its integers and scales are the module's own parameters and buffers.
enum class Scheme {
  kFloat,       ///< as ever, with ReLU where fused
  kObserved,    ///< the same, its input being watched
  kStatic,      ///< integers, at scales from calibration
  kDynamic,     ///< integers, the input at the scale of each call
  kWeightOnly,  ///< floats with weights of integers
};

class Layer final : public ForwardOverride {
 public:
  Tensor forward(Module& self, const Tensor& input) override;
  /// Throws Error for a layer that is observed.
  std::shared_ptr<ForwardOverride> for_clone(const Module& self, Module& copy) const override;

  Scheme scheme = Scheme::kFloat;
  bool relu = false;
  bool has_seen = false;  ///< whether the observer has been given an input
  Owned<Observer> observer;
  ObserverMaker weight_observer;
};

/// The buffer of a layer with ReLU.
inline constexpr const char* kFusedReluName = "fused_relu";
/// The name of the buffer that says that the last byte of a row of 4 bits has one weight: bytes alone do not.
inline constexpr const char* kOddRowName = "odd_row";
/// The layer applies ReLU from now on, and its archive says so by that buffer.
void mark_relu(Module& module, Layer& layer);

/// Adds to the weight of a Linear whose weights are integers (kWeightOnly): it becomes floats, and integers again at
/// new scales.
void add_to_weight(Module& module, const Tensor& delta);

/// A Linear or a ConvNd, whichever: its tensors and how it computes with floats.
class LayerView {
 public:
  /// Null parts for other modules.
  explicit LayerView(Module& module);
  explicit operator bool() const { return weight_ != nullptr; }
  /// Whether it is a Linear.
  bool is_linear() const { return linear_ != nullptr; }
  /// Of a Linear: the features that it reads.
  std::int64_t in_features() const;
  /// Null unless it is one.
  Conv2dImpl* conv2d() const { return conv2d_; }
  /// The module's own handle.
  Tensor& weight() const { return *weight_; }
  /// The module's own handle; undefined for none.
  Tensor& bias() const { return *bias_; }
  /// The module's own formula, in floats.
  Tensor compute(const Tensor& input) const;
  /// Gives the module another weight, of any dtype and sizes.
  void set_weight(const Tensor& weight) const;
  /// Gives the module another bias, or none.
  void set_bias(const Tensor& bias) const;
  /// What stands for its forward; made if there is none.
  Layer& layer() const;
  /// What stands for its forward, or null.
  const Layer* existing_layer() const;

 private:
  Module& module_;
  LinearImpl* linear_ = nullptr;
  Conv1dImpl* conv1d_ = nullptr;
  Conv2dImpl* conv2d_ = nullptr;
  Conv3dImpl* conv3d_ = nullptr;
  Tensor *weight_ = nullptr, *bias_ = nullptr;
};

}  // namespace tenon::nn::quantization
