// Parameters as one vector and back.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <vector>

namespace tenon::nn::utils {

/// A copy of all elements, one behind the other, in one tensor of rank 1. Throws Error for parameters of several
/// devices, and for none.
TENON_API Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
/// Each parameter becomes a view of its piece of the vector.
TENON_API void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace tenon::nn::utils
