// What is kept for backward is used as it was kept: the error about a tensor that has been written to since. Private to
// autograd/.
#pragma once

#include <tenon/autograd/node.h>

#include <cstdint>
#include <string>
#include <utility>

namespace tenon::autograd {

/// "one of the variables needed for gradient computation has been modified by an inplace operation: …". `origin`: what
/// the tensor came out of, if anything; `saved_by` has kept it at version `expected`; `trace`: where that was, or null.
[[noreturn]] void throw_modified(const Tensor& tensor, std::uint32_t expected, const Edge& origin,
                                 const std::string& saved_by, const ForwardTrace* trace = nullptr);

/// A tensor and the version it had.
struct VersionedTensor {
  explicit VersionedTensor(Tensor kept) : tensor(std::move(kept)) {
    if (tensor.defined()) version = tensor.impl().version();
  }
  /// Throws where it has been written to since.
  void check(const char* saved_by) const {
    if (tensor.defined() && tensor.impl().version() != version) {
      throw_modified(tensor, version, {tensor.grad_fn(), static_cast<std::uint32_t>(tensor.output_nr())}, saved_by);
    }
  }

  Tensor tensor;
  std::uint32_t version = 0;
};

}  // namespace tenon::autograd
