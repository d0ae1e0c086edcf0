// Normalisation over one kernel each; its gradient is a kernel, and composed of operators where it must be differentiable.
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/ops/factory.h>
#include <tenon/ops/normalization.h>
#include <tenon/ops/pointwise.h>
#include <tenon/ops/support.h>

#include <cmath>

namespace tenon {

using namespace ops;

namespace {

/// The gradient of normalising over `dims` (all with `mean` and `rstd` broadcastable against x), in differentiable operators.
Tensor normalization_gradient(const Tensor& dxhat, const Tensor& x, IntArrayRef dims, double eps) {
  const Tensor mean = x.mean(dims, true);
  const Tensor centered = x.sub(mean);
  const Tensor rstd = centered.square().mean(dims, true).add(eps).rsqrt();
  const Tensor xhat = centered.mul(rstd);
  return rstd.mul(dxhat.sub(dxhat.mean(dims, true)).sub(xhat.mul(dxhat.mul(xhat).mean(dims, true))));
}

Tensor xhat_of(const Tensor& x, IntArrayRef dims, double eps) {
  const Tensor centered = x.sub(x.mean(dims, true));
  return centered.mul(centered.square().mean(dims, true).add(eps).rsqrt());
}

Tensor maybe(const Tensor& like, const Dims& sizes, bool wanted) {
  return wanted ? allocate_like(like, sizes, like.scalar_type()) : Tensor();
}

/// Statistics have the dtype of the computation.
Dtype statistics_dtype(Dtype dtype) { return dtype == kFloat64 ? kFloat64 : dtype == kFloat32 ? kFloat32 : kFloat32; }

}  // namespace

Tensor layer_norm(const Tensor& given, IntArrayRef normalized_shape, const std::optional<Tensor>& weight_, const std::optional<Tensor>& bias_,
                  double eps, bool) {
  check_floating("layer_norm", given);
  const int rank = given.impl().rank();
  const int count = static_cast<int>(normalized_shape.size());
  bool fits = count >= 1 && count <= rank;
  for (int i = 0; fits && i < count; ++i) fits = given.size(rank - count + i) == normalized_shape[static_cast<std::size_t>(i)];
  if (!fits) {
    throw Error("Given normalized_shape=" + to_string(normalized_shape) + ", expected input with shape [*, " +
                to_string(normalized_shape).substr(1) + ", but got input of size" + to_string(given.sizes()));
  }
  const Tensor x = given.contiguous();
  const Tensor weight = dense(weight_.value_or(Tensor()));
  const Tensor bias = dense(bias_.value_or(Tensor()));
  check_same_dtype("layer_norm", {&x, &weight, &bias});
  const std::int64_t width = Dims(normalized_shape).product();
  const std::int64_t rows = width == 0 ? 0 : x.numel() / width;
  const LayerNormAttributes attributes{width, eps};
  const Dims shape(normalized_shape);
  Recording recording = record<4>("NativeLayerNormBackward0", {&x, &weight, &bias}, [attributes, shape, rank, count](Backward& b) {
    const Tensor x = b.saved(0);
    const Tensor weight = b.saved(3);
    if (differentiating_twice()) {
      std::vector<std::int64_t> dims;
      for (int i = rank - count; i < rank; ++i) dims.push_back(i);
      if (b.needs(0)) b.set(0, normalization_gradient(weight.defined() ? b.grad().mul(weight) : b.grad(), x, dims, attributes.eps));
      if (b.needs(1)) b.set(1, b.grad().mul(xhat_of(x, dims, attributes.eps)).sum_to_size(shape));
      if (b.needs(2)) b.set(2, b.grad().sum_to_size(shape));
      return;
    }
    const Tensor dy = b.grad().contiguous();
    const Tensor dx = maybe(x, x.impl().sizes(), b.needs(0));
    const Tensor dweight = maybe(x, shape, b.needs(1));
    const Tensor dbias = maybe(x, shape, b.needs(2));
    run(TENON_OP("layer_norm_backward"), ops::state_of(x), {view_of(dx), view_of(dweight), view_of(dbias)},
        {view_of(dy), view_of(x), view_of(b.saved(1)), view_of(b.saved(2)), view_of(weight)}, &attributes);
    b.set(0, dx);
    b.set(1, dweight);
    b.set(2, dbias);
  });
  Tensor y = allocate_like(x, x.impl().sizes(), x.scalar_type());
  const Dtype statistics = statistics_dtype(x.scalar_type());
  Tensor mean = allocate_like(x, Dims{rows}, statistics);
  Tensor rstd = allocate_like(x, Dims{rows}, statistics);
  run(TENON_OP("layer_norm"), ops::state_of(x), {view_of(y), view_of(mean), view_of(rstd)}, {view_of(x), view_of(weight), view_of(bias)}, &attributes);
  if (recording) {
    recording.save(0, x);
    recording.save(1, mean);
    recording.save(2, rstd);
    recording.save(3, weight);
    recording.output(y);
  }
  return y;
}

Tensor group_norm(const Tensor& given, std::int64_t groups, const std::optional<Tensor>& weight_, const std::optional<Tensor>& bias_, double eps, bool) {
  check_floating("group_norm", given);
  if (given.dim() < 2 || groups <= 0 || given.size(1) % groups != 0) {
    throw Error("Expected number of channels in input to be divisible by num_groups, but got input of shape " + to_string(given.sizes()) +
                " and num_groups=" + std::to_string(groups));
  }
  const Tensor x = given.contiguous();
  const Tensor weight = dense(weight_.value_or(Tensor()));
  const Tensor bias = dense(bias_.value_or(Tensor()));
  const std::int64_t channels = x.size(1);
  for (const Tensor* parameter : {&weight, &bias}) {
    if (parameter->defined() && (parameter->dim() != 1 || parameter->numel() != channels)) {
      throw Error("Expected weight and bias to be vectors of size equal to the number of channels in input, but got shape " +
                  to_string(parameter->sizes()) + " and input of shape " + to_string(x.sizes()));
    }
  }
  const GroupNormAttributes attributes{groups, eps};
  Recording recording = record<4>("NativeGroupNormBackward0", {&x, &weight, &bias}, [attributes, channels](Backward& b) {
    const Tensor x = b.saved(0);
    const Tensor weight = b.saved(3);
    if (differentiating_twice()) {
      const Dims grouped{x.size(0), attributes.groups, -1};
      const Dims per_channel{x.size(0), channels, -1};
      const Tensor flat = x.reshape(grouped);
      const Tensor dy = b.grad().reshape(per_channel);
      const Tensor dxhat = (weight.defined() ? dy.mul(weight.view({1, channels, 1})) : dy).reshape(grouped);
      if (b.needs(0)) b.set(0, normalization_gradient(dxhat, flat, 2, attributes.eps).reshape(x.sizes()));
      if (b.needs(1)) b.set(1, dy.mul(xhat_of(flat, 2, attributes.eps).reshape(per_channel)).sum({0, 2}));
      if (b.needs(2)) b.set(2, dy.sum({0, 2}));
      return;
    }
    const Tensor dy = b.grad().contiguous();
    const Tensor dx = maybe(x, x.impl().sizes(), b.needs(0));
    const Tensor dweight = maybe(x, Dims{channels}, b.needs(1));
    const Tensor dbias = maybe(x, Dims{channels}, b.needs(2));
    run(TENON_OP("group_norm_backward"), ops::state_of(x), {view_of(dx), view_of(dweight), view_of(dbias)},
        {view_of(dy), view_of(x), view_of(b.saved(1)), view_of(b.saved(2)), view_of(weight)}, &attributes);
    b.set(0, dx);
    b.set(1, dweight);
    b.set(2, dbias);
  });
  Tensor y = allocate_like(x, x.impl().sizes(), x.scalar_type());
  const Dims statistics{x.size(0), groups};
  Tensor mean = allocate_like(x, statistics, statistics_dtype(x.scalar_type()));
  Tensor rstd = allocate_like(x, statistics, statistics_dtype(x.scalar_type()));
  run(TENON_OP("group_norm"), ops::state_of(x), {view_of(y), view_of(mean), view_of(rstd)}, {view_of(x), view_of(weight), view_of(bias)}, &attributes);
  if (recording) {
    recording.save(0, x);
    recording.save(1, mean);
    recording.save(2, rstd);
    recording.save(3, weight);
    recording.output(y);
  }
  return y;
}

Tensor batch_norm(const Tensor& given, const std::optional<Tensor>& weight_, const std::optional<Tensor>& bias_,
                  const std::optional<Tensor>& running_mean_, const std::optional<Tensor>& running_var_, bool training, double momentum,
                  double eps, bool) {
  check_floating("batch_norm", given);
  if (given.dim() < 2) throw Error("batch_norm: expected at least 2D input, got " + to_string(given.sizes()));
  const Tensor x = given.contiguous();
  const Tensor weight = dense(weight_.value_or(Tensor()));
  const Tensor bias = dense(bias_.value_or(Tensor()));
  const Tensor running_mean = running_mean_.value_or(Tensor());
  const Tensor running_var = running_var_.value_or(Tensor());
  const std::int64_t channels = x.size(1);
  const char* const names[] = {"weight", "bias", "running_mean", "running_var"};
  const Tensor* const parameters[] = {&weight, &bias, &running_mean, &running_var};
  for (int i = 0; i < 4; ++i) {
    if (parameters[i]->defined() && parameters[i]->numel() != channels) {
      throw Error(std::string(names[i]) + " should contain " + std::to_string(channels) + " elements not " + std::to_string(parameters[i]->numel()));
    }
  }
  if (!training && !(running_mean.defined() && running_var.defined())) throw Error("running_mean and running_var must be defined in evaluation mode");
  const BatchNormAttributes attributes{training, momentum, eps};
  Recording recording = record<4>("NativeBatchNormBackward0", {&x, &weight, &bias}, [attributes, channels](Backward& b) {
    const Tensor x = b.saved(0);
    const Tensor weight = b.saved(3);
    if (differentiating_twice()) {
      const Dims flat{x.size(0), channels, -1};
      const Dims column{1, channels, 1};
      const Tensor values = x.reshape(flat);
      const Tensor dy = b.grad().reshape(flat);
      const Tensor dxhat = weight.defined() ? dy.mul(weight.view(column)) : dy;
      if (attributes.training) {
        if (b.needs(0)) b.set(0, normalization_gradient(dxhat, values, {0, 2}, attributes.eps).reshape(x.sizes()));
        if (b.needs(1)) b.set(1, dy.mul(xhat_of(values, {0, 2}, attributes.eps)).sum({0, 2}));
      } else {
        const Tensor rstd = b.saved(2).to(x.scalar_type()).view(column);
        if (b.needs(0)) b.set(0, dxhat.mul(rstd).reshape(x.sizes()));
        if (b.needs(1)) b.set(1, dy.mul(values.sub(b.saved(1).to(x.scalar_type()).view(column)).mul(rstd)).sum({0, 2}));
      }
      if (b.needs(2)) b.set(2, dy.sum({0, 2}));
      return;
    }
    const Tensor dy = b.grad().contiguous();
    const Tensor dx = maybe(x, x.impl().sizes(), b.needs(0));
    const Tensor dweight = maybe(x, Dims{channels}, b.needs(1));
    const Tensor dbias = maybe(x, Dims{channels}, b.needs(2));
    run(TENON_OP("batch_norm_backward"), ops::state_of(x), {view_of(dx), view_of(dweight), view_of(dbias)},
        {view_of(dy), view_of(x), view_of(b.saved(1)), view_of(b.saved(2)), view_of(weight)}, &attributes);
    b.set(0, dx);
    b.set(1, dweight);
    b.set(2, dbias);
  });
  Tensor y = allocate_like(x, x.impl().sizes(), x.scalar_type());
  Tensor mean = allocate_like(x, Dims{channels}, statistics_dtype(x.scalar_type()));
  Tensor rstd = allocate_like(x, Dims{channels}, statistics_dtype(x.scalar_type()));
  const bool update = training && running_mean.defined();
  run(TENON_OP("batch_norm"), ops::state_of(x),
      {view_of(y), view_of(mean), view_of(rstd), update ? view_of(running_mean) : undefined_view(), update ? view_of(running_var) : undefined_view()},
      {view_of(x), view_of(weight), view_of(bias), view_of(running_mean), view_of(running_var)}, &attributes);
  if (update) {
    autograd::impl_bump_version(running_mean);
    autograd::impl_bump_version(running_var);
  }
  if (recording) {
    recording.save(0, x);
    recording.save(1, mean);
    recording.save(2, rstd);
    recording.save(3, weight);
    recording.output(y);
  }
  return y;
}

Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                     const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool use_input_stats,
                     double momentum, double eps, bool) {
  // Each picture is a batch of its own: fold the batch into the channels.
  const std::int64_t n = input.size(0);
  const std::int64_t c = input.size(1);
  const auto repeated = [&](const std::optional<Tensor>& tensor) {
    return tensor && tensor->defined() ? std::optional<Tensor>(tensor->repeat(n)) : std::optional<Tensor>();
  };
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes[0] = 1;
  sizes[1] = n * c;
  const std::optional<Tensor> mean = repeated(running_mean);
  const std::optional<Tensor> variance = repeated(running_var);
  const Tensor result = batch_norm(input.contiguous().view(sizes), repeated(weight), repeated(bias), mean, variance, use_input_stats, momentum, eps);
  if (use_input_stats && mean) {
    NoGradGuard no_grad;
    running_mean->copy_(mean->view({n, c}).mean(0));
    running_var->copy_(variance->view({n, c}).mean(0));
  }
  return result.view(input.sizes());
}

// --- dropout --------------------------------------------------------------------------------------------------------------------

namespace {

Tensor noise(const Tensor& input, double p, bool features) {
  NoGradGuard no_grad;
  if (!(p >= 0 && p <= 1)) throw Error("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
  if (!features) return empty_like(input).bernoulli_(1 - p);
  if (input.dim() < 2) throw Error("Feature dropout requires at least 2 dimensions in the input");
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return input.new_empty(sizes).bernoulli_(1 - p);
}

Tensor dropped(const Tensor& input, double p, bool train, bool features, bool alpha, bool inplace) {
  if (!(p >= 0 && p <= 1)) throw Error("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return inplace ? input.mul_(0) : input.mul(0);
  const Tensor mask = noise(input, p, features);
  if (!alpha) {
    {
      NoGradGuard no_grad;
      mask.div_(1 - p);
    }
    return inplace ? input.mul_(mask) : input.mul(mask);
  }
  constexpr double kAlpha = 1.7580993408473766;
  const double a = 1.0 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  Tensor b;
  {
    NoGradGuard no_grad;
    b = mask.sub(1).mul_(kAlpha * a).add_(kAlpha * a * p);
    mask.mul_(a);
  }
  return inplace ? input.mul_(mask).add_(b) : input.mul(mask).add(b);
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) { return dropped(input, p, train, false, false, false); }
Tensor& dropout_(Tensor& input, double p, bool train) { dropped(input, p, train, false, false, true); return input; }
Tensor feature_dropout(const Tensor& input, double p, bool train) { return dropped(input, p, train, true, false, false); }
Tensor& feature_dropout_(Tensor& input, double p, bool train) { dropped(input, p, train, true, false, true); return input; }
Tensor alpha_dropout(const Tensor& input, double p, bool train) { return dropped(input, p, train, false, true, false); }
Tensor& alpha_dropout_(Tensor& input, double p, bool train) { dropped(input, p, train, false, true, true); return input; }
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) { return dropped(input, p, train, true, true, false); }
Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train) { dropped(input, p, train, true, true, true); return input; }

}  // namespace tenon
