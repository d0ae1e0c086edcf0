// What kernels have to do at least, operator by operator.
#include <tenon/dispatch/kernel_work.h>

#include <tenon/kernel/attributes/attention.h>

#include <algorithm>

namespace tenon {

namespace {

using Views = std::span<const TensorView>;

/// Elements that lie apart: a broadcast dimension is read again from the cache.
double distinct_elements(const TensorView& view) {
  if (!view.defined() || view.data == nullptr) return 0;
  double count = 1;
  for (int i = 0; i < view.rank; ++i)
    if (view.strides[i] != 0 || view.sizes[i] == 0) count *= static_cast<double>(view.sizes[i]);
  return count;
}

double bytes_of(const TensorView& view) { return distinct_elements(view) * static_cast<double>(size_of(view.dtype)); }

double bytes_of(Views views) {
  double bytes = 0;
  for (const TensorView& view : views) bytes += bytes_of(view);
  return bytes;
}

double elements(const TensorView& view) { return view.defined() ? static_cast<double>(view.element_count()) : 0; }

double last_size(const TensorView& view) { return view.rank > 0 ? static_cast<double>(view.sizes[view.rank - 1]) : 1; }

/// Multiplications for each output element of a convolution with these weights (O, C / groups, ...).
double taps(const TensorView& weight) {
  return weight.sizes[0] == 0 ? 0 : elements(weight) / static_cast<double>(weight.sizes[0]);
}

double attention_flops(const TensorView& q, const TensorView& k, const TensorView& v, const void* attributes) {
  const double keys = static_cast<double>(k.sizes[2]);
  const double whole = 2 * elements(q) * keys + 2 * elements(q) / last_size(q) * keys * last_size(v);
  const bool causal = static_cast<const AttentionAttributes*>(attributes)->causal;
  return causal ? whole / 2 : whole;
}

/// Of matrix products and what is made of them; 0 for the rest.
double matrix_flops(std::string_view op, Views outputs, Views inputs, const void* attributes) {
  if (op == "matmul") return 2 * elements(outputs[0]) * last_size(inputs[0]);
  if (op == "conv" || op == "quantized_conv") return 2 * elements(outputs[0]) * taps(inputs[1]);
  if (op == "conv_backward_input") return 2 * elements(inputs[0]) * taps(inputs[1]);
  if (op == "conv_backward_weight") return 2 * elements(inputs[0]) * taps(outputs[0]);
  if (op == "weight_only_linear") return 2 * elements(outputs[0]) * last_size(inputs[0]);
  if (op == "attention") return attention_flops(inputs[0], inputs[1], inputs[2], attributes);
  // The scores again, and a product each for dv, the weights, dq and dk.
  if (op == "attention_backward") return 2.5 * attention_flops(inputs[1], inputs[2], inputs[3], attributes);
  return 0;
}

/// Nothing is computed of operands there. Random bits are made by integer arithmetic.
bool only_fills(std::string_view op) {
  return op == "fill" || op == "uniform" || op == "normal" || op == "exponential" || op == "bernoulli" ||
         op == "randint" || op == "randperm" || op == "eye";
}

bool looks_up(std::string_view op) { return op == "index" || op == "index_select" || op == "gather"; }

double moved_bytes(std::string_view op, Views outputs, Views inputs) {
  if (looks_up(op))  // reads as much of its table as it writes
    return 2 * bytes_of(outputs) + bytes_of(inputs.subspan(1));
  if (op == "index_put") return 2 * bytes_of(inputs[0]) + bytes_of(inputs.subspan(1));
  if (op == "index_add" || op == "scatter") return bytes_of(inputs) + bytes_of(inputs[1]);
  return bytes_of(outputs) + bytes_of(inputs);
}

MathRate rate_of(Dtype dtype, bool is_matrix) {
  if (dtype == Dtype::kFloat64) return MathRate::kFloat64;
  return is_matrix && (dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16) ? MathRate::kMatrix16
                                                                              : MathRate::kFloat32;
}

}  // namespace

KernelWork work_of_kernel(std::string_view op, Views outputs, Views inputs, const void* attributes) {
  KernelWork work{.flops = matrix_flops(op, outputs, inputs, attributes), .bytes = moved_bytes(op, outputs, inputs)};
  work.rate = rate_of(outputs.empty() ? Dtype::kFloat32 : outputs[0].dtype, work.flops > 0);
  if (work.flops > 0 || only_fills(op)) return work;
  for (const Views views : {outputs, looks_up(op) ? inputs.subspan(1) : inputs})
    for (const TensorView& view : views) work.flops = std::max(work.flops, elements(view));
  return work;
}

}  // namespace tenon
