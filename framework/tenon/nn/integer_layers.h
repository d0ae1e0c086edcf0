// What layers on integers cannot do that layers of floats can: other dtypes, and archives of the other kind.
#pragma once

#include <tenon/core/dtype.h>

namespace tenon {
class InputArchive;
}

namespace tenon::nn {

class Module;

/// Throws Error where a layer of the model is on integers, whose scales are float32, and another dtype is wanted.
void check_conversion(const Module& model, Dtype wanted);
/// Throws Error where the archive's layers are on other integers than the model's, or on none.
void check_archive(const Module& model, InputArchive& archive);

}  // namespace tenon::nn
