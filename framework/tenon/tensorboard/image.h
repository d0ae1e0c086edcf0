// Tensors as PNG files: pictures in any order of their dimensions, and batches of them as a grid.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>
#include <tenon/tensorboard/messages.h>

#include <string_view>

namespace tenon::tensorboard {

/// `format` names the dimensions of `picture`: "CHW", "HWC", "HW", and with N for a batch, in any order; a batch
/// becomes a grid with 8 pictures a row. 1 channel (made grey), 3 or 4. Bytes are taken as they are, other dtypes as
/// values from 0 (black) to 1; what lies outside is cut off. Throws Error where the shape does not fit.
TENON_API EncodedImage encode_image(const Tensor& picture, std::string_view format);

}  // namespace tenon::tensorboard
