// nll_loss and its backward: contiguous (N, C) or (N, C, S), targets (N) or (N, S).
#include <tenon/kernel/attributes/normalization.h>

#include "kernels/driver_of.h"
#include "kernels/errors.cuh"
#include "kernels/reduce/reduce.cuh"

namespace tenon::cuda {
namespace {

struct Shape {
  i64 batch, classes, inner = 1;
  explicit Shape(const TensorView& logits) {
    const bool one = logits.rank == 1;
    batch = one ? 1 : logits.sizes[0];
    classes = logits.sizes[one ? 0 : 1];
    for (int d = 2; d < logits.rank; ++d) inner *= logits.sizes[d];
  }
  i64 count() const { return batch * inner; }
  /// Where class c of sample i lies.
  __device__ i64 at(i64 i, i64 c) const { return (i / inner * classes + c) * inner + i % inner; }
};

struct Targets {
  const i64* data;
  i64 ignored, classes;
  ErrorReport report;
  /// The class of sample i, -1 where it is ignored or wrong.
  __device__ i64 operator[](i64 i) const {
    const i64 c = data[i];
    if (c == ignored) return -1;
    if (c >= 0 && c < classes) return c;
    report.raise(c);
    return -1;
  }
};

struct LossAndWeight {
  double loss, weight;
};

/// The loss and the weight of a sample; `each` gets the loss where it is wanted.
template <class T>
struct SampleLoss {
  Shape s;
  const T *logp, *weight;
  Targets targets;
  T* each;
  __device__ LossAndWeight operator()(i64 offset) const {
    const i64 i = offset / static_cast<i64>(sizeof(i64)), c = targets[i];
    LossAndWeight result{0, 0};
    if (c >= 0) {
      result.weight = weight ? load_as<T, double>(weight[c]) : 1.0;
      result.loss = -result.weight * load_as<T, double>(logp[s.at(i, c)]);
    }
    if (each) each[i] = store_as<T>(result.loss);
    return result;
  }
};

template <class T>
struct LossFold {
  using Acc = LossAndWeight;
  LossReduction reduction;
  T *loss, *total_weight;
  __device__ Acc start() const { return {0, 0}; }
  __device__ void step(Acc& acc, const Acc& value, i64) const { acc = combine(acc, value); }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return {a.loss + b.loss, a.weight + b.weight}; }
  __device__ void finish(const Acc& acc, Output) const {
    *total_weight = store_as<T>(acc.weight);
    if (reduction == LossReduction::kMean) *loss = store_as<T>(acc.loss / acc.weight);
    if (reduction == LossReduction::kSum) *loss = store_as<T>(acc.loss);
  }
};

constexpr const char* kMessage = "Target %lld is out of bounds.";

void nll_loss(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kIndexError, "nll_loss", kMessage};
  const auto& a = *static_cast<const NllLossAttributes*>(attributes);
  const TensorView &logp = inputs[0], &target = inputs[1], &weight = inputs[2];
  const Shape s(logp);
  constexpr i64 kOne = 1;
  const i64 count = s.count();
  TensorView samples = target, sum = target;
  samples.rank = sum.rank = 1;
  samples.sizes = &count;
  sum.sizes = samples.strides = sum.strides = &kOne;
  const Targets targets{target.as<const i64>(), a.ignore_index, s.classes, errors(context, kText)};
  floats_only("nll_loss", logp.dtype, [&]<class T>(Type<T>) {
    T* const each = a.reduction == LossReduction::kNone ? outputs[0].as<T>() : nullptr;
    const SampleLoss<T> source{s, logp.as<const T>(), weight.as<const T>(), targets, each};
    const LossFold<T> fold{a.reduction, outputs[0].as<T>(), outputs[1].as<T>()};
    run_reduction(context, plan_reduction(samples, sum, sum), source, fold);
  });
}

/// total_weight: null where the loss is no mean. dloss has an element a sample, or one. dlogp is 0 but for the class of
/// each sample, which a thread writes.
template <class T>
__global__ void __launch_bounds__(kThreads)
    loss_gradient_kernel(Shape s, T* dlogp, const T* dloss, bool each, Targets targets, const T* weight,
                         const T* total_weight, i64 count) {
  for (i64 i = first_item(); i < count; i += all_items()) {
    const i64 c = targets[i];
    if (c < 0) continue;
    double gradient = -load_as<T, double>(dloss[each ? i : 0]);
    if (weight) gradient *= load_as<T, double>(weight[c]);
    if (total_weight) gradient /= load_as<T, double>(*total_weight);
    dlogp[s.at(i, c)] = store_as<T>(gradient);
  }
}

void nll_loss_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kIndexError, "nll_loss_backward", kMessage};
  const auto& a = *static_cast<const NllLossAttributes*>(attributes);
  const TensorView &dlogp = outputs[0], &dloss = inputs[0], &target = inputs[1], &weight = inputs[2];
  const Shape s(dlogp);
  const i64 total = dlogp.element_count();
  if (total == 0) return;
  const Targets targets{target.as<const i64>(), a.ignore_index, s.classes, errors(context, kText)};
  floats_only("nll_loss_backward", dlogp.dtype, [&]<class T>(Type<T>) {
    const T* const divisor = a.reduction == LossReduction::kMean ? inputs[3].as<const T>() : nullptr;
    driver_of(context).fill(dlogp.data, 0, static_cast<std::size_t>(total) * sizeof(T), context.stream());
    launch(context, {.grid = blocks_for(s.count()), .block = kThreads}, loss_gradient_kernel<T>, s, dlogp.as<T>(),
           dloss.as<const T>(), a.reduction == LossReduction::kNone, targets, weight.as<const T>(), divisor, s.count());
  });
}

}  // namespace

void add_losses(const KernelSink& sink) {
  sink.add(sink.host, "nll_loss", &nll_loss);
  sink.add(sink.host, "nll_loss_backward", &nll_loss_backward);
}

}  // namespace tenon::cuda
