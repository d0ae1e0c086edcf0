// The plugin `mortise`.
#include "mortise_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

TENON_ALLOCATOR(mortise, "1.0", tenon::mortise::MortiseAllocator,
                "least memory without knowing the program: pages are shared, free pieces are joined by mapping them")
