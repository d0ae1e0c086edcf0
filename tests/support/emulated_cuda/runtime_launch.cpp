// What the code that nvcc makes for the host calls: kernels are registered before main() and launched by the address of
// their stub.
#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"
#include "support/emulated_cuda/ptx/fat_binary.h"
#include "support/emulated_cuda/ptx/launch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

using namespace tenon::emulated_cuda;

namespace {

/// A fat binary, read when its first kernel is launched on a device of a compute capability.
struct Binary {
  const void* wrapper = nullptr;
  std::map<int, std::unique_ptr<ptx::Module>> modules;
};

struct Kernel {
  Binary* binary;
  std::string name;
  std::size_t dynamic_shared_bytes = 0;  ///< asked for by cudaFuncSetAttribute
};

std::unordered_map<const void*, Kernel>& kernels() {
  static auto& all = *new std::unordered_map<const void*, Kernel>;
  return all;
}

const ptx::Module& module_of(Binary& binary, Machine& machine) {
  const Settings& settings = machine.settings;
  std::unique_ptr<ptx::Module>& module =
      settings.faults.empty() ? binary.modules[settings.compute_capability] : machine.faulty_modules[&binary];
  if (module == nullptr) {
    const std::string text = ptx::text_of_fat_binary(binary.wrapper, settings.compute_capability);
    module = std::make_unique<ptx::Module>(ptx::read_module(ptx::with_faults(text, settings.faults)));
  }
  return *module;
}

/// The module's variables lie on each device that runs a kernel of it.
const std::vector<Address>& variables_of(Machine& machine, const ptx::Module& module, int device) {
  const auto [found, added] = machine.module_variables.try_emplace({&module, device});
  if (!added) return found->second;
  for (const ptx::Variable& variable : module.variables) {
    const std::size_t bytes = std::max<std::size_t>(variable.bytes.size(), 1);
    const Address address = machine.space.take(bytes, 256);
    auto backing = std::make_shared<Backing>(bytes);
    std::memcpy(backing->data(), variable.bytes.data(), variable.bytes.size());
    machine.space.add({.address = address, .bytes = bytes, .owner = device, .backing = std::move(backing)});
    found->second.push_back(address);
  }
  return found->second;
}

struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};
thread_local Configuration t_configuration;

ptx::Dimensions dimensions(const dim3& d) { return {d.x, d.y, d.z}; }

std::vector<unsigned char> params_of(const ptx::Function& kernel, void** arguments) {
  std::vector<unsigned char> bytes(kernel.param_bytes);
  for (std::size_t i = 0; i < kernel.parameter_names.size(); ++i) {
    const ptx::Slot& slot = kernel.params.at(kernel.parameter_names[i]);
    std::memcpy(bytes.data() + slot.offset, arguments[i], slot.bytes);
  }
  return bytes;
}

cudaError_t launch(Call& call, const void* stub, const Configuration& asked, void** arguments) {
  if (call.refused()) return call.refusal();
  const auto found = kernels().find(stub);
  if (found == kernels().end()) return call.result(cudaErrorInvalidDeviceFunction);
  const ptx::Module& module = module_of(*found->second.binary, call.machine());
  const ptx::Function& kernel = module.function(found->second.name);
  Machine& machine = call.machine();
  Stream& stream = call.stream(asked.stream);
  if (stream.context != &call.context()) return call.result(cudaErrorInvalidResourceHandle);
  ptx::LaunchConfig config{.grid = dimensions(asked.grid),
                           .block = dimensions(asked.block),
                           .dynamic_shared_bytes = asked.shared_bytes,
                           .most_dynamic_shared_bytes = found->second.dynamic_shared_bytes};
  if (!ptx::why_not_launchable(kernel, config).empty()) return call.result(cudaErrorInvalidConfiguration);
  if (machine.settings.order == Order::kSeeded) config.seed = machine.settings.seed + ++machine.next_id;
  return call.result(call.queue(
      stream,
      {.told = {.kernel = found->second.name},
       .run = [&machine, &module, &kernel, config, context = stream.context, params = params_of(kernel, arguments)] {
         ptx::Launch(machine, *context, module, kernel, config, params, variables_of(machine, module, context->device))
             .run();
       }}));
}

}  // namespace

std::size_t tenon::emulated_cuda::read_kernels() {
  Call call("the reader", Call::Needs::kNothing);
  for (const auto& [stub, kernel] : kernels()) module_of(*kernel.binary, call.machine()).function(kernel.name);
  return kernels().size();
}

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  auto* binary = new Binary{.wrapper = wrapper};  // as long as the program
  return reinterpret_cast<void**>(binary);
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** binary, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  kernels()[stub] = {reinterpret_cast<Binary*>(binary), name};
}

/// A variable that the host knows. It cannot reach it: the calls that do are not emulated.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st* stream) {
  t_configuration = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  *grid = t_configuration.grid;
  *block = t_configuration.block;
  *shared_bytes = t_configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = t_configuration.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                               cudaStream_t stream) {
  Call call("cudaLaunchKernel");
  return launch(call, kernel, {grid, block, shared_bytes, stream}, arguments);
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                             cudaStream_t stream) {
  Call call("cudaLaunchKernel");
  return launch(call, stub, {grid, block, shared_bytes, stream}, arguments);
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute, int value) {
  Call call("cudaFuncSetAttribute");
  if (call.refused()) return call.refusal();
  const auto found = kernels().find(stub);
  if (found == kernels().end()) return call.result(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
    misuse("the function attribute " + std::to_string(attribute) + " is not emulated");
  const int capability = call.machine().settings.compute_capability;
  const ptx::Function& kernel = module_of(*found->second.binary, call.machine()).function(found->second.name);
  if (value < 0 || kernel.shared_bytes + static_cast<std::size_t>(value) > most_shared_bytes(capability))
    return call.result(cudaErrorInvalidValue);
  found->second.dynamic_shared_bytes = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  Call call("cudaFuncGetAttributes");
  if (call.refused()) return call.refusal();
  const auto found = kernels().find(stub);
  if (found == kernels().end()) return call.result(cudaErrorInvalidDeviceFunction);
  const ptx::Module& module = module_of(*found->second.binary, call.machine());
  const ptx::Function& kernel = module.function(found->second.name);
  *attributes = {};
  attributes->maxThreadsPerBlock = static_cast<int>(kernel.max_threads);
  attributes->sharedSizeBytes = kernel.shared_bytes;
  attributes->ptxVersion = attributes->binaryVersion = module.target;
  return cudaSuccess;
}

/// As many as there is room for 2048 threads and 64 KiB of shared memory.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub, int threads,
                                                                   std::size_t dynamic_shared_bytes, unsigned) {
  Call call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags");
  if (call.refused()) return call.refusal();
  const auto found = kernels().find(stub);
  if (found == kernels().end()) return call.result(cudaErrorInvalidDeviceFunction);
  if (threads <= 0) return call.result(cudaErrorInvalidValue);
  const ptx::Module& module = module_of(*found->second.binary, call.machine());
  const std::size_t shared = module.function(found->second.name).shared_bytes + dynamic_shared_bytes;
  *blocks = 2048 / threads;
  if (shared > 0) *blocks = std::min(*blocks, static_cast<int>(64 * 1024 / shared));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub, void** arguments) {
  Call call("cudaLaunchKernelExC");
  if (config->numAttrs != 0) misuse("cudaLaunchKernelExC with attributes is not emulated");
  return launch(call, stub, {config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream}, arguments);
}

}  // extern "C"
