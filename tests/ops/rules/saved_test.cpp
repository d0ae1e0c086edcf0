// What an operator saves for its backward: a write to the rest is no error, and gradients are those without it.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/nn/recurrent/rnn.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "../../support/message_of.h"

namespace tenon::test {
namespace {

using Tensors = std::vector<Tensor>;
using Call = std::function<Tensors(const Tensors&)>;

/// `wanted`: 1 for operands that require a gradient. `operands`, `results`: of each tensor what PyTorch 2.15 does about
/// a write: '.' nothing, 'R' it refuses the gradient, and 'r' it refuses one that is computed here without that tensor.
struct SavedCase {
  const char* name;
  const char* wanted;
  const char* operands;
  const char* results;
  Call call;
};

Call one(Tensor (*function)(const Tensor&)) {
  return [function](const Tensors& x) { return Tensors{function(x[0])}; };
}
Call method(Tensor (Tensor::*function)(const Tensor&) const) {
  return [function](const Tensors& x) { return Tensors{(x[0].*function)(x[1])}; };
}
/// An in-place form on a copy: the result is that copy.
Call inplace(Tensor& (Tensor::*function)(const Tensor&) const) {
  return [function](const Tensors& x) { return Tensors{(x[0].clone().*function)(x[1])}; };
}

// Long: a list.
std::vector<SavedCase> pointwise_cases() {
  const Call hypot = method(&Tensor::hypot), copysign = method(&Tensor::copysign), ldexp = method(&Tensor::ldexp);
  const Call fmod = method(&Tensor::fmod), remainder = method(&Tensor::remainder);
  const Call hypot_ = inplace(&Tensor::hypot_), copysign_ = inplace(&Tensor::copysign_);
  const Call fmod_ = inplace(&Tensor::fmod_), ldexp_ = inplace(&Tensor::ldexp_);
  return {
      {"selu", "1", "R", ".", one(&selu)},
      {"selu_", "1", ".", "R", [](const Tensors& x) { return Tensors{x[0].clone().selu_()}; }},
      {"elu", "1", "R", ".", [](const Tensors& x) { return Tensors{x[0].elu(1.0, 1.0, 1.0)}; }},
      {"erfinv", "1", "R", ".", one(&erfinv)},
      {"erfinv_", "1", ".", ".", [](const Tensors& x) { return Tensors{x[0].clone().erfinv_()}; }},
      {"tanh", "1", ".", "R", one(&tanh)},
      {"special_ndtri", "1", ".", "R", one(&special_ndtri)},
      {"special_log_ndtr", "1", "R", "r", one(&special_log_ndtr)},
      {"special_erfcx", "1", "R", "r", one(&special_erfcx)},
      {"pow 0.5", "1", "R", ".", [](const Tensors& x) { return Tensors{x[0].pow(0.5)}; }},
      {"pow_ 0.5", "1", ".", ".", [](const Tensors& x) { return Tensors{x[0].clone().pow_(0.5)}; }},
      {"float_power 0.5", "1", "R", ".", [](const Tensors& x) { return Tensors{x[0].float_power(0.5)}; }},
      {"sqrt", "1", ".", "R", one(&sqrt)},
      {"hypot", "11", "RR", "r", hypot},
      {"hypot", "10", "R.", "R", hypot},
      {"hypot", "01", ".R", "R", hypot},
      {"hypot_", "10", "..", "R", hypot_},
      {"copysign", "11", "R.", "R", copysign},
      {"copysign", "10", "R.", "R", copysign},
      {"copysign", "01", "..", ".", copysign},
      {"copysign_", "10", "..", "R", copysign_},
      {"ldexp", "11", ".R", "R", ldexp},
      {"ldexp", "10", ".R", "r", ldexp},
      {"ldexp", "01", "..", "R", ldexp},
      {"ldexp_", "10", ".R", "r", ldexp_},
      {"fmod", "11", "RR", ".", fmod},
      {"fmod", "10", "..", ".", fmod},
      {"fmod", "01", "RR", ".", fmod},
      {"fmod_", "10", "..", ".", fmod_},
      {"fmod by a number", "1", ".", ".", [](const Tensors& x) { return Tensors{x[0].fmod(0.3)}; }},
      {"remainder", "11", "RR", ".", remainder},
      {"remainder", "10", "..", ".", remainder},
      {"remainder", "01", "RR", ".", remainder},
      {"remainder by a number", "1", ".", ".", [](const Tensors& x) { return Tensors{x[0].remainder(0.3)}; }},
      {"operator%", "1", ".", ".", [](const Tensors& x) { return Tensors{x[0] % 0.3}; }},
      {"div floor", "11", "rr", ".", [](const Tensors& x) { return Tensors{x[0].div(x[1], "floor")}; }},
      {"div trunc by a number", "1", ".", ".", [](const Tensors& x) { return Tensors{x[0].div(0.3, "trunc")}; }},
      {"mul", "10", ".R", ".", method(&Tensor::mul)},
      {"div", "10", ".R", ".", method(&Tensor::div)},
      {"atan2", "10", "RR", ".", method(&Tensor::atan2)},
  };
}

Tensor wavy(const std::vector<std::int64_t>& sizes, double start) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(0, static_cast<double>(count), TensorOptions(kFloat64)).add(start).sin().mul(0.3).add(0.5).view(sizes);
}

/// Fresh leaves, and what the call gets of them: tensors that may be written to.
struct WritableOperands {
  WritableOperands(const SavedCase& of, const std::vector<std::vector<std::int64_t>>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Tensor leaf = wavy(sizes[i], static_cast<double>(7 * i));
      if (of.wanted[i] == '1') leaves.push_back(leaf.requires_grad_());
      given.push_back(of.wanted[i] == '1' ? leaf * 1 : leaf);
    }
  }
  Tensors leaves, given;
};

/// The gradients, and with `twice` theirs, after a write to the operand or result of that number; -1: none.
Tensors gradients(const SavedCase& of, const std::vector<std::vector<std::int64_t>>& sizes, int written, bool twice) {
  const WritableOperands operands(of, sizes);
  const Tensors results = of.call(operands.given);
  Tensor sum = zeros({}, kFloat64);
  for (std::size_t i = 0; i < results.size(); ++i) {
    sum = sum + (results[i] * wavy(results[i].sizes().vec(), static_cast<double>(3 * i))).sum();
  }
  Tensors all = operands.given;
  all.insert(all.end(), results.begin(), results.end());
  if (written >= 0) {
    NoGradGuard no_grad;
    all[static_cast<std::size_t>(written)].fill_(0.125);
  }
  Tensors found = autograd::grad({sum}, operands.leaves, {}, true, twice, true);
  if (!twice) return found;
  Tensor slopes = zeros({}, kFloat64);
  for (const Tensor& gradient : found) {
    if (gradient.requires_grad()) slopes = slopes + gradient.square().sum();
  }
  if (slopes.requires_grad()) {
    for (const Tensor& second : autograd::grad({slopes}, operands.leaves, {}, false, false, true)) {
      if (second.defined()) found.push_back(second);
    }
  }
  return found;
}

void expect_as_pytorch(const SavedCase& of, const std::vector<std::vector<std::int64_t>>& sizes, bool twice) {
  SCOPED_TRACE(std::string(of.name) + " " + of.wanted);
  const std::string expected = std::string(of.operands) + of.results;
  const Tensors without = gradients(of, sizes, -1, twice);
  for (std::size_t at = 0; at < expected.size(); ++at) {
    SCOPED_TRACE(at);
    const auto written = [&] { return gradients(of, sizes, static_cast<int>(at), twice); };
    if (expected[at] == 'R') {
      EXPECT_NE(message_of(written).find("modified by an inplace operation"), std::string::npos);
      continue;
    }
    Tensors found;
    ASSERT_NO_THROW(found = written());
    ASSERT_EQ(found.size(), without.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].equal(without[i])) << found[i] << without[i];
  }
}

TEST(Saved, AWriteToWhatAFormulaDoesNotSaveIsNoError) {
  for (const SavedCase& of : pointwise_cases()) {
    const std::vector<std::vector<std::int64_t>> sizes(std::string(of.wanted).size(), {2, 3});
    expect_as_pytorch(of, sizes, false);
    expect_as_pytorch(of, sizes, true);
  }
}

TEST(Saved, AWriteToWhatARecurrentCellDoesNotSaveIsNoError) {
  const auto cell_case =
      [](Tensor (*cell)(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&)) {
        return [cell](const Tensors& x) { return Tensors{cell(x[0], x[1], x[2], x[3], x[4], x[5])}; };
      };
  const auto lstm_case = [](const Tensors& x) {
    const auto [h, c] = lstm_cell(x[0], {x[1], x[6]}, x[2], x[3], x[4], x[5]);
    return Tensors{h, c};
  };
  const auto sizes = [](std::int64_t gates) {
    return std::vector<std::vector<std::int64_t>>{{2, 3},         {2, 4},      {4 * gates, 3},
                                                  {4 * gates, 4}, {4 * gates}, {4 * gates}};
  };
  for (const auto& [name, cell] : {std::pair("rnn_tanh_cell", &rnn_tanh_cell), {"rnn_relu_cell", &rnn_relu_cell}}) {
    expect_as_pytorch({name, "111111", "RRRR..", "R", cell_case(cell)}, sizes(1), false);
    expect_as_pytorch({name, "101100", "RRR...", "R", cell_case(cell)}, sizes(1), false);
    expect_as_pytorch({name, "110011", "..RR..", "R", cell_case(cell)}, sizes(1), false);
    expect_as_pytorch({name, "000011", "......", "R", cell_case(cell)}, sizes(1), false);
  }
  expect_as_pytorch({"gru_cell", "111111", "RRRR..", ".", cell_case(&gru_cell)}, sizes(3), false);
  expect_as_pytorch({"gru_cell", "001000", "R.....", ".", cell_case(&gru_cell)}, sizes(3), false);
  expect_as_pytorch({"gru_cell", "110000", "..RR..", ".", cell_case(&gru_cell)}, sizes(3), false);
  std::vector<std::vector<std::int64_t>> of_lstm = sizes(4);
  of_lstm.push_back({2, 4});
  expect_as_pytorch({"lstm_cell", "1111111", "RRRR..R", "..", lstm_case}, of_lstm, false);
  expect_as_pytorch({"lstm_cell", "0001000", ".R....R", "..", lstm_case}, of_lstm, false);
  expect_as_pytorch({"lstm_cell", "1100000", "..RR..R", "..", lstm_case}, of_lstm, false);
  expect_as_pytorch({"lstm_cell", "0000001", ".......", "..", lstm_case}, of_lstm, false);
}

/// What is said of gradients after scatter() or scatter_add(), between which and them the places are written to.
std::string refusal_of_written_places(bool add, bool wants_self, bool wants_source) {
  const Tensor self = wavy({3, 4}, 0).requires_grad_(wants_self);
  const Tensor source = wavy({3, 4}, 1).requires_grad_(wants_source);
  const Tensor places = zeros({3, 4}, kInt64);
  const Tensor result = add ? self.scatter_add(1, places, source) : self.scatter(1, places, source);
  places.fill_(2);
  try {
    result.sum().backward();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Saved, PlacesOfAddedElementsAreReadForTheSourcesGradientAlone) {
  const std::string refused = "modified by an inplace operation";
  EXPECT_EQ(refusal_of_written_places(true, true, false), "");
  EXPECT_NE(refusal_of_written_places(true, false, true).find(refused), std::string::npos);
  EXPECT_NE(refusal_of_written_places(true, true, true).find(refused), std::string::npos);
  EXPECT_NE(refusal_of_written_places(false, true, false).find(refused), std::string::npos);
  EXPECT_NE(refusal_of_written_places(false, false, true).find(refused), std::string::npos);
}

}  // namespace
}  // namespace tenon::test
