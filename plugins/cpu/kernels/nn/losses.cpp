// nll_loss and its backward: contiguous (N, C) or (N, C, S), targets (N) or (N, S).
#include <tenon/core/error.h>
#include <tenon/kernel/attributes/normalization.h>

#include <string>

#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 4096;

struct Shape {
  i64 batch, classes, inner;
  explicit Shape(const TensorView& logits) {
    const bool one = logits.rank == 1;
    batch = one ? 1 : logits.sizes[0];
    classes = logits.sizes[one ? 0 : 1];
    inner = 1;
    for (int d = 2; d < logits.rank; ++d) inner *= logits.sizes[d];
  }
};

// Any floating element as double.
struct Reader {
  const char* data;
  i64 bytes;
  Load load;
  explicit Reader(const TensorView& v) : data(static_cast<const char*>(v.data)), bytes(bytes_of(v.dtype)) {
    load = v.rank >= 0 ? load_function(v.dtype, Lane::kF64) : nullptr;
  }
  double operator[](i64 index) const {
    double value;
    load(&value, data + index * bytes, bytes, 1);
    return value;
  }
};
struct Writer {
  char* data;
  i64 bytes;
  Store store;
  explicit Writer(const TensorView& v)
      : data(static_cast<char*>(v.data)), bytes(bytes_of(v.dtype)), store(store_function(v.dtype, Lane::kF64)) {}
  void set(i64 index, double value) const { store(data + index * bytes, bytes, &value, 1); }
};

void check_target(i64 target, i64 classes) {
  if (target < 0 || target >= classes) throw IndexError("Target " + std::to_string(target) + " is out of bounds.");
}

void nll_loss(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const auto& given = *static_cast<const NllLossAttributes*>(attributes);
  const TensorView &logits = at(inputs, 0), &target = at(inputs, 1), &weight = at(inputs, 2);
  const Shape s(logits);
  const Reader x(logits), w(weight);
  const Writer loss(at(outputs, 0)), total(at(outputs, 1));
  const i64* classes = static_cast<const i64*>(target.data);
  const i64 count = s.batch * s.inner;
  double sum = 0, weights = 0;
  for (i64 i = 0; i < count; ++i) {
    const i64 c = classes[i];
    const bool ignored = c == given.ignore_index;
    double value = 0;
    if (!ignored) {
      check_target(c, s.classes);
      const double scale = w.load ? w[c] : 1;
      value = -scale * x[(i / s.inner * s.classes + c) * s.inner + i % s.inner];
      weights += scale;
    }
    if (given.reduction == LossReduction::kNone) {
      loss.set(i, value);
    } else {
      sum += value;
    }
  }
  if (given.reduction == LossReduction::kMean) sum /= weights;
  if (given.reduction != LossReduction::kNone) loss.set(0, sum);
  total.set(0, weights);
}

void nll_loss_backward(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const auto& given = *static_cast<const NllLossAttributes*>(attributes);
  const TensorView& dx = at(outputs, 0);
  const TensorView &dloss = at(inputs, 0), &target = at(inputs, 1), &weight = at(inputs, 2);
  const Shape s(dx);
  const Reader gradient(dloss), w(weight);
  const Writer out(dx);
  const i64* classes = static_cast<const i64*>(target.data);
  const i64 element = bytes_of(dx.dtype);
  const bool each = given.reduction == LossReduction::kNone;
  const i64 count = s.batch * s.inner;
  if (count == 0 || s.classes == 0) return;
  double scale = each ? 1 : gradient[0];
  if (given.reduction == LossReduction::kMean) scale /= Reader(at(inputs, 3))[0];
  for (i64 i = 0; i < count; ++i) {
    if (classes[i] != given.ignore_index) check_target(classes[i], s.classes);
  }
  parallel(s.batch, kGrain / (s.classes * s.inner) + 1, 1, [&](i64 begin, i64 end) {
    const i64 picture = s.classes * s.inner;
    __builtin_memset(out.data + begin * picture * element, 0,
                     static_cast<std::size_t>((end - begin) * picture * element));
    for (i64 i = begin * s.inner; i < end * s.inner; ++i) {
      const i64 c = classes[i];
      if (c == given.ignore_index) continue;
      const double own = each ? gradient[i] : 1;
      out.set((i / s.inner * s.classes + c) * s.inner + i % s.inner, -scale * own * (w.load ? w[c] : 1));
    }
  });
}

}  // namespace

void add_losses(const KernelSink& sink) {
  sink.add(sink.host, "nll_loss", &nll_loss);
  sink.add(sink.host, "nll_loss_backward", &nll_loss_backward);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
