// Padding: by a constant, or by positions of the tensor itself.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>
#include <string_view>

namespace tenon {

/// Pads the last dims; amounts as in constant_pad_nd(). mode is "constant" (with `value`, by default 0), "reflect"
/// (with the elements mirrored at the edge, which is not repeated: amounts below the dim's size), "replicate" (with the
/// edge) or "circular" (with the elements of the other end: amounts up to the dim's size). Throws Error for larger
/// amounts and another mode.
TENON_API Tensor pad(const Tensor& self, IntArrayRef amounts, std::string_view mode = "constant",
                     std::optional<double> value = std::nullopt);
/// A copy with `value` around it: amounts are (before, after) of the last dim, then of the one before it …; negative
/// ones cut off. Throws Error for an odd number of amounts, more pairs than dims, and where more is cut off than there
/// is.
TENON_API Tensor constant_pad_nd(const Tensor& self, IntArrayRef amounts, const Scalar& value = 0);

}  // namespace tenon
