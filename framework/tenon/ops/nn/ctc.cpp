// CTC by the forward and backward recursions over the target with a blank around each element, written with other
// operators: each time step is a handful of operators on (N, S). Only the forward variables are kept for the backward
// pass.
#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/nn/ctc.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/loss_reduction.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>
#include <tenon/tensor/literal.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tenon {

using namespace ops;

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Targets with blanks around, padded to S = 2 * longest + 1, and what follows from them. On the device.
struct Alignment {
  Tensor labels;       ///< (N, S) int64
  Tensor skips;        ///< (N, S) bool: s may be reached from s - 2
  Tensor last_step;    ///< (N) int64: input length - 1, at least 0
  Tensor last_state;   ///< (N, 1) int64: 2 * target length
  Tensor empty_input;  ///< (N) bool
};

Alignment align(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths, IntArrayRef target_lengths,
                std::int64_t blank) {
  const std::int64_t steps = log_probs.size(0), batch = log_probs.size(1), classes = log_probs.size(2);
  if (blank < 0 || blank >= classes) {
    throw Error(fmt::format("ctc_loss: blank must be in label range, got {} of {} classes", blank, classes));
  }
  const auto n_lengths = static_cast<std::size_t>(batch);
  if (input_lengths.size() != n_lengths) {
    throw Error(
        fmt::format("ctc_loss: input_lengths must be of size batch_size {}, got {}", batch, input_lengths.size()));
  }
  if (target_lengths.size() != n_lengths) {
    throw Error(
        fmt::format("ctc_loss: target_lengths must be of size batch_size {}, got {}", batch, target_lengths.size()));
  }
  std::int64_t longest = 0, total = 0;
  for (std::size_t n = 0; n < n_lengths; ++n) {
    if (target_lengths[n] < 0)
      throw Error(fmt::format("ctc_loss: target_lengths[{}] is {}, below 0", n, target_lengths[n]));
    if (input_lengths[n] < 0 || input_lengths[n] > steps) {
      throw Error(
          fmt::format("Expected input_lengths to have value at most {}, but got value {} (while checking arguments for "
                      "ctc_loss)",
                      steps, input_lengths[n]));
    }
    longest = std::max(longest, target_lengths[n]);
    total += target_lengths[n];
  }
  const bool padded = targets.dim() == 2;
  if (padded && targets.size(1) < longest) {
    throw Error(
        fmt::format("Expected tensor to have size at least {} at dimension 1, but got size {} for the targets (while "
                    "checking arguments for ctc_loss)",
                    longest, targets.size(1)));
  }
  if (!padded && targets.numel() != total) {
    throw Error(
        fmt::format("Expected tensor to have size {} at dimension 0, but got size {} for the targets (while checking "
                    "arguments for ctc_loss)",
                    total, targets.numel()));
  }

  check_has_values("ctc_loss", targets, "the path through the targets");
  const Tensor host = targets.to(kInt64).cpu().contiguous();
  const std::int64_t* values = host.numel() > 0 ? host.data_ptr<std::int64_t>() : nullptr;
  const std::int64_t states = 2 * longest + 1;
  std::vector<std::int64_t> labels(static_cast<std::size_t>(batch * states), blank), skips(labels.size(), 0), step,
      state, none;
  std::int64_t read = 0;
  for (std::int64_t n = 0; n < batch; ++n) {
    const std::int64_t length = target_lengths[static_cast<std::size_t>(n)];
    if (padded) read = n * targets.size(1);
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t label = values[read++];
      if (label < 0 || label >= classes) {
        throw Error(
            fmt::format("ctc_loss: target {} of batch element {} is out of range for {} classes", label, n, classes));
      }
      const auto at = static_cast<std::size_t>(n * states + 2 * i + 1);
      labels[at] = label;
      skips[at] = i > 0 && label != labels[at - 2];  // also where it is the blank itself, as in PyTorch
    }
    const std::int64_t inputs = input_lengths[static_cast<std::size_t>(n)];
    step.push_back(std::max<std::int64_t>(inputs - 1, 0));
    none.push_back(inputs == 0);
    state.push_back(2 * length);
  }
  const auto on_device = [&](const std::vector<std::int64_t>& list) {
    return tenon::tensor(list, TensorOptions(kInt64)).to(log_probs.device());
  };
  return {on_device(labels).view({batch, states}), on_device(skips).view({batch, states}).ne(0), on_device(step),
          on_device(state).unsqueeze(1), on_device(none).ne(0)};
}

/// log(exp(a) + exp(b) + exp(c)) where any may be minus infinity.
Tensor log_sum(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor largest = tenon::maximum(tenon::maximum(a, b), c);
  const Tensor shift = largest.masked_fill(largest.eq(kNever), 0);
  return ((a - shift).exp_() + (b - shift).exp_() + (c - shift).exp_()).log_() + shift;
}

/// Column s of the result is column s - count; what moves in is impossible. Negative counts move the other way.
Tensor shifted(const Tensor& x, std::int64_t count) {
  const std::int64_t states = x.size(1), by = std::min(std::abs(count), states);
  Tensor y = tenon::full_like(x, kNever);
  if (by < states) {
    const std::int64_t to = count > 0 ? by : 0, from = count > 0 ? 0 : by;
    y.narrow(1, to, states - by).copy_(x.narrow(1, from, states - by));
  }
  return y;
}

/// log_probs of the label of every state: (T, N, S).
Tensor emissions(const Tensor& log_probs, const Alignment& alignment) {
  const Tensor& labels = alignment.labels;
  return log_probs.gather(2, labels.unsqueeze(0).expand({log_probs.size(0), labels.size(0), labels.size(1)}));
}

/// alpha[t, n, s]: the log probability of all beginnings that are in state s after step t.
Tensor forward_variables(const Tensor& emitted, const Alignment& alignment) {
  Tensor alpha = tenon::full_like(emitted, kNever);
  const std::int64_t states = std::min<std::int64_t>(2, emitted.size(2));
  alpha.select(0, 0).narrow(1, 0, states).copy_(emitted.select(0, 0).narrow(1, 0, states));
  for (std::int64_t t = 1; t < emitted.size(0); ++t) {
    const Tensor before = alpha.select(0, t - 1);
    const Tensor skipped = tenon::where(alignment.skips, shifted(before, 2), kNever);
    alpha.select(0, t).copy_(log_sum(before, shifted(before, 1), skipped) + emitted.select(0, t));
  }
  return alpha;
}

/// The states in which an alignment may end: the last blank, and the last element where there is one. (N, S) bool
Tensor final_states(const Alignment& alignment) {
  const Tensor& last = alignment.last_state;
  const Tensor state = tenon::arange(alignment.labels.size(1), TensorOptions(kInt64))
                           .to(last.device())
                           .unsqueeze(0)
                           .expand_as(alignment.labels);
  return tenon::logical_or(state.eq(last), tenon::logical_and(state.eq(last - 1), last.gt(0)));
}

Tensor negative_log_likelihood(const Tensor& alpha, const Alignment& alignment) {
  const std::int64_t batch = alpha.size(1), states = alpha.size(2);
  const Tensor at_end = alpha.gather(0, alignment.last_step.view({1, batch, 1}).expand({1, batch, states})).squeeze(0);
  const Tensor ends = tenon::where(final_states(alignment), at_end, kNever);
  const Tensor largest = std::get<0>(ends.max(1, /*keepdim=*/true));
  const Tensor shift = largest.masked_fill(largest.eq(kNever), 0);
  const Tensor loss = -((ends - shift).exp_().sum({1}).log_() + shift.squeeze(1));
  // Without input only the empty target is possible.
  const Tensor nothing = tenon::where(alignment.last_state.squeeze(1).eq(0), tenon::zeros_like(loss), -kNever);
  return tenon::where(alignment.empty_input, nothing, loss);
}

/// The gradient of the sum of losses weighted by `scale` (N): for each step that an input has, the probabilities
/// themselves less the posterior of each state, summed by label. The first part is PyTorch's: it takes log_probs for
/// normalised, which makes this the gradient of the logits before log_softmax, through which it passes unchanged.
Tensor log_probs_gradient(const Tensor& log_probs, const Tensor& alpha, const Tensor& loss, const Alignment& alignment,
                          const Tensor& scale, bool zero_infinity) {
  const Tensor emitted = emissions(log_probs, alignment);
  const Tensor ends = final_states(alignment);
  const Tensor skips_ahead = shifted(alignment.skips.to(log_probs.scalar_type()), -2).eq(1);
  Tensor posterior = tenon::empty_like(alpha);
  // beta[n, s]: the log probability of all endings after step t from state s.
  Tensor beta = tenon::full_like(alpha.select(0, 0), kNever);
  for (std::int64_t t = alpha.size(0) - 1; t >= 0; --t) {
    if (t + 1 < alpha.size(0)) {
      const Tensor ahead = beta + emitted.select(0, t + 1);
      beta = log_sum(ahead, shifted(ahead, -1), tenon::where(skips_ahead, shifted(ahead, -2), kNever));
    }
    const Tensor begins = tenon::logical_and(ends, alignment.last_step.eq(t).unsqueeze(1));
    beta = tenon::where(begins, tenon::zeros_like(beta), beta);
    posterior.select(0, t).copy_((alpha.select(0, t) + beta + loss.unsqueeze(1)).exp_());
  }
  Tensor factor = -scale;
  if (zero_infinity) {
    const Tensor hopeless = tenon::isinf(loss);
    factor = factor.masked_fill(hopeless, 0);
    posterior = tenon::where(hopeless.view({1, -1, 1}), tenon::zeros_like(posterior), posterior);
  }
  posterior = tenon::where(alignment.empty_input.view({1, -1, 1}), tenon::zeros_like(posterior), posterior);
  posterior.mul_(factor.view({1, -1, 1}));
  const Tensor labels = alignment.labels.unsqueeze(0).expand_as(posterior);
  const Tensor steps = tenon::arange(log_probs.size(0), TensorOptions(kInt64).device(log_probs.device())).unsqueeze(1);
  const Tensor absent = tenon::logical_or(steps.gt(alignment.last_step), alignment.empty_input);
  Tensor gradient = log_probs.exp();
  // Without an alignment the loss is infinite and there is no gradient: NaN, as in PyTorch.
  if (!zero_infinity) gradient.add_((loss - loss).view({1, -1, 1}));  // NOLINT(misc-redundant-expression)
  gradient.mul_(factor.neg().view({1, -1, 1})).scatter_add_(2, labels, posterior);
  return as_fresh(gradient.masked_fill_(absent.unsqueeze(2), 0));
}

Tensor losses(const Tensor& log_probs, const Alignment& alignment, bool zero_infinity) {
  Recording recording = record<3>("CtcLossBackward0", {&log_probs}, [alignment, zero_infinity](Backward& b) {
    const Tensor log_probs = b.saved(0), scale = b.grad();
    // With create_graph the gradient requires a gradient itself, but backward through it throws Error.
    const Recording refused = record<0>("NotImplemented", {&scale, &log_probs}, [](Backward&) {
      throw Error("the derivative for '_ctc_loss_backward' is not implemented");
    });
    NoGradGuard no_grad;
    Tensor gradient = log_probs_gradient(log_probs, b.saved(1), b.saved(2), alignment, scale, zero_infinity);
    if (refused) autograd::set_history(gradient, refused.node());
    b.set(0, std::move(gradient));
  });
  Tensor loss, alpha;
  {
    NoGradGuard no_grad;
    alpha = forward_variables(emissions(log_probs, alignment), alignment);
    loss = negative_log_likelihood(alpha, alignment);
  }
  if (recording) {
    recording.save(0, log_probs);
    recording.save(1, alpha);
    recording.save(2, loss.clone());
  }
  recording.output(loss);
  return loss;
}

void check_integral(const char* name, const Tensor& lengths) {
  if (is_floating_point(lengths.scalar_type()) || lengths.scalar_type() == kBool) {
    throw Error(fmt::format("{} must be integral", name));
  }
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, IntArrayRef input_lengths,
                IntArrayRef target_lengths, std::int64_t blank, std::int64_t reduction, bool zero_infinity) {
  TENON_AUTOCAST(ctc_loss, log_probabilities, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
  check_floating("ctc_loss", log_probabilities);
  const bool batched = log_probabilities.dim() == 3;
  const Tensor log_probs = batched ? log_probabilities : log_probabilities.unsqueeze(1);
  if (log_probs.dim() != 3 || log_probs.numel() == 0) {
    throw Error(fmt::format("ctc_loss: log_probs must be (T, N, C) or (T, C) and not empty, got {}",
                            to_string(log_probabilities.sizes())));
  }
  const Alignment alignment = align(log_probs, targets, input_lengths, target_lengths, blank);
  Tensor loss = losses(log_probs, alignment, zero_infinity);
  if (zero_infinity) loss = tenon::where(tenon::isinf(loss), tenon::zeros_like(loss), loss);
  if (loss_reduction("ctc_loss", reduction) == LossReduction::kMean) {
    const Tensor elements = (alignment.last_state.squeeze(1) / 2).to(loss.scalar_type()).clamp_min(1);
    return (loss / elements).mean();
  }
  return reduced("ctc_loss", batched || reduction != 0 ? loss : loss.squeeze(0), reduction);
}

Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, std::int64_t blank, std::int64_t reduction, bool zero_infinity) {
  TENON_AUTOCAST(ctc_loss, log_probabilities, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
  check_integral("input_lengths", input_lengths);
  check_integral("target_lengths", target_lengths);
  for (const Tensor* one : {&input_lengths, &target_lengths}) {
    check_has_values("ctc_loss", *one, "the path through the targets");
  }
  const Tensor inputs = input_lengths.to(kInt64).cpu().contiguous().view({-1});
  const Tensor lengths = target_lengths.to(kInt64).cpu().contiguous().view({-1});
  return ctc_loss(log_probabilities, targets,
                  IntArrayRef(inputs.data_ptr<std::int64_t>(), static_cast<std::size_t>(inputs.numel())),
                  IntArrayRef(lengths.data_ptr<std::int64_t>(), static_cast<std::size_t>(lengths.numel())), blank,
                  reduction, zero_infinity);
}

}  // namespace tenon
