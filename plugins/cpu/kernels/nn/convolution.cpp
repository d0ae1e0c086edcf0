// conv, conv_backward_input, conv_backward_weight: float32 through oneDNN and our own ways, 16 bits as copies in
// float32, everything else by im2col.
#include "kernels/nn/convolution.h"

#include <optional>

#include "kernels/linalg/bfloat16.h"
#include "kernels/register.h"
#include "kernels/rehearsal.h"
#include "thread_pool.h"

namespace tenon::cpu {

ConvShape conv_shape(const TensorView& x, const TensorView& w, const TensorView& y, const ConvAttributes& a) {
  ConvShape s;
  s.spatial = a.spatial;
  s.batch = x.sizes[0];
  s.in_channels = x.sizes[1];
  s.out_channels = y.sizes[1];
  s.groups = a.groups;
  for (int d = 0; d < a.spatial; ++d) {
    const int to = 3 - a.spatial + d;
    s.in[to] = x.sizes[2 + d];
    s.out[to] = y.sizes[2 + d];
    s.kernel[to] = w.sizes[2 + d];
    s.stride[to] = a.stride[d];
    s.padding[to] = a.padding[d];
    s.dilation[to] = a.dilation[d];
  }
  return s;
}

}  // namespace tenon::cpu

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

// An operand as contiguous elements of the compute type: itself, or a copy in scratch.
struct Plain {
  TensorView view;
  i64 strides[kMaxRank];
  bool staged = false;

  Plain(KernelContext& context, const TensorView& original, Dtype compute, bool input) : view(original) {
    if (original.dtype == compute && contiguous(original)) return;
    staged = true;
    view.dtype = compute;
    view.strides = strides;
    i64 expected = 1;
    for (int d = original.rank - 1; d >= 0; --d) {
      strides[d] = expected;
      expected *= original.sizes[d];
    }
    view.data = context.scratch(static_cast<std::size_t>(expected * bytes_of(compute)));
    if (input && expected > 0 && !is_rehearsal()) level_functions().copy(view, original);
  }
  Plain(const Plain&) = delete;
  char* data() const { return static_cast<char*>(view.data); }
  void finish(const TensorView& original) const {
    if (staged && !is_rehearsal()) level_functions().copy(original, view);
  }
};

Dtype compute_type(const TensorView& view) {
  if (lane_of(view.dtype) == Lane::kI64) refuse_dtype("conv", view.dtype);
  return view.dtype == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
}

bool dense_channels_last(const TensorView& v) {
  i64 expected = v.sizes[1];
  if (v.sizes[1] != 1 && v.strides[1] != 1) return false;
  for (int d = v.rank - 1; d >= 2; --d) {
    if (v.sizes[d] != 1 && v.strides[d] != expected) return false;
    expected *= v.sizes[d];
  }
  return v.sizes[0] == 1 || v.strides[0] == expected;
}
float* floats(const TensorView& v) { return static_cast<float*>(v.data); }
bool plain(const TensorView& v) { return v.dtype == Dtype::kFloat32 && contiguous(v); }
bool for_onednn(const TensorView& v) {
  const bool is_taken = v.dtype == Dtype::kFloat32 || (v.dtype == Dtype::kBFloat16 && has_bfloat16_products());
  return is_taken && (contiguous(v) || dense_channels_last(v));
}

// Two bytes an element. Converted in scratch they go the ways of float32, which beat products of 16 bits unless the
// processor has tiles for those (bench/results/mixed_precision.md).
bool has_16_bits(const TensorView& v) { return v.dtype == Dtype::kFloat16 || v.dtype == Dtype::kBFloat16; }

using Kernel32 = void (*)(KernelContext&, Views, Views, const void*);
/// The kernel on copies in float32 of its inputs, which may end with one that is not there, and of its output.
void in_float32(Kernel32 kernel, KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Plain y(context, at(outputs, 0), Dtype::kFloat32, false), a(context, at(inputs, 0), Dtype::kFloat32, true),
      b(context, at(inputs, 1), Dtype::kFloat32, true);
  TensorView views[3] = {a.view, b.view};
  std::size_t count = inputs.size();
  std::optional<Plain> bias;
  if (count > 2) {
    const TensorView& given = at(inputs, 2);
    if (given.rank >= 0) bias.emplace(context, given, Dtype::kFloat32, true);
    views[2] = bias ? bias->view : given;
  }
  kernel(context, {&y.view, 1}, {views, count}, attributes);
  y.finish(at(outputs, 0));
}

// Many enough channels that products pay for the transforms, few enough that the transformed weights stay small; and
// enough tiles for all threads.
constexpr i64 kLeastChannels = 64, kMostChannels = 256, kLeastTilesOfThread = 512;

bool suits_winograd(const ConvShape& s) {
  const auto suits = [](i64 channels) { return channels >= kLeastChannels && channels <= kMostChannels; };
  const i64 tiles = s.batch * ((s.out[1] + 1) / 2) * ((s.out[2] + 1) / 2);
  const bool plain_window = s.spatial == 2 && s.kernel[1] == 3 && s.kernel[2] == 3 && s.stride[1] == 1 &&
                            s.stride[2] == 1 && s.dilation[1] == 1 && s.dilation[2] == 1 &&
                            s.padding[1] == s.padding[2] && s.padding[1] <= 2;
  return plain_window && s.groups == 1 && suits(s.in_channels) && suits(s.out_channels) && s.out[2] <= 512 &&
         !in_part() && tiles >= kLeastTilesOfThread * thread_count();
}

void conv(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &y = at(outputs, 0), &x = at(inputs, 0), &w = at(inputs, 1), &bias = at(inputs, 2);
  if (numel(y) == 0) return;
  const ConvShape s = conv_shape(x, w, y, *static_cast<const ConvAttributes*>(attributes));
  const bool has_bias = bias.rank >= 0;
  if (is_pointwise(s) && plain(x) && plain(w) && plain(y) && numel(x) > 0 && (!has_bias || plain(bias))) {
    return pointwise_forward(context, s, x, w, has_bias ? &bias : nullptr, y);
  }
  if (suits_winograd(s) && plain(x) && plain(w) && plain(y) && (!has_bias || plain(bias)) &&
      level_functions().winograd_forward(context, s, floats(x), floats(w), has_bias ? floats(bias) : nullptr,
                                         floats(y))) {
    return;
  }
  if (for_onednn(x) && for_onednn(w) && for_onednn(y) && numel(x) > 0 && (!has_bias || contiguous(bias)) &&
      onednn_forward(context, s, x, w, has_bias ? &bias : nullptr, y)) {
    return;
  }
  if (has_16_bits(y)) return in_float32(&conv, context, outputs, inputs, attributes);
  const Dtype compute = compute_type(y);
  const Plain px(context, x, compute, true), pw(context, w, compute, true), py(context, y, compute, false);
  if (has_bias) {
    const Plain pb(context, bias, compute, true);
    general_forward(context, compute, s, px.data(), pw.data(), pb.data(), py.data());
  } else {
    general_forward(context, compute, s, px.data(), pw.data(), nullptr, py.data());
  }
  py.finish(y);
}

void conv_backward_input(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &dx = at(outputs, 0), &dy = at(inputs, 0), &w = at(inputs, 1);
  if (numel(dx) == 0) return;
  const ConvShape s = conv_shape(dx, w, dy, *static_cast<const ConvAttributes*>(attributes));
  if (is_pointwise(s) && plain(dx) && plain(w) && plain(dy) && numel(dy) > 0) {
    return pointwise_backward_input(context, s, dy, w, dx);
  }
  if (suits_winograd(s) && plain(dx) && plain(w) && plain(dy) &&
      level_functions().winograd_backward_input(context, s, floats(dy), floats(w), floats(dx))) {
    return;
  }
  if (for_onednn(dx) && for_onednn(w) && for_onednn(dy) && numel(dy) > 0 &&
      onednn_backward_input(context, s, dy, w, dx)) {
    return;
  }
  if (has_16_bits(dx)) return in_float32(&conv_backward_input, context, outputs, inputs, attributes);
  const Dtype compute = compute_type(dx);
  const Plain pd(context, dy, compute, true), pw(context, w, compute, true), px(context, dx, compute, false);
  general_backward_input(context, compute, s, pd.data(), pw.data(), px.data());
  px.finish(dx);
}

void conv_backward_weight(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &dw = at(outputs, 0), &dy = at(inputs, 0), &x = at(inputs, 1);
  if (numel(dw) == 0) return;
  const ConvShape s = conv_shape(x, dw, dy, *static_cast<const ConvAttributes*>(attributes));
  if (is_pointwise(s) && plain(dw) && plain(x) && plain(dy) && numel(dy) > 0 && numel(x) > 0) {
    return pointwise_backward_weight(context, s, dy, x, dw);
  }
  if (suits_winograd(s) && plain(dw) && plain(x) && plain(dy) &&
      level_functions().winograd_backward_weight(context, s, floats(dy), floats(x), floats(dw))) {
    return;
  }
  // oneDNN 2.6 leaves elements of windows of three dimensions in bfloat16 at 0.
  const bool is_left_at_0 = s.spatial == 3 && dw.dtype == Dtype::kBFloat16;
  if (!is_left_at_0 && for_onednn(dw) && for_onednn(x) && for_onednn(dy) && numel(dy) > 0 && numel(x) > 0 &&
      onednn_backward_weight(context, s, dy, x, dw)) {
    return;
  }
  if (has_16_bits(dw)) return in_float32(&conv_backward_weight, context, outputs, inputs, attributes);
  const Dtype compute = compute_type(dw);
  const Plain pd(context, dy, compute, true), px(context, x, compute, true), pw(context, dw, compute, false);
  general_backward_weight(context, compute, s, pd.data(), px.data(), pw.data());
  pw.finish(dw);
}

}  // namespace

void add_convolution(const KernelSink& sink) {
  sink.add(sink.host, "conv", &conv);
  sink.add(sink.host, "conv_backward_input", &conv_backward_input);
  sink.add(sink.host, "conv_backward_weight", &conv_backward_weight);
  sink.add(sink.host, "conv.workspace", &rehearsed<&conv>);
  sink.add(sink.host, "conv_backward_input.workspace", &rehearsed<&conv_backward_input>);
  sink.add(sink.host, "conv_backward_weight.workspace", &rehearsed<&conv_backward_weight>);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
