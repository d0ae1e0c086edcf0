// The version counter of a tensor: bumped by every in-place write, shared by views and detached aliases, fresh for what
// is computed or cloned. Autograd compares it with the version that it saved, and refuses to use a tensor that was
// overwritten.
#include <tenon/tenon.h>

#include <cstdio>

namespace {

void show(const char* what, const tenon::Tensor& x) {
  std::printf("%-34s _version %u\n", what, static_cast<unsigned>(x._version()));
}

}  // namespace

int main() {
  tenon::Tensor x = tenon::ones({2, 2}, tenon::requires_grad());
  show("x = ones({2, 2})", x);

  tenon::Tensor y = x * 2;
  show("after y = x * 2", x);

  x = x + 1.0;  // another tensor under the old name
  show("after x = x + 1.0", x);

  tenon::Tensor alias = x.detach();
  alias.add_(1);
  show("alias = x.detach(); alias.add_(1)", alias);

  x.add_(1);  // alias and x share one counter
  show("after x.add_(1)", x);

  show("x.clone()", x.clone());

  // What the counter is for: exp saved its result for backward, then someone wrote into it.
  tenon::Tensor w = tenon::ones({2}, tenon::requires_grad());
  tenon::Tensor e = w.exp();
  e.mul_(2);
  try {
    e.sum().backward();
  } catch (const tenon::Error& error) {
    std::printf("\nbackward: %s\n", error.what());
    return 0;
  }
  std::printf("backward should have failed\n");
  return 1;
}
