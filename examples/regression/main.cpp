// Fits a polynomial: one linear layer on the powers of x learns the coefficients that the data were made with.
#include <tenon/tenon.h>

#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

namespace {

constexpr int kDegree = 4;

/// (N, 1) -> (N, kDegree): x, x^2, …
tenon::Tensor powers_of(const tenon::Tensor& x) {
  std::vector<tenon::Tensor> columns;
  for (int power = 1; power <= kDegree; ++power) columns.push_back(x.pow(power));
  return tenon::cat(columns, 1);
}

std::string formula(const tenon::Tensor& weights, const tenon::Tensor& bias) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << "y = ";
  for (int power = kDegree; power >= 1; --power) text << weights[power - 1].item<float>() << " x^" << power << " + ";
  text << bias.item<float>();
  return text.str();
}

}  // namespace

int main() {
  tenon::manual_seed(3);
  const tenon::Tensor wanted = tenon::randn({kDegree, 1}) * 5;
  const tenon::Tensor wanted_bias = tenon::randn({1}) * 5;

  tenon::nn::Linear model(kDegree, 1);
  tenon::optim::SGD optimizer(model->parameters(), tenon::optim::SGDOptions(0.1).momentum(0.9));

  float loss = 1;
  int step = 0;
  for (; step < 5000 && loss > 1e-5f; ++step) {
    const tenon::Tensor x = tenon::rand({64, 1}) * 2 - 1;
    const tenon::Tensor inputs = powers_of(x);
    const tenon::Tensor targets = inputs.mm(wanted) + wanted_bias;
    optimizer.zero_grad();
    const tenon::Tensor error = tenon::nn::functional::smooth_l1_loss(model->forward(inputs), targets);
    error.backward();
    optimizer.step();
    loss = error.item<float>();
  }
  std::cout << "loss " << loss << " after " << step << " steps\n"
            << "learned " << formula(model->weight.view({-1}), model->bias) << '\n'
            << "wanted  " << formula(wanted.view({-1}), wanted_bias) << '\n';
  return loss < 1e-4f ? 0 : 1;
}
