// Gradients: of expressions, into leaves or handed back, of gradients themselves, and of a function of one's own.
#include <tenon/tenon.h>

#include <iostream>

namespace {

namespace ag = tenon::autograd;

/// x -> x * scale, whose backward is written by hand.
class Scale : public ag::Function<Scale> {
 public:
  static tenon::Tensor forward(ag::AutogradContext* context, const tenon::Tensor& x, double scale) {
    context->saved_data["scale"] = scale;
    return x * scale;
  }
  static ag::tensor_list backward(ag::AutogradContext* context, ag::tensor_list gradients) {
    return {gradients[0] * context->saved_data["scale"].toDouble(), tenon::Tensor()};
  }
};

void leaves() {
  const tenon::Tensor x = tenon::ones({2, 2}, tenon::requires_grad());
  const tenon::Tensor y = x + 2;
  const tenon::Tensor z = y * y * 3;
  std::cout << "y was made by " << y.grad_fn()->name() << ", z by " << z.grad_fn()->name() << '\n';
  z.mean().backward();
  std::cout << "d mean(3 (x + 2)^2) / dx =\n" << x.grad() << '\n';
}

void no_history() {
  const tenon::Tensor x = tenon::randn({3}, tenon::requires_grad());
  std::cout << std::boolalpha << "x^2 requires a gradient: " << x.pow(2).requires_grad();
  tenon::NoGradGuard no_grad;
  std::cout << "; under a NoGradGuard: " << x.pow(2).requires_grad() << '\n';
}

/// The norm of a gradient as a part of the loss: backward goes through backward.
void gradient_penalty() {
  tenon::manual_seed(1);
  tenon::nn::Linear model(4, 3);
  const tenon::Tensor input = tenon::randn({5, 4}).requires_grad_(true);
  const tenon::Tensor output = model->forward(input);
  const tenon::Tensor loss = tenon::nn::MSELoss()(output, tenon::randn({5, 3}));
  const tenon::Tensor slope = ag::grad({output}, {input}, {tenon::ones_like(output)}, true, true)[0];
  const tenon::Tensor penalty = (slope.norm(2, -1) - 1).pow(2).mean();
  (loss + penalty).backward();
  std::cout << "the penalty reaches the weights: " << (model->weight.grad().abs().sum().item<float>() > 0) << '\n';
}

void own_function() {
  const tenon::Tensor x = tenon::ones({3}, tenon::requires_grad());
  Scale::apply(x, 2.5).sum().backward();
  std::cout << "d sum(2.5 x) / dx =\n" << x.grad() << '\n';
}

}  // namespace

int main() {
  leaves();
  no_history();
  gradient_penalty();
  own_function();
}
