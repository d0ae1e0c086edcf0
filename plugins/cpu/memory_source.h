// The CPU's memory is the host's: see tenon/memory/host_memory_source.h, which the simulated backend shares.
#pragma once

#include <tenon/memory/sources/host_memory_source.h>

namespace tenon::cpu {

using MemoryConfig = HostMemoryConfig;
using CpuMemorySource = HostMemorySource;

}  // namespace tenon::cpu
