// Rows of the gradient table: losses, under each of the three reductions.
#include "gradient_case.h"

namespace tenon::test {

using List = std::vector<Tensor>;

std::vector<GradientCase> loss_gradients() {
  std::vector<GradientCase> rows;
  for (const std::int64_t reduction : {0, 1, 2}) {
    const auto targets = [](const Tensor& x) {
      return (x.size(0) == 0 ? zeros({0}, kInt64) : tensor({1, 0, 3})).to(x.device());
    };
    // Of the input's sizes, and the same at every evaluation.
    const auto partner = [](const Tensor& x) {
      return arange(0, x.numel(), x.options()).mul(0.7).sin().mul(0.4).add(0.5).view(x.sizes());
    };
    const auto row = [&](std::string name, std::function<Tensor(const Tensor&)> function, double low = -2,
                         double high = 2) {
      rows.push_back(of_matrix(name + ", reduction " + std::to_string(reduction), std::move(function), low, high));
    };
    row("nll_loss", [=](const Tensor& x) { return nll_loss(x, targets(x), {}, reduction); });
    row("cross_entropy", [=](const Tensor& x) { return cross_entropy_loss(x, targets(x), {}, reduction); });
    row("weighted cross_entropy",
        [=](const Tensor& x) { return cross_entropy_loss(x, targets(x), arange(1, 5, x.options()), reduction, 0); });
    row("mse_loss", [=](const Tensor& x) { return mse_loss(x, partner(x), reduction); });
    row("l1_loss", [=](const Tensor& x) { return l1_loss(x, partner(x) - 5, reduction); });
    row("smooth_l1_loss", [=](const Tensor& x) { return smooth_l1_loss(x, partner(x), reduction); });
    row("huber_loss", [=](const Tensor& x) { return huber_loss(x, partner(x), reduction, 0.5); });
    row("soft_margin_loss", [=](const Tensor& x) { return soft_margin_loss(x, partner(x), reduction); });
    row("kl_div", [=](const Tensor& x) { return kl_div(x, partner(x), reduction); });
    row(
        "binary_cross_entropy", [=](const Tensor& x) { return binary_cross_entropy(x, partner(x), {}, reduction); },
        0.2, 0.8);
    row("binary_cross_entropy_with_logits",
        [=](const Tensor& x) { return binary_cross_entropy_with_logits(x, partner(x), {}, {}, reduction); });
  }
  return rows;
}

}  // namespace tenon::test
