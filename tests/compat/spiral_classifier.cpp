// A front-end program as libtorch's users write it: a module of modules, a data set of their own, a data loader, Adam,
// and a checkpoint that gives the same answers back.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>

/// Points of three interleaved spirals with the spiral's number.
class Spirals : public torch::data::Dataset<Spirals> {
 public:
  explicit Spirals(int64_t per_class) {
    const auto t = torch::linspace(0.2, 1.0, per_class);
    std::vector<torch::Tensor> points, labels;
    for (int64_t arm = 0; arm < 3; ++arm) {
      const auto angle = t * 4.0 + 2.0 * M_PI * static_cast<double>(arm) / 3.0 + torch::randn({per_class}) * 0.05;
      points.push_back(torch::stack({t * torch::sin(angle), t * torch::cos(angle)}, 1));
      labels.push_back(torch::full({per_class}, arm, torch::kLong));
    }
    points_ = torch::cat(points);
    labels_ = torch::cat(labels);
  }
  torch::data::Example<> get(size_t index) override {
    return {points_[static_cast<int64_t>(index)], labels_[static_cast<int64_t>(index)]};
  }
  torch::optional<size_t> size() const override { return static_cast<size_t>(points_.size(0)); }
  const torch::Tensor& points() const { return points_; }
  const torch::Tensor& labels() const { return labels_; }

 private:
  torch::Tensor points_, labels_;
};

struct ClassifierImpl : torch::nn::Module {
  explicit ClassifierImpl(int64_t hidden)
      : body(torch::nn::Linear(2, hidden), torch::nn::BatchNorm1d(hidden), torch::nn::ReLU(),
             torch::nn::Linear(hidden, hidden), torch::nn::Tanh()),
        head(register_module("head", torch::nn::Linear(torch::nn::LinearOptions(hidden, 3).bias(false)))) {
    register_module("body", body);
    scale = register_parameter("scale", torch::ones({1}));
  }
  torch::Tensor forward(torch::Tensor x) { return head->forward(body->forward(x)) * scale; }

  torch::nn::Sequential body;
  torch::nn::Linear head{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(Classifier);

double accuracy(Classifier& model, const Spirals& data) {
  torch::NoGradGuard no_grad;
  model->eval();
  const auto hits = model->forward(data.points()).argmax(1).eq(data.labels()).to(torch::kFloat32).mean();
  model->train();
  return hits.item<double>();
}

int main() {
  torch::manual_seed(7);
  const torch::Device device(torch::kCPU);
  Spirals data(60);
  Classifier model(32);
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2).weight_decay(1e-5));
  torch::optim::StepLR schedule(optimizer, 20, 0.5);

  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      data.map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions().batch_size(36));
  for (int epoch = 0; epoch < 40; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = torch::nn::functional::cross_entropy(model->forward(batch.data.to(device)), batch.target.to(device));
      loss.backward();
      torch::nn::utils::clip_grad_norm_(model->parameters(), 5.0);
      optimizer.step();
    }
    schedule.step();
  }
  const double reached = accuracy(model, data);

  std::stringstream file;
  torch::save(model, file);
  Classifier restored(32);
  torch::load(restored, file);
  const double again = accuracy(restored, data);

  std::cout << model << "\n"
            << "parameters: ";
  for (const auto& parameter : model->named_parameters())
    std::cout << parameter.key() << parameter.value().sizes() << " ";
  std::printf("\naccuracy %.3f, after loading %.3f\n", reached, again);
  return reached > 0.9 && again == reached ? 0 : 1;
}
