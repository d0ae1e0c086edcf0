// The table of gradient checks: a row names a function and the inputs at which its derivatives are compared with
// differences. Every layout of gradient_test.cpp runs over every row.
#pragma once

#include "gradcheck.h"

namespace tenon::test {

struct GradientInput {
  std::vector<std::int64_t> sizes;
  double low = -2;
  double high = 2;
};

struct GradientCase {
  std::string name;
  Function function;
  std::vector<GradientInput> inputs;
  GradCheck check;
  std::vector<std::vector<std::int64_t>> empty_sizes;  ///< of the inputs without elements
  Function empty_function;  ///< where `function` names positions that an empty input does not have
  std::string empty_error;  ///< part of the message, where there is no result for nothing

  GradientCase&& tolerance(double value) && {
    check.tolerance = value;
    return std::move(*this);
  }
  GradientCase&& step(double value) && {
    check.step = value;
    return std::move(*this);
  }
  GradientCase&& once() && {
    check.twice = false;
    return std::move(*this);
  }
  GradientCase&& empty(std::vector<std::vector<std::int64_t>> sizes, Function function_of_empty = nullptr) && {
    empty_sizes = std::move(sizes);
    empty_function = std::move(function_of_empty);
    return std::move(*this);
  }
  GradientCase&& refuses_empty(std::string part_of_message) && {
    empty_error = std::move(part_of_message);
    return std::move(*this);
  }
};

/// A function of one matrix; its empty form is the function of a matrix without rows.
inline GradientCase of_matrix(std::string name, std::function<Tensor(const Tensor&)> function, double low = -2,
                              double high = 2) {
  return {.name = std::move(name),
          .function = [function](const std::vector<Tensor>& x) { return function(x[0]); },
          .inputs = {{{3, 4}, low, high}},
          .empty_sizes = {{0, 4}}};
}

/// A function of several tensors; its empty form has to be said.
inline GradientCase of_tensors(std::string name, Function function, std::vector<GradientInput> inputs) {
  return {.name = std::move(name), .function = std::move(function), .inputs = std::move(inputs)};
}

// One file per family.
std::vector<GradientCase> unary_gradients();
std::vector<GradientCase> binary_gradients();
std::vector<GradientCase> reduction_gradients();
std::vector<GradientCase> view_gradients();
std::vector<GradientCase> indexing_gradients();
std::vector<GradientCase> product_gradients();
std::vector<GradientCase> window_gradients();
std::vector<GradientCase> normalization_gradients();
std::vector<GradientCase> loss_gradients();
std::vector<GradientCase> composite_gradients();
std::vector<GradientCase> front_end_gradients();
std::vector<GradientCase> sequence_gradients();

}  // namespace tenon::test
