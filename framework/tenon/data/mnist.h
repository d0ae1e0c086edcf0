// MNIST, and Fashion-MNIST, which has the same files: pictures (1, 28, 28) in [0, 1] with a class each.
#pragma once

#include <tenon/core/export.h>
#include <tenon/data/dataset.h>

#include <string>

namespace tenon::data::datasets {

class TENON_EXPORT MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };

  /// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, gzipped or not. Throws Error that names the file.
  TENON_API explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  TENON_API Example<> get(std::size_t index) override;
  TENON_API std::optional<std::size_t> size() const override;
  /// Whether these are the training pictures.
  bool is_train() const noexcept { return is_train_; }
  const Tensor& images() const { return images_; }    ///< (N, 1, 28, 28), float32
  const Tensor& targets() const { return targets_; }  ///< (N), int64

 private:
  Tensor images_, targets_;
  bool is_train_;
};

}  // namespace tenon::data::datasets
