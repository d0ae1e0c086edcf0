// Recurrent layers: each step is a cell's, packed sequences are those that run alone, and what does not fit is said.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace tenon::test {
namespace {

constexpr std::int64_t kFeatures = 3, kHidden = 4;

struct RecurrentCase {
  const char* kind;
  std::int64_t gates;
  bool has_biases, bidirectional;
  std::int64_t layers, projected;
};

Tensor drawn(const std::vector<std::int64_t>& sizes) { return randn(sizes, TensorOptions(kFloat64)).mul(0.5); }

std::vector<Tensor> weights_of(const RecurrentCase& c) {
  std::vector<Tensor> weights;
  const std::int64_t out = c.projected > 0 ? c.projected : kHidden, directions = c.bidirectional ? 2 : 1;
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      weights.push_back(drawn({c.gates * kHidden, layer == 0 ? kFeatures : out * directions}));
      weights.push_back(drawn({c.gates * kHidden, out}));
      if (c.has_biases) weights.insert(weights.end(), {drawn({c.gates * kHidden}), drawn({c.gates * kHidden})});
      if (c.projected > 0) weights.push_back(drawn({c.projected, kHidden}));
    }
  }
  return weights;
}

/// Output and last states (h, and c of an LSTM) of one layer of cells after the other.
std::vector<Tensor> by_cells(const RecurrentCase& c, Tensor input, const std::vector<Tensor>& hx,
                             const std::vector<Tensor>& weights) {
  const std::size_t each = (c.has_biases ? 4 : 2) + (c.projected > 0 ? 1 : 0);
  std::vector<std::vector<Tensor>> last(hx.size());
  std::size_t cell = 0;
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    std::vector<Tensor> sides;
    for (std::int64_t direction = 0; direction < (c.bidirectional ? 2 : 1); ++direction, ++cell) {
      const Tensor* w = &weights[cell * each];
      Tensor h = hx[0][static_cast<std::int64_t>(cell)],
             s = hx.size() > 1 ? hx[1][static_cast<std::int64_t>(cell)] : Tensor();
      std::vector<Tensor> steps(static_cast<std::size_t>(input.size(0)));
      for (std::int64_t i = 0; i < input.size(0); ++i) {
        const std::int64_t t = direction == 0 ? i : input.size(0) - 1 - i;
        Tensor x = input[t].matmul(w[0].t()), u = h.matmul(w[1].t());
        if (c.has_biases) x = x + w[2], u = u + w[3];
        if (std::string(c.kind) == "lstm") {
          const auto g = (x + u).chunk(4, 1);
          s = g[1].sigmoid() * s + g[0].sigmoid() * g[2].tanh();
          h = g[3].sigmoid() * s.tanh();
          if (c.projected > 0) h = h.matmul(w[each - 1].t());
        } else if (std::string(c.kind) == "gru") {
          const auto a = x.chunk(3, 1), b = u.chunk(3, 1);
          const Tensor reset = (a[0] + b[0]).sigmoid(), update = (a[1] + b[1]).sigmoid();
          h = (1 - update) * (a[2] + reset * b[2]).tanh() + update * h;
        } else {
          h = std::string(c.kind) == "rnn_relu" ? (x + u).relu() : (x + u).tanh();
        }
        steps[static_cast<std::size_t>(t)] = h;
      }
      sides.push_back(stack(steps));
      last[0].push_back(h);
      if (hx.size() > 1) last[1].push_back(s);
    }
    input = cat(sides, -1);
  }
  std::vector<Tensor> results{input};
  for (const auto& states : last) results.push_back(stack(states));
  return results;
}

std::vector<Tensor> as_list(const std::tuple<Tensor, Tensor>& pair) { return {std::get<0>(pair), std::get<1>(pair)}; }
std::vector<Tensor> as_list(const std::tuple<Tensor, Tensor, Tensor>& all) {
  return {std::get<0>(all), std::get<1>(all), std::get<2>(all)};
}

std::vector<Tensor> run_layers(const RecurrentCase& c, const Tensor& x, const std::vector<Tensor>& hx,
                               const std::vector<Tensor>& w, bool batch_first = false, double dropout = 0,
                               bool train = false) {
  const std::string kind = c.kind;
  if (kind == "lstm")
    return as_list(lstm(x, hx, w, c.has_biases, c.layers, dropout, train, c.bidirectional, batch_first));
  if (kind == "gru")
    return as_list(gru(x, hx[0], w, c.has_biases, c.layers, dropout, train, c.bidirectional, batch_first));
  if (kind == "rnn_tanh")
    return as_list(rnn_tanh(x, hx[0], w, c.has_biases, c.layers, dropout, train, c.bidirectional, batch_first));
  return as_list(rnn_relu(x, hx[0], w, c.has_biases, c.layers, dropout, train, c.bidirectional, batch_first));
}
std::vector<Tensor> run_packed(const RecurrentCase& c, const Tensor& x, const Tensor& sizes,
                               const std::vector<Tensor>& hx, const std::vector<Tensor>& w) {
  const std::string kind = c.kind;
  if (kind == "lstm") return as_list(lstm(x, sizes, hx, w, c.has_biases, c.layers, 0, false, c.bidirectional));
  if (kind == "gru") return as_list(gru(x, sizes, hx[0], w, c.has_biases, c.layers, 0, false, c.bidirectional));
  if (kind == "rnn_tanh")
    return as_list(rnn_tanh(x, sizes, hx[0], w, c.has_biases, c.layers, 0, false, c.bidirectional));
  return as_list(rnn_relu(x, sizes, hx[0], w, c.has_biases, c.layers, 0, false, c.bidirectional));
}

std::vector<RecurrentCase> every_case() {
  std::vector<RecurrentCase> cases;
  for (const auto& [kind, gates] :
       {std::pair("lstm", 4), std::pair("gru", 3), std::pair("rnn_tanh", 1), std::pair("rnn_relu", 1)}) {
    cases.push_back({kind, gates, true, true, 2, 0});
    cases.push_back({kind, gates, false, false, 1, 0});
  }
  cases.push_back({"lstm", 4, true, true, 2, 2});
  cases.push_back({"lstm", 4, false, false, 1, 2});
  return cases;
}

std::vector<Tensor> first_states(const RecurrentCase& c, std::int64_t batch) {
  const std::int64_t cells = c.layers * (c.bidirectional ? 2 : 1);
  std::vector<Tensor> hx{drawn({cells, batch, c.projected > 0 ? c.projected : kHidden})};
  if (std::string(c.kind) == "lstm") hx.push_back(drawn({cells, batch, kHidden}));
  return hx;
}

/// Gradients of everything where each result counts with its own weights.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& results, const std::vector<Tensor>& inputs) {
  Tensor sum;
  double phase = 0;
  for (const Tensor& result : results) {
    const Tensor term =
        (result * arange(result.numel(), result.options()).add(phase++).cos().view(result.sizes())).sum();
    sum = sum.defined() ? sum + term : term;
  }
  return autograd::grad({sum}, inputs);
}

void expect_same(const RecurrentCase& c, const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].sizes(), want[i].sizes()) << c.kind << ' ' << i;
    EXPECT_TRUE(got[i].allclose(want[i], 1e-9, 1e-9)) << c.kind << ' ' << i;
  }
}

std::vector<Tensor> leaves(std::vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) tensor = tensor.clone().requires_grad_();
  return tensors;
}

TEST(RecurrentRules, EachStepIsACellWithKernelsAndWithout) {
  manual_seed(21);
  for (const RecurrentCase& c : every_case()) {
    const std::vector<Tensor> hx = leaves(first_states(c, 2)), w = leaves(weights_of(c));
    const Tensor x = drawn({5, 2, kFeatures}).requires_grad_();
    std::vector<Tensor> inputs{x};
    inputs.insert(inputs.end(), hx.begin(), hx.end());
    inputs.insert(inputs.end(), w.begin(), w.end());
    const std::vector<Tensor> want = by_cells(c, x, hx, w), slopes = gradients_of(want, inputs);
    const auto agrees = [&] {
      const std::vector<Tensor> got = run_layers(c, x, hx, w);
      expect_same(c, got, want);
      expect_same(c, gradients_of(got, inputs), slopes);
      EXPECT_FALSE(got[0].is_view());
      expect_same(c, {run_layers(c, x.transpose(0, 1), hx, w, true)[0].transpose(0, 1)}, {want[0]});
    };
    agrees();
    const std::string op = std::string(c.kind).substr(0, 3) == "rnn" ? "rnn_cell" : std::string(c.kind) + "_cell";
    const Kernel kernel = find_kernel(kCPU, intern_operator(op));
    register_kernel(kCPU, op.c_str(), nullptr);
    agrees();
    register_kernel(kCPU, op.c_str(), kernel);
  }
}

TEST(RecurrentRules, APackedSequenceIsAsIfItRanAlone) {
  manual_seed(22);
  const std::vector<std::int64_t> lengths{4, 4, 2, 1};
  const Tensor sizes = tensor({4, 3, 2, 2});
  for (const RecurrentCase& c : every_case()) {
    const std::vector<Tensor> hx = leaves(first_states(c, 4)), w = leaves(weights_of(c));
    const Tensor padded = drawn({4, 4, kFeatures}).requires_grad_();
    std::vector<Tensor> rows;
    for (std::int64_t t = 0; t < 4; ++t) rows.push_back(padded[t].narrow(0, 0, sizes[t].item<std::int64_t>()));
    std::vector<Tensor> inputs{padded};
    inputs.insert(inputs.end(), hx.begin(), hx.end());
    inputs.insert(inputs.end(), w.begin(), w.end());
    std::vector<std::vector<Tensor>> alone;
    for (std::int64_t b = 0; b < 4; ++b) {
      std::vector<Tensor> states;
      for (const Tensor& state : hx) states.push_back(state.narrow(1, b, 1));
      alone.push_back(
          by_cells(c, padded.narrow(1, b, 1).narrow(0, 0, lengths[static_cast<std::size_t>(b)]), states, w));
    }
    std::vector<Tensor> steps, want;
    for (std::int64_t t = 0; t < 4; ++t)
      for (std::int64_t b = 0; b < sizes[t].item<std::int64_t>(); ++b)
        steps.push_back(alone[static_cast<std::size_t>(b)][0][t][0]);
    want.push_back(stack(steps));
    for (std::size_t i = 1; i <= hx.size(); ++i) {
      std::vector<Tensor> states;
      for (const auto& one : alone) states.push_back(one[i]);
      want.push_back(cat(states, 1));
    }
    const std::vector<Tensor> got = run_packed(c, cat(rows), sizes, hx, w);
    expect_same(c, got, want);
    expect_same(c, gradients_of(got, inputs), gradients_of(want, inputs));
  }
}

TEST(RecurrentRules, DropoutActsBetweenLayersAndNotBehindTheLast) {
  manual_seed(23);
  const RecurrentCase one{"rnn_tanh", 1, true, false, 1, 0}, two{"rnn_tanh", 1, true, false, 2, 0};
  const std::vector<Tensor> w = weights_of(two), hx = first_states(two, 2);
  const Tensor x = drawn({5, 2, kFeatures});
  const std::vector<Tensor> first{w.begin(), w.begin() + 4}, state{hx[0].narrow(0, 0, 1)};
  EXPECT_TRUE(run_layers(one, x, state, first, false, 0.9, true)[0].equal(run_layers(one, x, state, first)[0]));
  EXPECT_TRUE(run_layers(two, x, hx, w, false, 0.9, false)[0].equal(run_layers(two, x, hx, w)[0]))
      << "not while evaluating";
  const Tensor without = by_cells({"rnn_tanh", 1, true, false, 1, 0}, zeros({5, 2, kHidden}, kFloat64),
                                  {hx[0].narrow(0, 1, 1)}, {w.begin() + 4, w.end()})[0];
  EXPECT_TRUE(run_layers(two, x, hx, w, false, 1, true)[0].allclose(without)) << "the second layer sees zeros";
}

TEST(RecurrentRules, CellsGiveStatesOfTheirOwn) {
  manual_seed(24);
  const RecurrentCase c{"lstm", 4, true, false, 1, 0};
  const std::vector<Tensor> w = weights_of(c);
  const Tensor x = drawn({2, kFeatures}).requires_grad_(), h = drawn({2, kHidden}), s = drawn({2, kHidden});
  auto [next, cell] = lstm_cell(x, {h, s}, w[0], w[1], w[2], w[3]);
  const std::vector<Tensor> want = by_cells(c, x.unsqueeze(0), {h.unsqueeze(0), s.unsqueeze(0)}, w);
  EXPECT_TRUE(next.allclose(want[1][0]) && cell.allclose(want[2][0]));
  EXPECT_FALSE(next.is_view() || cell.is_view());
  EXPECT_NO_THROW(next.mul(1).add_(1).sum().backward({}, true));
}

TEST(RecurrentRules, WhatDoesNotFitIsSaid) {
  const RecurrentCase c{"lstm", 4, true, true, 2, 0};
  const std::vector<Tensor> w = weights_of(c), hx = first_states(c, 2);
  const Tensor x = zeros({5, 2, kFeatures}, kFloat64);
  EXPECT_EQ(message_of([&] {
              run_layers(c, x, hx, {w.begin(), w.end() - 1});
            }),
            "rnn: 2 layers in 2 direction(s) with 4 tensors each need 16 weights, got 15");
  EXPECT_EQ(message_of([&] {
              run_layers({"lstm", 4, false, false, 2, 0}, x, hx, {w.begin(), w.begin() + 3});
            }),
            "rnn: 2 layers in 1 direction(s) with 2 tensors each need 4 weights, got 3");
  EXPECT_EQ(message_of([&] { run_layers(c, x[0], hx, w); }), "rnn: input must have 3 dimensions, got 2");
  EXPECT_EQ(message_of([&] { run_layers(c, x.narrow(0, 0, 0), hx, w); }),
            "Expected sequence length to be larger than 0 in RNN");
  EXPECT_EQ(message_of([&] { run_layers(c, x, {hx[0]}, w); }), "lstm expects two hidden states, got 1");
  const Tensor rows = zeros({3, kFeatures}, kFloat64);
  EXPECT_EQ(message_of([&] {
              run_packed(c, rows, tensor({1, 2}), hx, w);
            }),
            "batch_sizes must fall: step 1 has 2 rows after 1");
  EXPECT_EQ(message_of([&] { run_packed(c, rows, zeros({0}, kInt64), hx, w); }),
            "Expected sequence length to be larger than 0 in RNN");
  EXPECT_EQ(message_of([&] {
              run_packed(c, rows, tensor({2, 1}).to(TensorOptions(Device("simulated:0"))), hx, w);
            }),
            "batch_sizes should always be on CPU");
  const Tensor h = zeros({2, kHidden}, kFloat64), cell_x = zeros({2, kFeatures}, kFloat64);
  const auto cell = [&](const Tensor& input, const Tensor& one, const Tensor& other) {
    return message_of([&] { lstm_cell(input, {one, other}, w[0], w[1], w[2], w[3]); });
  };
  EXPECT_EQ(cell(x, h, h), "a recurrent cell expects an input (batch, features), got [5, 2, 3]");
  EXPECT_EQ(cell(zeros({2, 5}, kFloat64), h, h), "input has inconsistent input_size: got 5 expected 3");
  EXPECT_EQ(cell(cell_x, h[0], h), "a recurrent cell expects a state (batch, hidden), got [4]");
  EXPECT_EQ(cell(cell_x, zeros({3, kHidden}, kFloat64), h), "Input batch size 2 doesn't match hidden0 batch size 3");
  EXPECT_EQ(cell(cell_x, h, zeros({3, kHidden}, kFloat64)), "Input batch size 2 doesn't match hidden1 batch size 3");
  EXPECT_EQ(cell(cell_x, zeros({2, 5}, kFloat64), h), "hidden0 has inconsistent hidden_size: got 5, expected 4");
  EXPECT_EQ(cell(cell_x, h, zeros({2, 5}, kFloat64)), "hidden1 has inconsistent hidden_size: got 5, expected 4");
  EXPECT_THROW(lstm_cell(cell_x, {h}, w[0], w[1], w[2], w[3]), Error);
}

TEST(PackingRules, SequencesArePaddedToTheLongestAndCutAgain) {
  const Tensor a = tensor({1., 2., 3.}), b = tensor({4.});
  EXPECT_TRUE(pad_sequence({a, b}, true, 9).equal(tensor({{1., 2., 3.}, {4., 9., 9.}})));
  EXPECT_TRUE(pad_sequence({b, a}, false, 0).equal(tensor({{4., 1.}, {0., 2.}, {0., 3.}})));
  EXPECT_EQ(pad_sequence({a.to(kInt32), b}, true, 0).scalar_type(), kInt32);
  EXPECT_EQ(message_of([] { pad_sequence({}, true, 0); }), "pad_sequence: received an empty list of sequences");
  EXPECT_EQ(message_of([] { pad_sequence({tensor(1.)}, true, 0); }),
            "pad_sequence: expected sequences of at least one dimension, but got a number");
  EXPECT_EQ(
      message_of([&] {
        pad_sequence({ones({2, 3}), ones({2, 4})}, true, 0);
      }),
      "pad_sequence: The size of tensor 1 ([2, 4]) must match that of tensor 0 ([2, 3]) but for the first dimension");
  EXPECT_THROW(pad_sequence({a, ones({2, 3})}, true, 0), Error);
  const Tensor x = arange(12.).view({3, 4, 1});
  const auto [data, sizes] = _pack_padded_sequence(x, tensor({3, 2, 2, 1}), false);
  EXPECT_TRUE(sizes.equal(tensor({4, 3, 1})));
  EXPECT_TRUE(data.flatten().equal(tensor({0., 1., 2., 3., 4., 5., 6., 8.})));
  const auto [padded, lengths] = _pad_packed_sequence(data, sizes, false, -1, 0);
  EXPECT_TRUE(lengths.equal(tensor({3, 2, 2, 1})));
  EXPECT_TRUE(padded.squeeze(2).equal(tensor({{0., 1., 2., 3.}, {4., 5., 6., -1.}, {8., -1., -1., -1.}})));
  EXPECT_EQ(std::get<0>(_pad_packed_sequence(data, sizes, true, 0, 5)).sizes().vec(),
            (std::vector<std::int64_t>{4, 5, 1}));
  EXPECT_TRUE(std::get<0>(_pack_padded_sequence(x.transpose(0, 1), tensor({3, 2, 2, 1}), true)).equal(data));
  const auto pack = [&](const Tensor& given) { return message_of([&] { _pack_padded_sequence(x, given, false); }); };
  EXPECT_EQ(message_of([] {
              _pack_padded_sequence(empty({0, 2, 1}), tensor({0, 0}), false);
            }),
            "Cannot pack empty tensors.");
  EXPECT_EQ(pack(tensor({3, 2})), "Expected `len(lengths)` to be equal to batch_size, but got 2 (batch_size=4)");
  EXPECT_EQ(pack(tensor({3, 2, 1, 0})),
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  EXPECT_EQ(pack(tensor({4, 2, 1, 1})), "Expected lengths of at most 3, the steps of the input, but got 4");
  EXPECT_NE(pack(tensor({2, 3, 1, 1})), "");
  EXPECT_EQ(message_of([&] { _pad_packed_sequence(data, zeros({0}, kInt64), false, 0, 0); }),
            "pad_packed_sequence: the packed sequence has no steps");
}

}  // namespace
}  // namespace tenon::test
