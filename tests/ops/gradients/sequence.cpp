// Rows of the gradient table: recurrent layers and attention, and what they must do beside having the right
// derivatives.
#include <tenon/ops/nn/recurrent/recurrence.h>

#include "gradient_case.h"

namespace tenon::test {
namespace {

using List = std::vector<Tensor>;
using Sizes = std::vector<std::int64_t>;

/// Outputs and last states of one layer in one row. Inputs: x, h, c of an LSTM, w_ih, w_hh, b_ih, b_hh, w_hr of a
/// projected one.
Tensor layer(ops::Recurrence kind, const Sizes& steps, bool reverse, const List& x, bool composite = false) {
  const bool cells = kind == ops::Recurrence::kLstm;
  std::size_t next = 1;
  ops::RecurrentState state{x[next++], {}};
  if (cells) state.c = x[next++];
  ops::RecurrentWeights weights{x[next], x[next + 1], x[next + 2], x[next + 3], {}};
  if (x.size() > next + 4) weights.w_hr = x[next + 4];
  const auto run = composite ? ops::run_layer_composite : ops::run_layer;
  const Tensor y = run(kind, x[0], ops::Steps(steps), reverse, weights, state);
  List parts{y.reshape({-1}), state.h.reshape({-1})};
  if (cells) parts.push_back(state.c.reshape({-1}));
  return cat(parts);
}

/// Input size 3, state size 2; a projected LSTM has 3 cells.
std::vector<GradientInput> layer_inputs(ops::Recurrence kind, std::int64_t rows, bool projected) {
  const std::int64_t hidden = projected ? 3 : 2;
  const std::int64_t gates = ops::gates_of(kind) * hidden;
  std::vector<GradientInput> inputs{{{rows, 3}, -1, 1}, {{2, 2}, -1, 1}};
  if (kind == ops::Recurrence::kLstm) inputs.push_back({{2, hidden}, -1, 1});
  for (const Sizes& sizes : {Sizes{gates, 3}, Sizes{gates, 2}, Sizes{gates}, Sizes{gates}})
    inputs.push_back({sizes, -1, 1});
  if (projected) inputs.push_back({{2, hidden}, -1, 1});
  return inputs;
}

GradientCase layer_case(const std::string& name, ops::Recurrence kind, const Sizes& steps, bool reverse,
                        bool projected = false) {
  std::int64_t rows = 0;
  for (const std::int64_t size : steps) rows += size;
  std::vector<GradientInput> inputs = layer_inputs(kind, rows, projected);
  std::vector<Sizes> empty;
  for (const GradientInput& input : inputs) empty.push_back(input.sizes);
  const std::size_t states = kind == ops::Recurrence::kLstm ? 3 : 2;
  for (std::size_t i = 0; i < states; ++i) empty[i][0] = 0;
  return of_tensors(
             name, [=](const List& x) { return layer(kind, steps, reverse, x); }, std::move(inputs))
      .empty(std::move(empty), [=](const List& x) { return layer(kind, Sizes(steps.size(), 0), reverse, x); });
}

GradientCase attention_case(const std::string& name, const Tensor& mask, bool causal) {
  return of_tensors(name,
                    [=](const List& x) {
                      const auto given =
                          mask.defined() && x[0].size(2) > 0 ? std::optional(mask.to(x[0].device())) : std::nullopt;
                      return scaled_dot_product_attention(x[0], x[1], x[2], given, 0, causal);
                    },
                    {{{2, 2, 3, 2}, -1, 1}, {{2, 2, 4, 2}, -1, 1}, {{2, 2, 4, 3}, -1, 1}})
      .empty({{2, 2, 0, 2}, {2, 2, 4, 2}, {2, 2, 4, 3}});
}

}  // namespace

std::vector<GradientCase> sequence_gradients() {
  using ops::Recurrence;
  std::vector<GradientCase> rows;
  struct Kind {
    const char* name;
    Recurrence kind;
    bool projected;
  };
  for (const Kind& k : {Kind{"lstm", Recurrence::kLstm, false}, Kind{"projected lstm", Recurrence::kLstm, true},
                        Kind{"gru", Recurrence::kGru, false}, Kind{"rnn tanh", Recurrence::kTanh, false}}) {
    const std::string name = k.name;
    rows.push_back(layer_case(name, k.kind, {2, 2}, false, k.projected));
    rows.push_back(layer_case(name + " reverse", k.kind, {2, 2}, true, k.projected));
    rows.push_back(layer_case(name + " packed", k.kind, {2, 1}, false, k.projected));
    rows.push_back(layer_case(name + " packed reverse", k.kind, {2, 1}, true, k.projected));
  }
  rows.push_back(layer_case("rnn relu", Recurrence::kRelu, {2, 2}, false));
  rows.push_back(attention_case("attention", {}, false));
  rows.push_back(attention_case("causal attention", {}, true));
  rows.push_back(
      attention_case("attention with a mask", arange(12, TensorOptions(kFloat64)).view({3, 4}).sin(), false));
  rows.push_back(attention_case("attention with a boolean mask", arange(12).view({3, 4}).remainder(3).ne(1), false));
  rows.push_back(of_tensors("self-attention of one tensor",
                            [](const List& x) {
                              const Tensor heads = x[0].transpose(0, 1).unsqueeze(0);
                              return scaled_dot_product_attention(heads, heads, heads);
                            },
                            {{{3, 2, 2}, -1, 1}})
                     .empty({{3, 0, 2}}));
  rows.push_back(of_tensors("attention to keys that broadcast",
                            [](const List& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); },
                            {{{2, 3, 2}, -1, 1}, {{4, 2}, -1, 1}, {{1, 4, 2}, -1, 1}})
                     .empty({{2, 0, 2}, {4, 2}, {1, 4, 2}}));
  rows.push_back(of_tensors("attention through a mask that is learnt",
                            [](const List& x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); },
                            {{{2, 3, 2}, -1, 1}, {{2, 4, 2}, -1, 1}, {{2, 4, 2}, -1, 1}, {{3, 4}, -1, 1}})
                     .empty({{2, 0, 2}, {2, 4, 2}, {2, 4, 2}, {0, 4}}));
  rows.push_back(of_tensors("attention that drops weights",
                            [](const List& x) {
                              manual_seed(50);  // the same weights each time
                              return scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.4);
                            },
                            {{{2, 3, 2}, -1, 1}, {{2, 5, 2}, -1, 1}, {{2, 5, 2}, -1, 1}})
                     .empty({{2, 0, 2}, {2, 5, 2}, {2, 5, 2}}));
  return rows;
}

TEST(RecurrentLayer, TheKernelsAgreeWithTheirDefinition) {
  manual_seed(41);
  for (const auto kind :
       {ops::Recurrence::kLstm, ops::Recurrence::kGru, ops::Recurrence::kTanh, ops::Recurrence::kRelu}) {
    for (const bool reverse : {false, true}) {
      for (const Sizes& steps : {Sizes{2, 2, 2}, Sizes{2, 2, 1, 1}}) {
        List inputs;
        for (const GradientInput& input : layer_inputs(kind, 6, false)) {
          inputs.push_back(rand(input.sizes, TensorOptions(kFloat64)).mul(2).sub(1));
        }
        EXPECT_TRUE(
            layer(kind, steps, reverse, inputs).allclose(layer(kind, steps, reverse, inputs, true), 1e-12, 1e-12))
            << "kind " << static_cast<int>(kind) << (reverse ? " reverse" : "");
      }
    }
  }
}

TEST(RecurrentLayer, OneTensorMayBeBothStatesOfAnLstm) {
  manual_seed(45);
  List inputs;
  for (const GradientInput& input : layer_inputs(ops::Recurrence::kLstm, 4, false)) {
    inputs.push_back(rand(input.sizes, TensorOptions(kFloat64)).mul(2).sub(1).set_requires_grad(true));
  }
  inputs.erase(inputs.begin() + 2);
  check_gradients(
      "shared state",
      [](const List& x) {
        ops::RecurrentState state{x[1], x[1]};
        return ops::run_layer(ops::Recurrence::kLstm, x[0], ops::Steps::plain(2, 2), false,
                              {x[2], x[3], x[4], x[5], {}}, state);
      },
      inputs);
}

TEST(Attention, ManyQueriesAreCutIntoBlocks) {
  manual_seed(51);
  const Tensor q = randn({1, 2, 150, 8}), k = randn({1, 2, 131, 8}), v = randn({1, 2, 131, 8});
  const Tensor later = ones({150, 131}, TensorOptions(kBool)).triu(1);
  const Tensor weights = softmax(matmul(q, k.mT()).mul(1 / std::sqrt(8.0)).masked_fill(later, -INFINITY), -1);
  EXPECT_TRUE(scaled_dot_product_attention(q, k, v, {}, 0, true).allclose(matmul(weights, v), 1e-4, 1e-5));
}

TEST(Attention, TheOutputLiesAsTheQueryDoes) {
  const Tensor q = rand({2, 6, 3, 4}).transpose(1, 2);  // (B, L, H, D) in memory
  const Tensor y = scaled_dot_product_attention(q, q, q);
  EXPECT_TRUE(y.transpose(1, 2).is_contiguous());
}

}  // namespace tenon::test
