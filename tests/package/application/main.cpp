// A user's program: a gradient through the installed library, with the plugins that it finds beside it.
#include <tenon/tenon.h>

#include <cstdio>

int main() {
  auto x = tenon::ones({2, 2}, tenon::requires_grad());
  (x * 3).sum().backward();
  const float gradient = x.grad()[0][0].item<float>();
  std::printf("gradient %.1f\n", gradient);
  return gradient == 3.0f ? 0 : 1;
}
