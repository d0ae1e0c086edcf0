// Out of memory as PyTorch's own exception, without being linked to PyTorch.
#pragma once

#include <string>

namespace tenon::pytorch {

/// Throws c10::OutOfMemoryError with that text where PyTorch is loaded and has what it takes, else what derives from
/// std::bad_alloc. Programs catch the first as torch.OutOfMemoryError, the second is a RuntimeError in Python.
[[noreturn]] void raise_out_of_memory(const std::string& message);

}  // namespace tenon::pytorch
