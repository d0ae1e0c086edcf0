// What libtorch's users do with autograd: leaves, graphs, gradients of gradients, functions of their own, hooks, modes,
// in-place writes and indexing. Exits with the number of surprises.
#include <torch/torch.h>

#include <iostream>
#include <vector>

namespace {

using namespace torch::indexing;

int surprises = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  ++surprises;
  std::cout << "surprise: " << what << "\n";
}

/// x^3 with a backward of its own.
struct Cube : public torch::autograd::Function<Cube> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grads) {
    const auto x = ctx->get_saved_variables()[0];
    return {grads[0] * 3 * x * x};
  }
};

void basics() {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  auto z = y * y * 3;
  expect(y.grad_fn()->name() == "AddBackward0", "the sum's node has its name");
  auto out = z.mean();
  out.backward();
  expect(torch::allclose(x.grad(), torch::full({2, 2}, 4.5)), "d mean(3 (x + 2)^2) / dx = 4.5");
  expect(x.is_leaf() && !y.is_leaf(), "only x is a leaf");
  x.mutable_grad() = torch::Tensor();
  expect(!x.grad().defined(), "a gradient can be dropped");
}

void second_order() {
  auto x = torch::randn({4}, torch::dtype(torch::kFloat64).requires_grad(true));
  auto first = torch::autograd::grad({Cube::apply(x).sum()}, {x}, {}, torch::nullopt, /*create_graph=*/true)[0];
  auto second = torch::autograd::grad({first.sum()}, {x})[0];
  expect(torch::allclose(first, 3 * x * x), "first derivative of the cube");
  expect(torch::allclose(second, 6 * x), "second derivative of the cube");
}

void hooks_and_modes() {
  auto v = torch::tensor({0.f, 0.f, 0.f}, torch::requires_grad());
  auto handle = v.register_hook([](torch::Tensor grad) { return grad * 2; });
  v.backward(torch::tensor({1.f, 2.f, 3.f}));
  expect(torch::equal(v.grad(), torch::tensor({2.f, 4.f, 6.f})), "a hook doubles the gradient");
  v.remove_hook(handle);
  {
    torch::NoGradGuard no_grad;
    expect(!(v * 2).requires_grad(), "nothing is recorded under NoGradGuard");
  }
  {
    torch::AutoGradMode on(true);
    expect((v * 2).requires_grad(), "AutoGradMode(true) records");
  }
  {
    c10::InferenceMode guard;
    expect(torch::ones({2}).is_inference(), "tensors made in inference mode are inference tensors");
  }
  expect(!v.detach().requires_grad(), "detach cuts the history");
}

void in_place_and_indexing() {
  auto a = torch::arange(12, torch::kFloat32).view({3, 4}).requires_grad_();
  auto b = a.clone();
  b.index_put_({Slice(None, 2), Ellipsis}, 0);
  b.index({Ellipsis, -1}).mul_(10);
  b.sum().backward();
  expect(torch::equal(a.grad()[2], torch::tensor({1.f, 1.f, 1.f, 10.f})), "in-place writes through views are followed");
  expect(a.grad()[0].sum().item<float>() == 0, "overwritten values get no gradient");
  expect(torch::equal(b.detach().index({torch::tensor({2, 0}), 1}), torch::tensor({9.f, 0.f})),
         "integer tensors gather");
  expect(b.detach().masked_select(b.detach() > 9).numel() == 2, "masks select");
  bool refused = false;
  try {
    a.add_(1);
  } catch (const c10::Error& error) {
    refused = std::string(error.what()).find("a leaf Variable that requires grad") != std::string::npos;
  }
  expect(refused, "in-place on a leaf that requires grad is refused in PyTorch's words");
}

}  // namespace

int main() {
  torch::manual_seed(3);
  basics();
  second_order();
  hooks_and_modes();
  in_place_and_indexing();
  std::cout << "surprises: " << surprises << "\n";
  return surprises;
}
