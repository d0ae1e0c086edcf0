// The plugin `stitching`.
#include "stitching_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

TENON_ALLOCATOR(stitching, "1.0", tenon::stitching::StitchingAllocator,
                "GMLake: free blocks are stitched into one by mapping their memory behind each other")
