// Tensors as views of larger sizes: expand and what is made of it. The rule for the common shape of two operands is
// broadcast_sizes() of tensor/shape/dims.h. Declared in broadcast.h and tensor.h.
#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/shape/broadcast.h>
#include <tenon/ops/support/make_view.h>

#include <algorithm>

namespace tenon {

using namespace ops;

Tensor Tensor::expand(IntArrayRef sizes, bool) const {
  const TensorImpl& self = impl();
  Dims wanted(sizes);
  const int added = wanted.rank() - self.rank();
  if (added < 0) {
    throw Error("expand(" + toString() + "{" + to_string(self.sizes()) + "}, size=" + to_string(wanted) +
                "): the number of sizes provided (" + std::to_string(wanted.rank()) +
                ") must be greater or equal to the number of dimensions in the tensor (" + std::to_string(self.rank()) +
                ")");
  }
  for (int i = 0; i < wanted.rank(); ++i) {
    if (wanted[i] == -1) {
      if (i < added) {
        throw Error("The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension " +
                    std::to_string(i));
      }
      wanted[i] = self.sizes()[i - added];
    } else if (i >= added && self.sizes()[i - added] != 1 && self.sizes()[i - added] != wanted[i]) {
      throw Error("The expanded size of the tensor (" + std::to_string(wanted[i]) + ") must match the existing size (" +
                  std::to_string(self.sizes()[i - added]) + ") at non-singleton dimension " + std::to_string(i) +
                  ".  Target sizes: " + to_string(wanted) + ".  Tensor sizes: " + to_string(self.sizes()));
    }
  }
  const Dims original = self.sizes();
  return ops::make_view(TENON_VIEW(expand, *this, sizes), "ExpandBackward0", *this, wanted,
                        expanded_strides(self.sizes(), self.strides(), wanted), self.offset(),
                        [original](Backward& b) { b.set(0, b.grad().sum_to_size(original)); });
}

Tensor broadcast_to(const Tensor& self, IntArrayRef sizes) {
  TENON_SCOPE(broadcast_to, self, sizes)
  return self.expand(sizes);
}
std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  TENON_SCOPE(broadcast_tensors, tensors)
  Dims sizes;
  for (const Tensor& tensor : tensors) sizes = broadcast_sizes(sizes, tensor.impl().sizes());
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.impl().sizes() == sizes ? tensor : tensor.expand(sizes));
  return result;
}

std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  TENON_SCOPE(meshgrid, tensors, indexing)
  if (tensors.empty()) throw Error("meshgrid expects a non-empty TensorList");
  if (indexing != "ij" && indexing != "xy") {
    throw Error("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: " + std::string(indexing));
  }
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() > 1) {
      throw Error("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got one of sizes " +
                  to_string(tensor.sizes()));
    }
    if (tensor.scalar_type() != tensors[0].scalar_type()) {
      throw Error(std::string("torch.meshgrid expects all tensors to have the same dtype, got ") +
                  toString(tensors[0].scalar_type()) + " and " + toString(tensor.scalar_type()));
    }
    if (!(tensor.device() == tensors[0].device()))
      throw Error("torch.meshgrid expects all tensors to have the same device");
  }
  const bool swap = indexing == "xy" && tensors.size() >= 2;
  std::vector<Tensor> inputs = tensors.vec();
  if (swap) std::swap(inputs[0], inputs[1]);
  Dims sizes;
  for (const Tensor& tensor : inputs) sizes.push_back(tensor.numel());
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Dims shape = Dims::filled(sizes.rank(), 1);
    shape[static_cast<int>(i)] = sizes[static_cast<int>(i)];
    grids.push_back(inputs[i].reshape(shape).expand(sizes));
  }
  if (swap) std::swap(grids[0], grids[1]);
  return grids;
}

}  // namespace tenon
