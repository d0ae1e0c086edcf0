// The plugin `caching`.
#include "caching_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

static void tenon_register_plugin(tenon::plugin::Host& host) {
  host.add_allocator(
      {.name = "caching",
       .summary = "PyTorch's caching allocator, decision by decision: best fit, split on allocate, merge on free",
       .options = tenon::caching::option_schema(false),
       .create = [](const tenon::AllocatorContext& context) { return tenon::caching::make_allocator(context, false); },
       .traits = tenon::caching::traits(false)});
}

TENON_PLUGIN(caching, "1.0", &tenon_register_plugin)
