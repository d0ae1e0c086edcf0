// driver_async: CUDA's stream-ordered allocator, a baseline. Where the device's driver has such a pool, that one itself
// (cudaMallocAsync); on any other source, its rules.
#include "on_driver.h"
#include "rules.h"

#include <tenon/memory/forwarding.h>
#include <tenon/plugin/allocator_plugin.h>

#include <memory>
#include <utility>

namespace {

using namespace tenon;
using namespace tenon::driver_async;

class DriverAsync final : public ForwardingAllocator {
 public:
  explicit DriverAsync(const AllocatorContext& context) : ForwardingAllocator(chosen(context)) {}

  static OptionSchema options() { return Rules::options(); }
  static AllocatorTraits traits() { return Rules::traits(); }
  bool is_thread_safe() const override { return inner_->is_thread_safe(); }

 private:
  static std::unique_ptr<Allocator> chosen(const AllocatorContext& context) {
    const Options& options = context.options;
    auto pool = context.source.make_driver_pool(
        {.release_threshold = options.size("release_threshold"),
         .reuse_allow_opportunistic = options.boolean("reuse_allow_opportunistic"),
         .reuse_allow_internal_dependencies = options.boolean("reuse_allow_internal_dependencies")});
    if (pool == nullptr) return std::make_unique<tiled::TiledAllocator<Rules>>(context);
    Options keeping = options;  // a graph uses what it has freed in its next run
    keeping.set("release_threshold", std::numeric_limits<std::int64_t>::max());
    return std::make_unique<OnDriver>(context.source, std::move(pool), [&source = context.source, keeping] {
      return std::make_unique<tiled::TiledAllocator<Rules>>(AllocatorContext{source, keeping});
    });
  }
};

}  // namespace

TENON_ALLOCATOR(driver_async, "1.0", DriverAsync, "cudaMallocAsync where the driver has it, else its rules; a baseline")
