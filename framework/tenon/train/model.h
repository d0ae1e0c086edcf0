// Models by name: what `[model] name = "lenet"` builds.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::train {

/// What a model must fit: pictures of classes, or characters of a vocabulary.
struct DataShape {
  std::int64_t channels = 1, height = 28, width = 28, classes = 10;
  std::int64_t vocabulary = 0;  ///< > 0: text
};

struct ModelRequest {
  const Options& options;  ///< the section [model]
  DataShape data;
  bool inplace_activations = false;
  bool checkpoint = false;
};

struct Model {
  std::shared_ptr<nn::Module> module;
  /// Logits: (N, classes), or (N, length, vocabulary) for text.
  std::function<Tensor(const Tensor&)> forward;
};
/// Of a holder whose forward takes one tensor.
template <class Holder>
Model model_of(Holder holder) {
  return {holder.ptr(), [holder](const Tensor& x) mutable { return holder->forward(x); }};
}

/// In the order of their size.
TENON_API std::vector<std::string> model_names();

/// Throws Error for a model that does not fit the data.
TENON_API Model make_model(const ModelRequest& request);

// One file each, under models/.
Model make_mlp(const ModelRequest& request);
Model make_lenet(const ModelRequest& request);
Model make_resnet18(const ModelRequest& request);
Model make_resnet50(const ModelRequest& request);

}  // namespace tenon::train
