// lenet: two convolutions with pooling, two linear layers, after LeCun et al., "Gradient-based learning applied to
// document recognition", 1998, with ReLU and maximum pooling.
#include <tenon/nn/activation.h>
#include <tenon/nn/conv.h>
#include <tenon/nn/dropout.h>
#include <tenon/nn/linear.h>
#include <tenon/nn/pooling.h>
#include <tenon/nn/sequential.h>
#include <tenon/train/model.h>

namespace tenon::train {

Model make_lenet(const ModelRequest& request) {
  const DataShape& data = request.data;
  if (data.height < 12 || data.width < 12) throw Error("lenet needs pictures of at least 12 by 12 pixels");
  const nn::ReLU relu(nn::ReLUOptions(request.inplace_activations));
  nn::Sequential model;
  model->push_back(nn::Conv2d(nn::Conv2dOptions(data.channels, 12, 5).padding(2)));
  model->push_back(relu);
  model->push_back(nn::MaxPool2d(2));
  model->push_back(nn::Conv2d(nn::Conv2dOptions(12, 24, 5)));
  model->push_back(relu);
  model->push_back(nn::MaxPool2d(2));
  model->push_back(nn::Flatten());
  const std::int64_t features = 24 * ((data.height / 2 - 4) / 2) * ((data.width / 2 - 4) / 2);
  model->push_back(nn::Linear(features, 128));
  model->push_back(relu);
  if (request.options.real("dropout") > 0) model->push_back(nn::Dropout(request.options.real("dropout")));
  model->push_back(nn::Linear(128, data.classes));
  return model_of(std::move(model));
}

}  // namespace tenon::train
