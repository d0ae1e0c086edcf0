// Tensors as views of larger sizes: PyTorch's broadcasting. What two shapes give: tensor/shape/dims.h.
#pragma once

#include <tenon/tensor/tensor.h>

#include <string_view>
#include <vector>

namespace tenon {

/// expand() of a tensor to these sizes.
TENON_API Tensor broadcast_to(const Tensor& self, IntArrayRef sizes);
/// Views of all tensors under the sizes that they broadcast to. Throws Error where they do not.
TENON_API std::vector<Tensor> broadcast_tensors(TensorList tensors);
/// For vectors of lengths n, m …: each expanded to (n, m, …), "ij", or to (m, n, …), "xy". Throws Error where dtypes
/// differ, above rank 1, and for another word.
TENON_API std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing = "ij");

}  // namespace tenon
