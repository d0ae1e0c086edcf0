// The plugin `expandable`: the caching policy with expandable segments.
#include "../caching/caching_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

static void tenon_register_plugin(tenon::plugin::Host& host) {
  host.add_allocator(
      {.name = "expandable",
       .summary = "PyTorch's expandable segments: address space per stream, memory behind it page by page",
       .options = tenon::caching::option_schema(true),
       .create = [](const tenon::AllocatorContext& context) { return tenon::caching::make_allocator(context, true); },
       .traits = tenon::caching::traits(true)});
}

TENON_PLUGIN(expandable, "1.0", &tenon_register_plugin)
