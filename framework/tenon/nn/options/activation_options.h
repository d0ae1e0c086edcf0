// Options of activations, shared by modules and functional forms.
#pragma once

#include <tenon/nn/options/arg.h>

#include <cstdint>
#include <string>
#include <utility>

namespace tenon::nn {

struct ELUOptions {
  TENON_ARG(double, alpha) = 1.0;    ///< the limit far below 0 is -alpha
  TENON_ARG(bool, inplace) = false;  ///< whether the input is overwritten
};
struct SELUOptions {
  SELUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT: as in libtorch, here and below
  TENON_ARG(bool, inplace);                                 ///< whether the input is overwritten
};
struct CELUOptions {
  TENON_ARG(double, alpha) = 1.0;    ///< the limit far below 0 is -alpha
  TENON_ARG(bool, inplace) = false;  ///< whether the input is overwritten
};
struct GLUOptions {
  GLUOptions(std::int64_t dim = -1) : dim_(dim) {}  // NOLINT
  TENON_ARG(std::int64_t, dim);                     ///< along which dim
};
/// approximate: "none" or "tanh".
struct GELUOptions {
  TENON_ARG(std::string, approximate) = "none";  ///< "none", or "tanh" for the approximation by tanh
};
struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  TENON_ARG(double, lambda);                                   ///< what is shrunk lies between -lambda and lambda
};
struct SoftshrinkOptions {
  SoftshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  TENON_ARG(double, lambda);                                   ///< what is shrunk lies between -lambda and lambda
};
struct HardtanhOptions {
  TENON_ARG(double, min_val) = -1.0;  ///< the lower bound
  TENON_ARG(double, max_val) = 1.0;   ///< the upper bound
  TENON_ARG(bool, inplace) = false;   ///< whether the input is overwritten
};
struct LeakyReLUOptions {
  TENON_ARG(double, negative_slope) = 1e-2;  ///< the slope below 0
  TENON_ARG(bool, inplace) = false;          ///< whether the input is overwritten
};
struct SoftmaxOptions {
  SoftmaxOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT
  TENON_ARG(std::int64_t, dim);                    ///< along which dim
};
struct SoftminOptions {
  SoftminOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT
  TENON_ARG(std::int64_t, dim);                    ///< along which dim
};
struct LogSoftmaxOptions {
  LogSoftmaxOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT
  TENON_ARG(std::int64_t, dim);                       ///< along which dim
};
struct PReLUOptions {
  TENON_ARG(std::int64_t, num_parameters) = 1;  ///< 1, or a slope for each channel
  TENON_ARG(double, init) = 0.25;               ///< the first value of each slope
};
struct ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  TENON_ARG(bool, inplace);                                 ///< whether the input is overwritten
};
struct ReLU6Options {
  ReLU6Options(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  TENON_ARG(bool, inplace);                                  ///< whether the input is overwritten
};
struct RReLUOptions {
  TENON_ARG(double, lower) = 1.0 / 8.0;  ///< the least slope that is drawn
  TENON_ARG(double, upper) = 1.0 / 3.0;  ///< the largest slope that is drawn
  TENON_ARG(bool, inplace) = false;      ///< whether the input is overwritten
};
struct SoftplusOptions {
  TENON_ARG(double, beta) = 1.0;        ///< how sharp the bend is
  TENON_ARG(double, threshold) = 20.0;  ///< above it (times beta) the input itself is the result
};
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  TENON_ARG(double, threshold);      ///< inputs up to it are replaced
  TENON_ARG(double, value);          ///< by which value
  TENON_ARG(bool, inplace) = false;  ///< whether the input is overwritten
};

}  // namespace tenon::nn
