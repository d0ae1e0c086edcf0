// Random integers in the sizes of another tensor.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon {

/// randint() with the sizes, dtype, device and memory format of another tensor, where the options say nothing else:
/// integers from low (0 if none is given) up to high, which is left out. Throws Error as randint().
TENON_API Tensor randint_like(const Tensor& like, std::int64_t high, const TensorOptions& options = {},
                              std::optional<MemoryFormat> format = std::nullopt);
TENON_API Tensor randint_like(const Tensor& like, std::int64_t low, std::int64_t high,
                              const TensorOptions& options = {}, std::optional<MemoryFormat> format = std::nullopt);

}  // namespace tenon
