// Normalisations. One formula serves the three kernels when a gradient must itself be differentiable: with the
// statistics over a set of elements, x' = (x - mean) * rstd and
//   dx = rstd * (g - mean(g) - x' * mean(g * x')),  g = dy * weight.
#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/kept_results.h>
#include <tenon/autograd/statistics_updates.h>
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/nn/normalization.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/sum_dtype.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <concepts>
#include <limits>

namespace tenon {

using namespace ops;

namespace {

struct Gradients {
  Tensor dx, dweight, dbias;
};

/// The formula above, out of differentiable operators. `x` is seen as sizes `grouped`, statistics are over the dims in
/// `over`; `affine` is the broadcast shape of weight and bias against x's own sizes.
Gradients differentiable(const Tensor& dy, const Tensor& x, const Tensor& weight, const Dims& grouped, const Dims& over,
                         const Dims& affine, double eps, const Tensor& fixed_mean, const Tensor& fixed_rstd) {
  const Tensor xg = x.reshape(grouped);
  const bool constant = fixed_mean.defined();
  const Tensor mean = constant ? fixed_mean : xg.mean(IntArrayRef(over), true);
  const Tensor centred = xg - mean;
  const Tensor rstd = constant ? fixed_rstd : (centred.square().mean(IntArrayRef(over), true) + eps).rsqrt();
  const Tensor normal = centred * rstd;
  const Tensor weighted = weight.defined() ? dy * weight.reshape(affine) : dy;
  const Tensor g = weighted.reshape(grouped);
  Gradients gradients;
  gradients.dx =
      constant ? (g * rstd).reshape(x.sizes())
               : (rstd * (g - g.mean(IntArrayRef(over), true) - normal * (g * normal).mean(IntArrayRef(over), true)))
                     .reshape(x.sizes());
  if (weight.defined()) {
    gradients.dweight = (dy * normal.reshape(x.sizes())).sum_to_size(IntArrayRef(affine)).reshape(weight.sizes());
    gradients.dbias = dy.sum_to_size(IntArrayRef(affine)).reshape(weight.sizes());
  }
  return gradients;
}

void hand_out(Backward& b, Gradients gradients) {
  if (b.needs(0)) b.set(0, std::move(gradients.dx));
  if (b.needs(1)) b.set(1, std::move(gradients.dweight));
  if (b.needs(2)) b.set(2, std::move(gradients.dbias));
}

/// Kernels leave the statistics of no elements alone, and their backward multiplies by these.
void clear_if_empty(const Tensor& x, const Tensor& mean, const Tensor& rstd) {
  if (x.numel() != 0) return;
  mean.zero_();
  rstd.zero_();
}

/// What the backward of a normalization needs.
void keep(Recording& recording, const Tensor& input, const Tensor& weight, const Tensor& mean, const Tensor& rstd,
          const Tensor& y) {
  if (!recording) return;
  recording.save(0, input);
  recording.save(1, weight);
  recording.save(2, mean);
  recording.save(3, rstd);
  recording.output(y);
}

/// Whether an input of 16 bits meets parameters of float32, as in PyTorch: kernels take both as they are, and gradients
/// of parameters are in their dtype.
bool is_mixed(const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  if (input.scalar_type() != kFloat16 && input.scalar_type() != kBFloat16) return false;
  bool any = false;
  for (const Tensor* parameter : parameters) {
    if (!parameter->defined()) continue;
    if (parameter->scalar_type() != kFloat32) return false;
    any = true;
  }
  return any;
}

/// What the differentiable formula, whose operators take one dtype, is given of an input mixed with parameters of
/// float32.
Tensor widened(const Tensor& tensor, bool mixed) { return mixed ? tensor.to(kFloat32) : tensor; }

/// Calls a forward kernel that leaves a mean and a 1 / deviation for each set of elements; `statistics` is the sizes of
/// both.
template <class Attributes>
Tensor run_forward(const char* name, OperatorId op, Recording& recording, const Tensor& input, const Tensor& weight,
                   const Tensor& bias, const Dims& statistics, const Attributes& attributes) {
  const Tensor x = dense(input);
  const Tensor w = dense(weight);
  const Tensor bias_values = dense(bias);
  Tensor y, mean, rstd;
  autograd::computed_once(name, {&y, &mean, &rstd}, [&] {
    y = allocate_like(x, x.impl().sizes(), x.scalar_type());
    mean = allocate_like(x, statistics, statistics_dtype(x));
    rstd = allocate_like(x, statistics, statistics_dtype(x));
    run(op, state_of(x), {view_of(y), view_of(mean), view_of(rstd)}, {view_of(x), view_of(w), view_of(bias_values)},
        &attributes);
    clear_if_empty(x, mean, rstd);
    if constexpr (std::same_as<Attributes, GroupNormAttributes>) y = in_format_of(input, y);
  });
  keep(recording, input, weight, mean, rstd, y);
  return y;
}

/// Calls a backward kernel; only what is needed is computed, the gradients of parameters in float32 where `mixed`.
template <class Attributes>
void run_backward(Backward& b, OperatorId op, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                  const Tensor& weight, const Dims& weight_sizes, bool mixed, const Attributes& attributes) {
  const Dtype parameters = mixed ? kFloat32 : x.scalar_type();
  const Tensor dy = dense(b.grad().to(x.scalar_type()));
  const Tensor dense_x = dense(x);
  const Tensor dense_weight = dense(weight);
  Gradients gradients;
  if (b.needs(0)) gradients.dx = allocate_like(x, x.impl().sizes(), x.scalar_type());
  if (b.needs(1)) gradients.dweight = allocate_like(x, weight_sizes, parameters);
  if (b.needs(2)) gradients.dbias = allocate_like(x, weight_sizes, parameters);
  run(op, state_of(x), {view_of(gradients.dx), view_of(gradients.dweight), view_of(gradients.dbias)},
      {view_of(dy), view_of(dense_x), view_of(mean), view_of(rstd), view_of(dense_weight)}, &attributes);
  hand_out(b, std::move(gradients));
}

void check_affine(const char* op, const Tensor& parameter, const char* name, const Dims& sizes, const Tensor& input) {
  if (parameter.defined() && !(parameter.impl().sizes() == sizes)) {
    throw Error(fmt::format("{}: expected {} of size {}, but got {} of size {} and input of size {}", op, name,
                            to_string(sizes), name, to_string(parameter.sizes()), to_string(input.sizes())));
  }
}

void check_shape(const char* op, const Tensor& input, IntArrayRef normalized_shape) {
  bool fits = !normalized_shape.empty() && input.dim() >= static_cast<std::int64_t>(normalized_shape.size());
  for (std::size_t i = 0; fits && i < normalized_shape.size(); ++i) {
    fits = input.size(input.dim() - static_cast<std::int64_t>(normalized_shape.size() - i)) == normalized_shape[i];
  }
  if (normalized_shape.empty()) {
    throw Error(fmt::format(
        "{}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
        "got normalized_shape = []",
        op));
  }
  if (!fits) {
    const std::string listed = to_string(normalized_shape);
    throw Error(fmt::format("{}: Given normalized_shape={}, expected input with shape [*, {}, but got input of size{}",
                            op, listed, listed.substr(1), to_string(input.sizes())));
  }
}

}  // namespace

Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  TENON_AUTOCAST(layer_norm, input, normalized_shape, weight, bias, eps)
  check_floating("layer_norm", input);
  check_shape("layer_norm", input, normalized_shape);
  const Dims shape(normalized_shape);
  check_affine("layer_norm", weight, "weight", shape, input);
  check_affine("layer_norm", bias, "bias", shape, input);
  check_same_device("layer_norm", {&input, &weight, &bias});
  const bool mixed = is_mixed(input, {&weight, &bias});
  if (!mixed) check_same_dtype("layer_norm", {&input, &weight, &bias});
  const LayerNormAttributes attributes{.normalized = shape.product(), .eps = eps};
  Recording recording =
      record<4>("NativeLayerNormBackward0", {&input, &weight, &bias}, [attributes, shape, mixed](Backward& b) {
        const Tensor w = b.saved(1);
        if (differentiating_twice()) {
          const Tensor x = widened(b.saved(0), mixed);
          const std::int64_t rows = attributes.normalized == 0 ? 0 : x.numel() / attributes.normalized;
          Tensor ones;  // stands for a weight that is not there, where a bias is
          if (!w.defined() && b.needs(2)) ones = x.new_ones(IntArrayRef(shape));
          hand_out(b, differentiable(b.grad(), x, w.defined() ? w : ones, {rows, attributes.normalized}, {1}, shape,
                                     attributes.eps, {}, {}));
          return;
        }
        run_backward(b, TENON_OP("layer_norm_backward"), b.saved(0), b.saved(2), b.saved(3), w, shape, mixed,
                     attributes);
      });
  const std::int64_t rows = attributes.normalized == 0 ? 0 : input.numel() / attributes.normalized;
  return run_forward("layer_norm", TENON_OP("layer_norm"), recording, input, weight, bias, {rows}, attributes);
}

Tensor group_norm(const Tensor& input, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps,
                  bool) {
  TENON_AUTOCAST(group_norm, input, groups, weight, bias, eps)
  check_floating("group_norm", input);
  if (input.dim() < 2) {
    throw Error(
        fmt::format("group_norm: Expected at least 2 dimensions for input tensor but received {}", input.dim()));
  }
  const std::int64_t channels = input.size(1);
  if (groups <= 0 || channels % groups != 0) {
    throw Error(
        fmt::format("Expected number of channels in input to be divisible by num_groups, but got input of shape {} and "
                    "num_groups={}",
                    to_string(input.sizes()), groups));
  }
  check_affine("group_norm", weight, "weight", {channels}, input);
  check_affine("group_norm", bias, "bias", {channels}, input);
  check_same_device("group_norm", {&input, &weight, &bias});
  const bool mixed = is_mixed(input, {&weight, &bias});
  if (!mixed) check_same_dtype("group_norm", {&input, &weight, &bias});
  const GroupNormAttributes attributes{.groups = groups, .eps = eps};
  Recording recording =
      record<4>("NativeGroupNormBackward0", {&input, &weight, &bias}, [attributes, channels, mixed](Backward& b) {
        const Tensor w = b.saved(1);
        if (differentiating_twice()) {
          const Tensor x = widened(b.saved(0), mixed);
          const std::int64_t sets = x.size(0) * attributes.groups;
          Dims affine = Dims::filled(static_cast<int>(x.dim()), 1);
          affine[1] = channels;
          const Tensor ones = !w.defined() && b.needs(2) ? x.new_ones({channels}) : Tensor();
          hand_out(b, differentiable(b.grad(), x, w.defined() ? w : ones, {sets, sets == 0 ? 0 : x.numel() / sets}, {1},
                                     affine, attributes.eps, {}, {}));
          return;
        }
        run_backward(b, TENON_OP("group_norm_backward"), b.saved(0), b.saved(2), b.saved(3), w, {channels}, mixed,
                     attributes);
      });
  return run_forward("group_norm", TENON_OP("group_norm"), recording, input, weight, bias, {input.size(0), groups},
                     attributes);
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps, bool) {
  TENON_SCOPE(batch_norm, input, weight, bias, running_mean, running_var, training, momentum, eps)
  check_floating("batch_norm", input);
  if (input.dim() < 2) {
    throw Error(fmt::format("batch_norm: expected input of at least 2 dimensions (N, C, …), got size {}",
                            to_string(input.sizes())));
  }
  const std::int64_t channels = input.size(1);
  for (const Tensor* statistic : {&running_mean, &running_var}) {
    if (training || statistic->defined()) continue;
    throw Error(fmt::format("batch_norm: {} must be defined in evaluation mode",
                            statistic == &running_mean ? "running_mean" : "running_var"));
  }
  for (const auto& [name, parameter] :
       {std::pair("weight", &weight), std::pair("bias", &bias), std::pair("running_mean", &running_mean),
        std::pair("running_var", &running_var)}) {
    if (parameter->defined() && parameter->numel() != channels) {
      throw Error(fmt::format("batch_norm: {} should contain {} elements not {}", name, channels, parameter->numel()));
    }
    check_affine("batch_norm", *parameter, name, {channels}, input);
  }
  check_same_device("batch_norm", {&input, &weight, &bias, &running_mean, &running_var});
  const bool mixed = is_mixed(input, {&weight, &bias});
  if (!mixed) check_same_dtype("batch_norm", {&input, &weight, &bias});
  const BatchNormAttributes attributes{.training = training, .momentum = momentum, .eps = eps};
  Recording recording =
      record<4>("NativeBatchNormBackward0", {&input, &weight, &bias}, [attributes, channels, mixed](Backward& b) {
        const Tensor w = b.saved(1);
        if (differentiating_twice()) {
          const Tensor x = widened(b.saved(0), mixed);
          const int rank = static_cast<int>(x.dim());
          Dims per_channel = Dims::filled(rank, 1);
          per_channel[1] = channels;
          Dims over;
          for (int d = 0; d < rank; ++d) {
            if (d != 1) over.push_back(d);
          }
          Tensor mean, rstd;
          if (!attributes.training) {
            mean = b.saved(2).view(per_channel).to(x.scalar_type());
            rstd = b.saved(3).view(per_channel).to(x.scalar_type());
          }
          const Tensor ones = !w.defined() && b.needs(2) ? x.new_ones({channels}) : Tensor();
          hand_out(b, differentiable(b.grad(), x, w.defined() ? w : ones, x.impl().sizes(), over, per_channel,
                                     attributes.eps, mean, rstd));
          return;
        }
        run_backward(b, TENON_OP("batch_norm_backward"), b.saved(0), b.saved(2), b.saved(3), w, {channels}, mixed,
                     attributes);
      });
  const Tensor x = dense(input);
  const Tensor w = dense(weight);
  const Tensor bias_values = dense(bias);
  Tensor y, mean, rstd;
  const bool is_due = training && running_mean.defined() && running_var.defined() && !is_recomputing();
  const bool updates = is_due && !is_statistics_update_left_out();
  autograd::computed_once("batch_norm", {&y, &mean, &rstd}, [&] {
    y = allocate_like(x, x.impl().sizes(), x.scalar_type());
    mean = allocate_like(x, {channels}, statistics_dtype(x));
    rstd = allocate_like(x, {channels}, statistics_dtype(x));
    run(TENON_OP("batch_norm"), state_of(x),
        {view_of(y), view_of(mean), view_of(rstd), updates ? view_of(running_mean) : undefined_view(),
         updates ? view_of(running_var) : undefined_view()},
        {view_of(x), view_of(w), view_of(bias_values), view_of(running_mean), view_of(running_var)}, &attributes);
    if (is_due) note_statistics_update();
    clear_if_empty(x, mean, rstd);
    y = in_format_of(input, y);
  });
  if (updates) {
    autograd::impl_bump_version(running_mean);
    autograd::impl_bump_version(running_var);
  }
  keep(recording, input, weight, mean, rstd, y);
  return y;
}

Tensor rms_norm(const Tensor& given, IntArrayRef normalized_shape, const Tensor& weight, std::optional<double> eps) {
  TENON_AUTOCAST(rms_norm, given, normalized_shape, weight, eps)
  const Tensor input = given.contiguous();
  check_floating("rms_norm", input);
  check_shape("rms_norm", input, normalized_shape);
  check_affine("rms_norm", weight, "weight", Dims(normalized_shape), input);
  Dims over;
  for (std::size_t i = 0; i < normalized_shape.size(); ++i) {
    over.push_back(input.dim() - static_cast<std::int64_t>(normalized_shape.size() - i));
  }
  const double least = eps.value_or(input.scalar_type() == kFloat64 ? std::numeric_limits<double>::epsilon()
                                                                    : std::numeric_limits<float>::epsilon());
  // 16 bits hold neither the squares nor their mean: as in PyTorch all of it is computed in float32.
  const Tensor wide = size_of(input.scalar_type()) < size_of(kFloat32) ? input.to(kFloat32) : input;
  const Tensor scaled = wide * (wide.square().mean(IntArrayRef(over), true) + least).rsqrt();
  const Tensor result = (weight.defined() ? scaled * weight : scaled).to(input.scalar_type());
  return result.contiguous(given.suggest_memory_format());
}

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, bool use_input_stats, double momentum, double eps, bool) {
  TENON_SCOPE(instance_norm, input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)
  // Each picture is a batch of its own: fold the batch into the channels.
  const std::int64_t n = input.size(0);
  const std::int64_t c = input.size(1);
  const auto repeated = [&](const Tensor& tensor) { return tensor.defined() ? tensor.repeat(n) : Tensor(); };
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes[0] = 1;
  sizes[1] = n * c;
  const Tensor mean = repeated(running_mean);
  const Tensor variance = repeated(running_var);
  const bool updates = use_input_stats && mean.defined() && !is_recomputing() && !is_statistics_update_left_out();
  const Tensor result = batch_norm(input.contiguous().view(sizes), repeated(weight), repeated(bias), mean, variance,
                                   use_input_stats, momentum, eps);
  if (updates) {
    NoGradGuard no_grad;
    running_mean.copy_(mean.view({n, c}).mean(0));
    running_var.copy_(variance.view({n, c}).mean(0));
  }
  return as_owned(result.view(input.sizes()));
}

}  // namespace tenon
