// Options of distances.
#pragma once

#include <tenon/nn/options/arg.h>

#include <cstdint>

namespace tenon::nn {

struct CosineSimilarityOptions {
  TENON_ARG(std::int64_t, dim) = 1;
  TENON_ARG(double, eps) = 1e-8;
};
struct PairwiseDistanceOptions {
  TENON_ARG(double, p) = 2.0;
  TENON_ARG(double, eps) = 1e-6;
  TENON_ARG(bool, keepdim) = false;
};

}  // namespace tenon::nn
