// mlp: pictures flattened, `layers` hidden layers of `hidden` units.
#include <tenon/nn/activation.h>
#include <tenon/nn/dropout.h>
#include <tenon/nn/linear.h>
#include <tenon/nn/sequential.h>
#include <tenon/train/model.h>

namespace tenon::train {

Model make_mlp(const ModelRequest& request) {
  const DataShape& data = request.data;
  const std::int64_t hidden = request.options.integer("hidden");
  nn::Sequential model;
  model->push_back(nn::Flatten());
  std::int64_t width = data.channels * data.height * data.width;
  for (std::int64_t i = 0; i < request.options.integer("layers"); ++i) {
    model->push_back(nn::Linear(width, hidden));
    model->push_back(nn::ReLU(nn::ReLUOptions(request.inplace_activations)));
    if (request.options.real("dropout") > 0) model->push_back(nn::Dropout(request.options.real("dropout")));
    width = hidden;
  }
  model->push_back(nn::Linear(width, data.classes));
  return model_of(std::move(model));
}

}  // namespace tenon::train
