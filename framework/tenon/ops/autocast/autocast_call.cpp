// What autocast asks of its table.
#include <tenon/autograd/autocast.h>
#include <tenon/ops/autocast/autocast_call.h>

#include <fmt/format.h>

namespace tenon::autocast::detail {

Rule rule_for(const Row& row, DeviceType kind) {
  return has_accelerator_lists(kind) ? row.on_accelerators : row.on_cpu;
}

void refuse(const Row& row) {
  throw Error(
      fmt::format("{} is unsafe to autocast: its gradients overflow in 16 bits. Use "
                  "{}_with_logits, which is safe, or turn autocast off around it",
                  row.name, row.name));
}

Dtype lower_dtype(DeviceType kind) { return get_autocast_dtype(kind); }

}  // namespace tenon::autocast::detail
