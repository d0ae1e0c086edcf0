// Further libtorch spellings, for programs that use them.
#pragma once

#include <tenon/tensor/indexing.h>
#include <tenon/tensor/tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace tenon {

using std::make_unique;
using std::nullopt;
using std::nullopt_t;
using std::optional;

using TensorBase = Tensor;
using Dimname = std::string;

}  // namespace tenon
