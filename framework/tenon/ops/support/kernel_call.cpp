// Checks of what a kernel is called with.
#include <tenon/ops/support/kernel_call.h>

#include <string>

namespace tenon::ops {

void check_same_device(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* tensor : tensors) {
    if (!tensor->defined()) continue;
    if (!first) {
      first = tensor;
    } else if (!(tensor->device() == first->device())) {
      throw Error(std::string("Expected all tensors to be on the same device, but found at least two devices, ") +
                  first->device().str() + " and " + tensor->device().str() + "! (in operator " + op + ")");
    }
  }
}

void check_written(const Tensor& self) {
  if (self.impl().may_overlap_itself()) {
    throw Error(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation.");
  }
}

bool reads_elsewhere_in(const Tensor& operand, const Tensor& self) {
  return operand.is_alias_of(self) && !(operand.data_ptr() == self.data_ptr() && operand.sizes() == self.sizes() &&
                                        operand.strides() == self.strides());
}

}  // namespace tenon::ops
