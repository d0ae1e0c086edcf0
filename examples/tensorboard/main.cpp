// A classifier of two spirals, watched in TensorBoard: loss, memory and weights step by step, the picture that it
// learns, and the runs of two learning rates in the table of hyperparameters.
//
//   build/release/examples/tensorboard runs && tensorboard --logdir runs
#include <tenon/tenon.h>

#include <cmath>
#include <cstdio>
#include <string>

namespace {

using tenon::Tensor;

constexpr int kPoints = 400, kSteps = 150;
constexpr std::int64_t kSide = 32;

/// Points of two spirals, [kPoints, 2], and which one each is on.
std::pair<Tensor, Tensor> spirals() {
  Tensor points = tenon::empty({kPoints, 2});
  Tensor classes = tenon::empty({kPoints}, tenon::kInt64);
  for (int i = 0; i < kPoints; ++i) {
    const double turn = 6.0 * i / kPoints, phase = i % 2 == 0 ? 0 : 3.14159265;
    points[i].copy_(tenon::tensor({turn / 6 * std::cos(turn + phase), turn / 6 * std::sin(turn + phase)}));
    classes[i] = i % 2;
  }
  return {points, classes};
}

double train(double lr, const std::string& folder) {
  tenon::manual_seed(1);
  tenon::SummaryWriter writer(folder);
  tenon::nn::Sequential model(tenon::nn::Linear(2, 64), tenon::nn::Tanh(), tenon::nn::Linear(64, 64), tenon::nn::Tanh(),
                              tenon::nn::Linear(64, 2));
  tenon::optim::Adam optimizer(model->parameters(), tenon::optim::AdamOptions(lr));
  const auto [points, classes] = spirals();
  const Tensor line = tenon::linspace(-1, 1, kSide);
  const Tensor plane = tenon::stack(tenon::meshgrid({line, line}, "ij"), 2).reshape({-1, 2});
  double loss = 0;
  for (int step = 1; step <= kSteps; ++step) {
    optimizer.zero_grad();
    tenon::reset_peak_memory_stats();
    const Tensor output = tenon::nn::functional::cross_entropy(model->forward(points), classes);
    output.backward();
    optimizer.step();
    loss = output.item<double>();
    writer.add_scalar("train/loss", loss, step);
    writer.add_scalars("Memory",
                       {{"Allocated", static_cast<double>(tenon::memory_allocated())},
                        {"Peak", static_cast<double>(tenon::max_memory_allocated())}},
                       step);
    if (step % 50 != 0) continue;
    for (const auto& parameter : model->named_parameters()) {
      writer.add_histogram("weights/" + parameter.key(), parameter.value(), step);
      writer.add_histogram("gradients/" + parameter.key(), parameter.value().grad(), step);
    }
    const tenon::NoGradGuard no_grad;
    writer.add_image("where is the second spiral",
                     model->forward(plane).softmax(1).select(1, 1).reshape({kSide, kSide}), step, {}, "HW");
  }
  writer.add_text("model", "two hidden layers of 64, **tanh** between them");
  writer.add_hparams({{"lr", lr}, {"optimizer", "adam"}}, {{"result/loss", loss}}, ".");
  return loss;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string folder = count > 1 ? arguments[1] : "runs";
  for (const double lr : {0.001, 0.03})
    std::printf("lr %.3f: loss %s after %d steps\n", lr,
                train(lr, folder + "/lr" + std::to_string(lr)) < 0.3 ? "below 0.3" : "above 0.3", kSteps);
}
