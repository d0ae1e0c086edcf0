// What guides tell their readers to do about memory, each with and without: MiB that are allocated in the end, and at
// the peak.
#include <tenon/device/memory_api.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/tenon.h>

#include <cstdio>
#include <functional>
#include <vector>

namespace {

using tenon::Tensor;

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// What `habit` leaves allocated, as it returns, and its peak, beside what was there before.
void show(const char* what, const std::function<Tensor()>& habit) {
  tenon::empty_cache();
  tenon::reset_peak_memory_stats();
  const std::size_t before = tenon::memory_allocated();
  const Tensor kept = habit();
  std::printf("%-46s left %6.2f   peak %6.2f\n", what, mebibytes(tenon::memory_allocated() - before),
              mebibytes(tenon::max_memory_allocated() - before));
}

}  // namespace

int main() {
  tenon::set_allocator("cpu", tenon::allocator_from_spec("caching"));
  tenon::manual_seed(1);
  tenon::nn::Sequential model(tenon::nn::Linear(512, 512), tenon::nn::ReLU(), tenon::nn::Linear(512, 512));
  const Tensor x = tenon::randn({1024, 512});  // 2 MiB, as is whatever a layer gives
  const auto loss = [&] { return model->forward(x).square().mean(); };

  show("total += loss, ten times", [&] {
    Tensor total = tenon::zeros({});
    for (int i = 0; i < 10; ++i) total = total + loss();  // keeps the graphs of ten forward passes
    return total;
  });
  show("total += loss.item()", [&] {
    double total = 0;
    for (int i = 0; i < 10; ++i) total += loss().item<double>();
    return tenon::full({}, total);
  });
  show("a forward pass", [&] { return model->forward(x); });
  show("  with no_grad", [&] {
    const tenon::NoGradGuard no_grad;
    return model->forward(x);
  });
  show("outputs of ten batches, kept", [&] {
    std::vector<Tensor> outputs;
    for (int i = 0; i < 10; ++i) outputs.push_back(model->forward(x).mean(1));
    return tenon::stack(outputs);
  });
  show("  kept detached", [&] {
    std::vector<Tensor> outputs;
    for (int i = 0; i < 10; ++i) outputs.push_back(model->forward(x).mean(1).detach());
    return tenon::stack(outputs);
  });
  show("y = x + 1, five in a row", [&] { return x + 1 + 1 + 1 + 1 + 1; });
  show("  y.add_(1) after the first", [&] { return (x + 1).add_(1).add_(1).add_(1).add_(1); });
  show("a step, then zero_grad(set_to_none=false)", [&] {
    loss().backward();
    model->zero_grad(/*set_to_none=*/false);
    return Tensor();
  });
  model->zero_grad(/*set_to_none=*/true);
  show("a step, then zero_grad(set_to_none=true)", [&] {
    loss().backward();
    model->zero_grad(/*set_to_none=*/true);
    return Tensor();
  });
  tenon::randn({1024, 1024});  // 4 MiB, gone at once
  std::printf("reserved %5.2f, after empty_cache() ", mebibytes(tenon::memory_reserved()));
  tenon::empty_cache();
  std::printf("%5.2f\n", mebibytes(tenon::memory_reserved()));
}
