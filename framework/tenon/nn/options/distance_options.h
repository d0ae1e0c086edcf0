// Options of distances.
#pragma once

#include <tenon/nn/options/arg.h>

#include <cstdint>

namespace tenon::nn {

struct CosineSimilarityOptions {
  TENON_ARG(std::int64_t, dim) = 1;  ///< along which dim
  TENON_ARG(double, eps) = 1e-8;     ///< the least product of norms
};
struct PairwiseDistanceOptions {
  TENON_ARG(double, p) = 2.0;        ///< of the p-norm
  TENON_ARG(double, eps) = 1e-6;     ///< added to the difference
  TENON_ARG(bool, keepdim) = false;  ///< keep the reduced dim with size 1
};

}  // namespace tenon::nn
