// `caching`, and before each request a delay of so many steps: a build that is slower by as much as one likes, for
// trials of what `tenon bench` names. Never installed.
#include <caching/caching_allocator.h>

#include <tenon/memory/forwarding.h>
#include <tenon/plugin/allocator_plugin.h>

namespace {

using namespace tenon;

constexpr char kSteps[] = "delay";

OptionSchema options() {
  OptionSchema schema = caching::option_schema(false);
  schema.push_back(OptionSpec::integer(kSteps, 0, "steps of about a cycle before each request"));
  return schema;
}

class Delayed final : public ForwardingAllocator {
 public:
  Delayed(std::unique_ptr<Allocator> inner, std::int64_t steps)
      : ForwardingAllocator(std::move(inner)), steps_(steps) {}
  Block allocate(const Request& request) override {
    Request later = request;
    // Each step needs the one before, and the request needs the last: no processor can do them on the side.
    for (std::int64_t i = 0; i < steps_; ++i) {
      later.bytes += 3;
      asm volatile("" : "+r"(later.bytes));
    }
    later.bytes -= 3 * static_cast<std::size_t>(steps_);
    return inner_->allocate(later);
  }
  bool is_thread_safe() const override { return true; }

 private:
  const std::int64_t steps_;
};

void tenon_register_plugin(plugin::Host& host) {
  host.add_allocator({.name = "delayed_caching",
                      .summary = "for trials: caching, with a delay",
                      .options = options(),
                      .create =
                          [](const AllocatorContext& context) {
                            return std::make_unique<Delayed>(caching::make_allocator(context, false),
                                                             context.options.integer(kSteps));
                          },
                      .traits = caching::traits(false)});
}

}  // namespace

TENON_PLUGIN(delayed_caching, "1.0", &tenon_register_plugin)
