// The figures that every user of PyTorch knows: a 1000 x 1000 float tensor takes 3.81 MB, and 20 MB from the device;
// when it is gone the 20 MB stay cached, until empty_cache() gives them back.
#include <tenon/device/memory_api.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/tenon.h>

#include <cstdio>

namespace {

void show(const char* when) {
  const auto megabytes = [](std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); };
  std::printf("%-32s allocated %6.2f MB   reserved %6.2f MB\n", when, megabytes(tenon::memory_allocated()),
              megabytes(tenon::memory_reserved()));
}

}  // namespace

int main() {
  tenon::set_allocator("cpu", tenon::allocator_from_spec("caching"));
  {
    tenon::Tensor x = tenon::empty({1000, 1000});
    show("x = empty({1000, 1000})");
  }
  show("x is gone");
  tenon::empty_cache();
  show("after empty_cache()");
}
