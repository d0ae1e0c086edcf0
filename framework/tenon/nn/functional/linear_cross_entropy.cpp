// Cross entropy of a linear map, chunk by chunk, forward and backward.
#include <tenon/nn/functional/linear_cross_entropy.h>

#include <tenon/autograd/autocast.h>
#include <tenon/autograd/engine.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/core/error.h>
#include <tenon/ops/ops.h>

#include <algorithm>

namespace tenon::nn::functional {
namespace {

constexpr std::int64_t kSum = 2;  // as in at::Reduction

/// What of the arguments is not a tensor.
struct ChunkedArguments {
  std::int64_t chunks, ignore_index;
  double label_smoothing;
  bool widens;  ///< logits of 16 bits have their loss in float32, as under autocast

  Tensor loss(const Tensor& logits, const Tensor& target) const {
    return tenon::cross_entropy_loss(widens ? logits.to(Dtype::kFloat32) : logits, target, {}, kSum, ignore_index,
                                     label_smoothing);
  }
  /// Calls visit(first, count) for each chunk of n samples.
  template <class Visit>
  void each(std::int64_t n, Visit visit) const {
    for (std::int64_t i = 0; i < chunks; ++i) {
      const std::int64_t first = n * i / chunks, end = n * (i + 1) / chunks;
      if (end > first) visit(first, end - first);
    }
  }
};

std::optional<Tensor> optional(const Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; }

/// The sum over the samples of x (N, in).
struct ChunkedLoss : autograd::Function<ChunkedLoss> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Tensor& target, const ChunkedArguments& arguments) {
    context->save_for_backward({x, weight, bias, target});
    context->saved_data["chunks"] = arguments.chunks;
    context->saved_data["ignore_index"] = arguments.ignore_index;
    context->saved_data["label_smoothing"] = arguments.label_smoothing;
    context->saved_data["widens"] = arguments.widens;
    Tensor sum;
    arguments.each(x.size(0), [&](std::int64_t first, std::int64_t count) {
      const Tensor logits = tenon::linear(x.narrow(0, first, count), weight, optional(bias));
      const Tensor loss = arguments.loss(logits, target.narrow(0, first, count));
      sum = sum.defined() ? sum + loss : loss;
    });
    return sum;
  }

  static autograd::variable_list backward(autograd::AutogradContext* context, autograd::variable_list gradients) {
    if (GradMode::is_enabled())
      throw Error("linear_cross_entropy has no second derivative: use cross_entropy(linear(input, weight), target)");
    const autograd::variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &target = saved[3];
    const ChunkedArguments arguments{.chunks = context->saved_data["chunks"].toInt(),
                                     .ignore_index = context->saved_data["ignore_index"].toInt(),
                                     .label_smoothing = context->saved_data["label_smoothing"].toDouble(),
                                     .widens = context->saved_data["widens"].toBool()};
    Tensor dx, dweight, dbias;
    if (context->needs_input_grad(0)) dx = tenon::empty_like(x);
    arguments.each(x.size(0), [&](std::int64_t first, std::int64_t count) {
      const Tensor part = x.narrow(0, first, count);
      Tensor dlogits;
      {
        const Tensor logits = tenon::linear(part, weight, optional(bias)).detach().requires_grad_();
        Tensor loss;
        {
          const AutoGradMode records(true);
          loss = arguments.loss(logits, target.narrow(0, first, count));
        }
        dlogits = autograd::grad({loss}, {logits}, {gradients[0]})[0];
      }
      if (dx.defined()) dx.narrow(0, first, count).copy_(dlogits.mm(weight));
      if (context->needs_input_grad(1)) {
        if (dweight.defined()) {
          dweight.addmm_(dlogits.t(), part);
        } else {
          dweight = dlogits.t().mm(part);
        }
      }
      if (bias.defined() && context->needs_input_grad(2))
        dbias = dbias.defined() ? dbias.add_(dlogits.sum(0)) : dlogits.sum(0);
    });
    return {dx, dweight, dbias, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                            const LinearCrossEntropyFuncOptions& o) {
  if (o.chunks() < 1) throw Error("linear_cross_entropy: at least one chunk is needed");
  const Tensor x = input.reshape({-1, input.size(-1)}), classes = target.reshape({-1});
  if (classes.size(0) != x.size(0) || x.size(0) == 0) {
    throw Error("linear_cross_entropy: " + std::to_string(x.size(0)) + " samples and " +
                std::to_string(classes.size(0)) + " targets");
  }
  // Autocast acts out here: it is not there any more when backward computes the logits again.
  const DeviceType kind = x.device().type();
  const bool mixes = autocast::is_autocast_enabled(kind);
  const auto cast = [&](const Tensor& tensor) {
    return mixes && tensor.defined() ? autocast::cached_cast(autocast::get_autocast_dtype(kind), tensor, kind) : tensor;
  };
  Tensor sum = ChunkedLoss::apply(cast(x), cast(weight), cast(o.bias()), classes,
                                  ChunkedArguments{.chunks = std::min(o.chunks(), x.size(0)),
                                                   .ignore_index = o.ignore_index(),
                                                   .label_smoothing = o.label_smoothing(),
                                                   .widens = mixes});
  if (!o.mean()) return sum;
  return sum / classes.ne(o.ignore_index()).sum().to(sum.scalar_type());
}

}  // namespace tenon::nn::functional
