// The plugin `planned`.
#include "planned_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

using tenon::planned::PlannedAllocator;

TENON_ALLOCATOR(planned, "1.0", PlannedAllocator, "serves from a plan made of an earlier run, best fit beside it")
