// The plugin "cpu": registers the backend and its kernels.
#include <tenon/plugin/backend_plugin.h>

#include <memory>

#include "backend.h"
#include "kernels/kernels.h"

namespace tenon::cpu {
namespace {

// The host outlives its plugins' registrations; kept so that the option `isa` can register another level's kernels.
plugin::Host* host_in_use = nullptr;

void register_kernels(Isa isa) {
  add_all_kernels(
      {.add = [](void* host, const char* operator_name,
                 Kernel kernel) { static_cast<plugin::Host*>(host)->add_kernel(kCPU, operator_name, kernel); },
       .host = host_in_use},
      isa);
}

void register_plugin(plugin::Host& host) {
  host_in_use = &host;
  host.add_backend(std::make_unique<CpuBackend>(&register_kernels));
  register_kernels(widest_isa());
}

}  // namespace
}  // namespace tenon::cpu

TENON_PLUGIN(cpu, "0.1.0", &tenon::cpu::register_plugin)
