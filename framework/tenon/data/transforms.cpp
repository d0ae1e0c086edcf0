// Transforms that are not templates.
#include <tenon/data/transforms.h>

#include <tenon/ops/ops.h>

namespace tenon::data::transforms {

Example<> Stack<Example<>>::apply_batch(std::vector<Example<>> examples) {
  std::vector<Tensor> data, targets;
  data.reserve(examples.size());
  targets.reserve(examples.size());
  for (auto& example : examples) {
    data.push_back(std::move(example.data));
    targets.push_back(std::move(example.target));
  }
  return {tenon::stack(data, 0), tenon::stack(targets, 0)};
}

TensorExample Stack<TensorExample>::apply_batch(std::vector<TensorExample> examples) {
  std::vector<Tensor> data;
  data.reserve(examples.size());
  for (auto& example : examples) data.push_back(std::move(example.data));
  return tenon::stack(data, 0);
}

Tensor channel_numbers(ArrayRef<double> numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  Tensor tensor = tenon::empty({count}, TensorOptions(kFloat64));
  std::copy(numbers.begin(), numbers.end(), tensor.data_ptr<double>());
  tensor = tensor.to(kFloat32);
  // A single number goes with pictures that have no channels too.
  return count == 1 ? tensor.squeeze(0) : tensor.view({count, 1, 1});
}

}  // namespace tenon::data::transforms
