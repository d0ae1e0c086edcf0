// MNIST as a data set of tensors.
#include <tenon/data/mnist.h>

#include <tenon/data/image_set.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

namespace tenon::data::datasets {

MNIST::MNIST(const std::string& root, Mode mode) : is_train_(mode == Mode::kTrain) {
  PurposeGuard purpose(Purpose::kData);
  ImageSet set = read_mnist(root, is_train_ ? Split::kTrain : Split::kTest);
  images_ = tenon::from_blob(set.pixels.data(), {set.count, 1, set.height, set.width}, TensorOptions(kUInt8))
                .to(kFloat32)
                .div_(255);
  targets_ = tenon::from_blob(set.labels.data(), {set.count}, TensorOptions(kUInt8)).to(kInt64);
}

Example<> MNIST::get(std::size_t index) {
  const auto i = static_cast<std::int64_t>(index);
  return {images_[i], targets_[i]};
}

std::optional<std::size_t> MNIST::size() const { return static_cast<std::size_t>(images_.size(0)); }

}  // namespace tenon::data::datasets
