// Datasets that are not templates.
#include <tenon/data/dataset.h>

#include <tenon/ops/ops.h>

namespace tenon::data::datasets {

TensorDataset::TensorDataset(const std::vector<Tensor>& tensors) : tensor(tenon::stack(tensors)) {}

template class Dataset<TensorDataset, TensorExample>;

}  // namespace tenon::data::datasets
