// A recurrent layer as one operator: input products of all steps at once, one small product and one kernel per step,
// and in the backward one product for each weight. Declared in recurrence.h.
//
// Saved are the input, the output, the gates and (LSTM) the cells. The second derivative is that of recurrence.cpp.
#include <tenon/autograd/autograd.h>
#include <tenon/autograd/kept_results.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/recurrent.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/nn/recurrent/recurrence.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/support.h>

#include <algorithm>

namespace tenon::ops {

namespace {

/// out = a b + beta out.
void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b, double beta) {
  const MatmulAttributes attributes{.alpha = 1, .beta = beta};
  run(TENON_OP("matmul"), state_of(out), {view_of(out)},
      {view_of(a), view_of(b), beta != 0 ? view_of(out) : undefined_view()}, &attributes);
}

bool has_kernels(Recurrence kind, DeviceType device) {
  const auto both = [device](OperatorId forward, OperatorId backward) {
    return find_kernel(device, forward) != nullptr && find_kernel(device, backward) != nullptr;
  };
  switch (kind) {
    case Recurrence::kLstm:
      return both(TENON_OP("lstm_cell"), TENON_OP("lstm_cell_backward"));
    case Recurrence::kGru:
      return both(TENON_OP("gru_cell"), TENON_OP("gru_cell_backward"));
    default:
      return both(TENON_OP("rnn_cell"), TENON_OP("rnn_cell_backward"));
  }
}

/// What both passes know of a layer: its shape, and where each step's predecessor lies.
struct Layer {
  Recurrence kind;
  Steps steps;
  bool reverse;

  std::int64_t step_at(std::int64_t i) const { return reverse ? steps.count() - 1 - i : i; }
  std::int64_t rows(std::int64_t t) const { return steps.sizes[static_cast<std::size_t>(t)]; }
  Tensor part(const Tensor& packed, std::int64_t t) const {
    return packed.narrow(0, steps.offsets[static_cast<std::size_t>(t)], rows(t));
  }
  bool is_plain() const { return steps.sizes.front() == steps.sizes.back(); }

  /// The state before step t: `packed` holds it after every step, `initial` (B, *) before the first.
  Tensor before(const Tensor& packed, const Tensor& initial, std::int64_t t) const {
    const std::int64_t n = rows(t);
    if (!reverse) return t == 0 ? initial.narrow(0, 0, n) : part(packed, t - 1).narrow(0, 0, n);
    if (t + 1 == steps.count()) return initial.narrow(0, 0, n);
    const std::int64_t running = rows(t + 1);
    if (running == n) return part(packed, t + 1);
    return cat({part(packed, t + 1), initial.narrow(0, running, n - running)});  // shorter sequences begin here
  }
  /// The states before all steps, packed.
  Tensor all_before(const Tensor& packed, const Tensor& initial) const {
    std::vector<Tensor> parts;
    for (std::int64_t t = 0; t < steps.count(); ++t) parts.push_back(before(packed, initial, t));
    return cat(parts);
  }
  /// The state after the last step of each sequence: rows of steps where sequences end.
  Tensor last(const Tensor& packed) const {
    if (reverse) return part(packed, 0);
    std::vector<Tensor> parts;
    std::int64_t done = 0;
    for (std::int64_t t = steps.count() - 1; t >= 0; --t) {
      if (rows(t) > done) parts.push_back(part(packed, t).narrow(0, done, rows(t) - done));
      done = rows(t);
    }
    return parts.size() == 1 ? parts[0] : cat(parts);
  }
};

/// gates: LSTM activations (N, 4 H), GRU saved (N, 4 H), undefined for RNN. hidden: before the projection; else
/// undefined.
struct Forward {
  Tensor output, gates, cells, hidden;
};

Forward run_forward(const Layer& layer, const Tensor& input, const RecurrentState& initial, const RecurrentWeights& w) {
  // Kernels write gates over the sums: a checkpointed part must not keep these as results of a product.
  const autograd::KeptResultsGuard computes_all(nullptr);
  const bool is_gru = layer.kind == Recurrence::kGru;
  const std::int64_t h = w.w_ih.size(0) / gates_of(layer.kind);
  const std::int64_t total = layer.steps.rows();
  DeviceState& device = state_of(input);
  // Two biases that are only added are joined to one; a GRU multiplies its second one by the reset gate.
  const bool joined = !is_gru && w.b_ih.defined() && w.b_hh.defined();
  const Tensor bias = joined ? w.b_ih.add(w.b_hh) : is_gru || w.b_ih.defined() ? w.b_ih : w.b_hh;
  const Tensor sums = linear(input, w.w_ih, bias);
  Forward f;
  f.output = allocate_like(input, {total, initial.h.size(1)}, input.scalar_type());
  if (layer.kind == Recurrence::kLstm) {
    f.gates = sums;
    f.cells = allocate_like(input, {total, h}, input.scalar_type());
    if (w.w_hr.defined()) f.hidden = allocate_like(input, {total, h}, input.scalar_type());
  }
  if (is_gru) f.gates = allocate_like(input, {total, 4 * h}, input.scalar_type());
  const Tensor recurrent = w.w_hh.t();
  for (std::int64_t i = 0; i < layer.steps.count(); ++i) {
    const std::int64_t t = layer.step_at(i);
    const Tensor x = layer.part(sums, t);
    const Tensor y = layer.part(f.output, t);
    const Tensor previous = layer.before(f.output, initial.h, t);
    if (is_gru) {
      const Tensor u = linear(previous, w.w_hh, w.b_hh);
      run(TENON_OP("gru_cell"), device, {view_of(layer.part(f.gates, t)), view_of(y)},
          {view_of(x), view_of(u), view_of(previous)});
      continue;
    }
    multiply_into(x, previous, recurrent, 1);
    if (layer.kind == Recurrence::kLstm) {
      const Tensor c = layer.before(f.cells, initial.c, t);
      const Tensor hidden = f.hidden.defined() ? layer.part(f.hidden, t) : y;
      run(TENON_OP("lstm_cell"), device, {view_of(x), view_of(layer.part(f.cells, t)), view_of(hidden)},
          {view_of(x), view_of(c)});
      if (f.hidden.defined()) multiply_into(y, hidden, w.w_hr.t(), 0);
    } else {
      const RecurrentAttributes attributes{.relu = layer.kind == Recurrence::kRelu};
      run(TENON_OP("rnn_cell"), device, {view_of(y)}, {view_of(x)}, &attributes);
    }
  }
  return f;
}

/// Gradients: dx and du of the products with w_ih and w_hh (the same tensor but for a GRU), dprojected of projected
/// states, dh and dc of the first state.
struct BackwardPass {
  Tensor dx, du, dprojected, dh, dc;
};

/// `first_h`: the sizes of the first hidden state. Without w_hh its gradient is left out.
BackwardPass run_backward(const Layer& layer, const Forward& f, const RecurrentState& initial, const Dims& first_h,
                          const RecurrentWeights& w, const Tensor& dy, const Tensor& dlast_c) {
  const bool is_gru = layer.kind == Recurrence::kGru;
  const Tensor& like = f.gates.defined() ? f.gates : f.output;
  const Dtype dtype = like.scalar_type();
  const std::int64_t total = layer.steps.rows();
  const std::int64_t h = f.hidden.defined() ? f.hidden.size(1) : first_h[1];
  const std::int64_t sums = gates_of(layer.kind) * h;
  DeviceState& device = state_of(like);
  BackwardPass b;
  b.dx = allocate_like(like, {total, sums}, dtype);
  b.du = is_gru ? allocate_like(like, {total, sums}, dtype) : b.dx;
  if (f.hidden.defined()) b.dprojected = allocate_like(like, {total, first_h[1]}, dtype);
  b.dh = like.new_zeros(first_h);
  if (initial.c.defined()) b.dc = dlast_c.defined() ? dlast_c.clone() : initial.c.new_zeros(initial.c.sizes());
  for (std::int64_t i = layer.steps.count() - 1; i >= 0; --i) {
    const std::int64_t t = layer.step_at(i);
    const std::int64_t n = layer.rows(t);
    // Rows from n on belong to sequences that do not reach step t: their gradient is still 0, or already complete.
    const Tensor dh = b.dh.narrow(0, 0, n);
    if (dy.defined()) dh.add_(layer.part(dy, t));
    const Tensor dx = layer.part(b.dx, t);
    if (is_gru) {
      const Tensor du = layer.part(b.du, t);
      const Tensor previous = layer.before(f.output, initial.h, t);
      run(TENON_OP("gru_cell_backward"), device, {view_of(dx), view_of(du), view_of(dh)},
          {view_of(layer.part(f.gates, t)), view_of(previous), view_of(dh)});
      if (w.w_hh.defined()) multiply_into(dh, du, w.w_hh, 1);
      continue;
    }
    if (layer.kind == Recurrence::kLstm) {
      const Tensor dc = b.dc.narrow(0, 0, n);
      const Tensor c_before = layer.before(f.cells, initial.c, t);
      Tensor dhidden = dh;
      if (f.hidden.defined()) {
        layer.part(b.dprojected, t).copy_(dh);
        dhidden = dh.mm(w.w_hr);
      }
      run(TENON_OP("lstm_cell_backward"), device, {view_of(dx), view_of(dc)},
          {view_of(layer.part(f.gates, t)), view_of(c_before), view_of(layer.part(f.cells, t)), view_of(dhidden),
           view_of(dc)});
    } else {
      const RecurrentAttributes attributes{.relu = layer.kind == Recurrence::kRelu};
      run(TENON_OP("rnn_cell_backward"), device, {view_of(dx)}, {view_of(layer.part(f.output, t)), view_of(dh)},
          &attributes);
    }
    if (w.w_hh.defined()) multiply_into(dh, dx, w.w_hh, 0);
  }
  return b;
}

/// The gradient of w_hh. With sequences of one length the states before all steps lie one after the other and need no
/// copy.
Tensor recurrent_weight_gradient(const Layer& layer, const Tensor& du, const Tensor& output, const Tensor& initial) {
  const std::int64_t total = layer.steps.rows();
  const std::int64_t batch = layer.rows(0);
  if (!layer.is_plain()) return du.t().mm(layer.all_before(output, initial));
  const std::int64_t first = layer.reverse ? total - batch : 0;
  Tensor gradient = du.narrow(0, first, batch).t().mm(initial);
  if (total > batch) {
    const Tensor later = du.narrow(0, layer.reverse ? 0 : batch, total - batch);
    multiply_into(gradient, later.t(), output.narrow(0, layer.reverse ? batch : 0, total - batch), 1);
  }
  return gradient;
}

enum Input : std::size_t { kX, kH, kC, kWih, kWhh, kBih, kBhh, kWhr, kInputs };
enum Slot : std::size_t { kOutput = kInputs, kGates, kCells, kHidden, kSlots };

/// The gradient as an expression of the inputs, so that it can be differentiated again.
void differentiate_twice(const Layer& layer, Backward& b) {
  std::vector<Tensor> inputs(kInputs);
  std::vector<Tensor> wanted;
  for (std::size_t i = 0; i < kInputs; ++i) {
    const Tensor saved = b.saved(i);
    // A view of its own for each, so that a tensor which is given twice gets two gradients.
    if (saved.defined()) inputs[i] = autograd::requires_grad(saved) ? saved.view(saved.sizes()) : saved;
    if (b.needs(i) && inputs[i].defined()) wanted.push_back(inputs[i]);
  }
  RecurrentState state{inputs[kH], inputs[kC]};
  const Tensor y = run_layer_composite(layer.kind, inputs[kX], layer.steps, layer.reverse,
                                       {inputs[kWih], inputs[kWhh], inputs[kBih], inputs[kBhh], inputs[kWhr]}, state);
  std::vector<Tensor> roots, gradients;
  if (b.grad(0).defined()) {
    roots.push_back(y);
    gradients.push_back(b.grad(0));
  }
  if (state.c.defined() && b.grad(1).defined()) {
    roots.push_back(state.c);
    gradients.push_back(b.grad(1));
  }
  const auto found = autograd::grad(roots, wanted, gradients, true, true, true);
  std::size_t next = 0;
  for (std::size_t i = 0; i < kInputs; ++i) {
    if (b.needs(i) && inputs[i].defined()) b.set(i, found[next++]);
  }
}

/// Asks for what it reads alone: a second derivative reads all that is saved, and the rest may have been written to.
void differentiate(const Layer& layer, const Dims& first_h, Backward& b) {
  if (differentiating_twice()) return differentiate_twice(layer, b);
  const auto if_read = [&](bool is_read, std::size_t slot) { return is_read ? b.saved(slot) : Tensor(); };
  const bool is_gru = layer.kind == Recurrence::kGru, is_plain_rnn = gates_of(layer.kind) == 1;
  const bool has_steps = layer.steps.count() > 1;
  const RecurrentWeights w{if_read(b.needs(kX), kWih), if_read(b.needs(kH) || has_steps, kWhh), {}, {}, b.saved(kWhr)};
  const RecurrentState initial{if_read(is_gru || b.needs(kWhh), kH), b.saved(kC)};
  const Forward f{if_read(is_plain_rnn || (has_steps && (is_gru || b.needs(kWhh))), kOutput), b.saved(kGates),
                  b.saved(kCells), b.saved(kHidden)};
  const Tensor dy = b.grad(0);
  const Tensor dlast_c = initial.c.defined() ? b.grad(1) : Tensor();
  BackwardPass pass = run_backward(layer, f, initial, first_h, w, dy, dlast_c);
  if (b.needs(kX)) b.set(kX, pass.dx.mm(w.w_ih));
  if (b.needs(kH)) b.set(kH, pass.dh);
  if (b.needs(kC)) b.set(kC, pass.dc);
  if (b.needs(kWih)) b.set(kWih, pass.dx.t().mm(b.saved(kX)));
  if (b.needs(kWhh)) b.set(kWhh, recurrent_weight_gradient(layer, pass.du, f.output, initial.h));
  if (b.needs(kBih)) b.set(kBih, pass.dx.sum(0));
  if (b.needs(kBhh)) b.set(kBhh, pass.du.sum(0));
  if (b.needs(kWhr)) b.set(kWhr, pass.dprojected.t().mm(f.hidden));
}

/// Whether a copy of a first state is saved: PyTorch keeps a temporary made of it then, and it may be written to.
bool is_copied(Recurrence kind, std::size_t input, const Tensor& h, const Tensor& x, const RecurrentWeights& w) {
  if (input == kH) return kind == Recurrence::kGru && !autograd::requires_grad(w.w_hh);
  return input == kC && kind == Recurrence::kLstm && !autograd::any_requires_grad(x, h, w.w_ih, w.w_hh, w.b_ih, w.b_hh);
}

bool is_fusable(Recurrence kind, const Tensor& input, const RecurrentState& state, const RecurrentWeights& w) {
  const Dtype dtype = input.scalar_type();
  if ((dtype != kFloat32 && dtype != kFloat64) || input.dim() != 2 || input.size(0) == 0) return false;
  for (const Tensor* operand : {&state.h, &state.c, &w.w_ih, &w.w_hh, &w.b_ih, &w.b_hh, &w.w_hr}) {
    if (operand->defined() && (operand->scalar_type() != dtype || operand->device() != input.device())) return false;
  }
  return input.size(1) == w.w_ih.size(1) && state.h.size(1) == w.w_hh.size(1) &&
         has_kernels(kind, input.device().type());
}

}  // namespace

Tensor run_layer(Recurrence kind, const Tensor& input, const Steps& steps, bool reverse, const RecurrentWeights& w,
                 RecurrentState& state) {
  if (!is_fusable(kind, input, state, w)) return run_layer_composite(kind, input, steps, reverse, w, state);
  const Layer layer{kind, steps, reverse};
  const RecurrentState initial{state.h.contiguous(), dense(state.c)};
  const Tensor x = input.contiguous();
  Recording recording = record<kSlots>(
      "RecurrentLayerBackward0", {&x, &initial.h, &initial.c, &w.w_ih, &w.w_hh, &w.b_ih, &w.b_hh, &w.w_hr},
      [layer, first_h = initial.h.impl().sizes()](Backward& b) { differentiate(layer, first_h, b); });
  Forward f;
  {
    NoGradGuard no_grad;
    f = run_forward(layer, x, initial, w);
    if (state.c.defined()) state.c = layer.last(f.cells).clone();
  }
  if (recording) {
    const Tensor* inputs[] = {&x, &initial.h, &initial.c, &w.w_ih, &w.w_hh, &w.b_ih, &w.b_hh, &w.w_hr};
    for (std::size_t i = 0; i < kInputs; ++i) {
      recording.save(i, is_copied(kind, i, initial.h, x, w) ? inputs[i]->clone() : *inputs[i]);
    }
    recording.output(f.output);
    if (state.c.defined()) recording.output(state.c);
    recording.save_output(kOutput, f.output);
    recording.save(kGates, f.gates);
    recording.save(kCells, f.cells);
    recording.save(kHidden, f.hidden);
  }
  state.h = layer.last(f.output);
  return f.output;
}

}  // namespace tenon::ops
