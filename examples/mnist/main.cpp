// A small convolutional network learns the ten classes of MNIST, or of Fashion-MNIST, which comes in the same files.
//   mnist [FOLDER [EPOCHS [STEPS OF EACH]]]
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

namespace {

struct Net : tenon::nn::Module {
  Net() {
    conv1 = register_module("conv1", tenon::nn::Conv2d(tenon::nn::Conv2dOptions(1, 10, 5)));
    conv2 = register_module("conv2", tenon::nn::Conv2d(tenon::nn::Conv2dOptions(10, 20, 5)));
    drop = register_module("drop", tenon::nn::Dropout2d());
    fc1 = register_module("fc1", tenon::nn::Linear(320, 50));
    fc2 = register_module("fc2", tenon::nn::Linear(50, 10));
  }
  tenon::Tensor forward(tenon::Tensor x) {
    x = tenon::relu(tenon::max_pool2d(conv1->forward(x), 2));
    x = tenon::relu(tenon::max_pool2d(drop->forward(conv2->forward(x)), 2));
    x = tenon::relu(fc1->forward(x.view({-1, 320})));
    x = tenon::dropout(x, /*p=*/0.5, /*train=*/is_training());
    return tenon::log_softmax(fc2->forward(x), /*dim=*/1);
  }
  tenon::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  tenon::nn::Dropout2d drop{nullptr};
  tenon::nn::Linear fc1{nullptr}, fc2{nullptr};
};

auto pictures(const std::string& folder, tenon::data::datasets::MNIST::Mode mode) {
  return tenon::data::datasets::MNIST(folder, mode)
      .map(tenon::data::transforms::Normalize<>(0.2860, 0.3530))
      .map(tenon::data::transforms::Stack<>());
}

}  // namespace

int main(int count, char** words) {
  const std::string folder = count > 1 ? words[1] : "/usr/share/datasets/fashion-mnist";
  const int epochs = count > 2 ? std::atoi(words[2]) : 1;
  const int most = count > 3 ? std::atoi(words[3]) : std::numeric_limits<int>::max();
  using Mode = tenon::data::datasets::MNIST::Mode;

  tenon::manual_seed(1);
  Net model;
  auto train_set = pictures(folder, Mode::kTrain);
  auto train = tenon::data::make_data_loader<tenon::data::samplers::RandomSampler>(std::move(train_set), 64);
  auto test_set = pictures(folder, Mode::kTest);
  const double test_size = static_cast<double>(test_set.size().value());
  auto test = tenon::data::make_data_loader(std::move(test_set), 1000);
  tenon::optim::SGD optimizer(model.parameters(), tenon::optim::SGDOptions(0.05).momentum(0.5));

  for (int epoch = 1; epoch <= epochs; ++epoch) {
    model.train();
    int step = 0;
    for (auto& batch : *train) {
      if (++step > most) break;
      optimizer.zero_grad();
      tenon::Tensor loss = tenon::nll_loss(model.forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      if (step % 200 == 0) std::printf("epoch %d, step %d: loss %.4f\n", epoch, step, loss.item<double>());
    }
    tenon::NoGradGuard no_grad;
    model.eval();
    double loss = 0, right = 0;
    for (const auto& batch : *test) {
      const tenon::Tensor output = model.forward(batch.data);
      loss += tenon::nll_loss(output, batch.target, /*weight=*/{}, tenon::Reduction::Sum).item<double>();
      right += output.argmax(1).eq(batch.target).sum().item<double>();
    }
    std::printf("epoch %d: test loss %.4f, accuracy %.1f %%\n", epoch, loss / test_size, 100 * right / test_size);
  }
}
