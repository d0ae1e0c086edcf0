// How full a device is, as GPUtil shows it: at the start, with ten tensors, without them, and after empty_cache(). The
// device has addresses and no memory behind them, so that 4 GB fit anywhere.
#include <tenon/tenon.h>

#include <cstdio>
#include <optional>
#include <vector>

namespace {

const tenon::Device kDevice("simulated:0");

void show(const char* when) {
  const tenon::SourceUsage usage = tenon::mem_get_info(kDevice);
  const double used = static_cast<double>(usage.total_bytes - usage.free_bytes);
  const double allocated = static_cast<double>(tenon::memory_allocated(kDevice));
  std::printf("%-28s memory %3.0f %%   of it in tensors %3.0f %%\n", when,
              100 * used / static_cast<double>(usage.total_bytes), used == 0 ? 0 : 100 * allocated / used);
}

}  // namespace

int main() {
  tenon::set_backend_option("simulated", "mode", "address-only");
  tenon::set_backend_option("simulated", "capacity", "16GiB");
  std::optional<tenon::Tensor> context = tenon::empty({200'000'000}, kDevice);  // another part of the program
  show("at the start");
  std::vector<tenon::Tensor> tensors;
  for (int i = 0; i < 10; ++i) tensors.push_back(tenon::randn({10'000'000, 10}, kDevice));
  show("ten tensors");
  tensors.clear();
  show("deleted: the cache has them");
  tenon::empty_cache(kDevice);
  show("after empty_cache()");
}
