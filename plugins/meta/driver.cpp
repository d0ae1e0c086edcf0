// A device that keeps nothing: writes end here, reads are refused.
#include "driver.h"

#include <tenon/core/error.h>

namespace tenon::meta {

MetaDriver::MetaDriver(const std::string& device, std::size_t capacity_bytes)
    : memory_({.device = device, .capacity_bytes = capacity_bytes}) {}

DeviceProperties MetaDriver::properties() const {
  return {.name = "meta",
          .capacity_bytes = memory_.traits().capacity_bytes,
          .computes = false,
          .details = {{"memory", "counted, not taken: tensors have sizes and no data"}}};
}

StreamRef MetaDriver::create_stream(int) { return {next_stream_.fetch_add(1, std::memory_order_relaxed)}; }

void MetaDriver::copy(void*, const void*, std::size_t bytes, CopyKind kind, StreamRef) {
  if (kind == CopyKind::kDeviceToHost && bytes > 0) {
    throw NotImplementedError(memory_.traits().device + ": cannot copy to the host; no data");
  }
}

void MetaDriver::fill(void*, std::uint8_t, std::size_t, StreamRef) {}

bool MetaDriver::begin_kernel(StreamRef) { return false; }

}  // namespace tenon::meta
