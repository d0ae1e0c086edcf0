// Options of activations, shared by modules and functional forms.
#pragma once

#include <tenon/nn/options/arg.h>

#include <cstdint>
#include <string>
#include <utility>

namespace tenon::nn {

struct ELUOptions {
  TENON_ARG(double, alpha) = 1.0;
  TENON_ARG(bool, inplace) = false;
};
struct SELUOptions {
  SELUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT: as in libtorch, here and below
  TENON_ARG(bool, inplace);
};
struct CELUOptions {
  TENON_ARG(double, alpha) = 1.0;
  TENON_ARG(bool, inplace) = false;
};
struct GLUOptions {
  GLUOptions(std::int64_t dim = -1) : dim_(dim) {}  // NOLINT
  TENON_ARG(std::int64_t, dim);
};
/// approximate: "none" or "tanh".
struct GELUOptions {
  TENON_ARG(std::string, approximate) = "none";
};
struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  TENON_ARG(double, lambda);
};
struct SoftshrinkOptions {
  SoftshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  TENON_ARG(double, lambda);
};
struct HardtanhOptions {
  TENON_ARG(double, min_val) = -1.0;
  TENON_ARG(double, max_val) = 1.0;
  TENON_ARG(bool, inplace) = false;
};
struct LeakyReLUOptions {
  TENON_ARG(double, negative_slope) = 1e-2;
  TENON_ARG(bool, inplace) = false;
};
struct SoftmaxOptions {
  SoftmaxOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT
  TENON_ARG(std::int64_t, dim);
};
struct SoftminOptions {
  SoftminOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT
  TENON_ARG(std::int64_t, dim);
};
struct LogSoftmaxOptions {
  LogSoftmaxOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT
  TENON_ARG(std::int64_t, dim);
};
struct PReLUOptions {
  TENON_ARG(std::int64_t, num_parameters) = 1;
  TENON_ARG(double, init) = 0.25;
};
struct ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  TENON_ARG(bool, inplace);
};
struct ReLU6Options {
  ReLU6Options(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  TENON_ARG(bool, inplace);
};
struct RReLUOptions {
  TENON_ARG(double, lower) = 1.0 / 8.0;
  TENON_ARG(double, upper) = 1.0 / 3.0;
  TENON_ARG(bool, inplace) = false;
};
struct SoftplusOptions {
  TENON_ARG(double, beta) = 1.0;
  TENON_ARG(double, threshold) = 20.0;
};
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  TENON_ARG(double, threshold);
  TENON_ARG(double, value);
  TENON_ARG(bool, inplace) = false;
};

}  // namespace tenon::nn
