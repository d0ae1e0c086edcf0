// NVML by dlopen. Its header is not part of every toolkit: what is used of it stands here, as its documentation has it
// ("NVML API Reference Guide").
#include "nvml.h"

#include <tenon/core/error.h>

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace tenon::cuda {

struct Nvml::Functions {
  using Result = int;  // nvmlReturn_t
  static constexpr Result kSuccess = 0, kInsufficientSize = 7;
  using GpuHandle = void*;  // nvmlDevice_t

  struct Utilization {  // nvmlUtilization_t
    unsigned gpu = 0, memory = 0;
  };
  struct Memory {  // nvmlMemory_t
    unsigned long long total = 0, free = 0, used = 0;
  };
  struct ProcessInfo {  // nvmlProcessInfo_t of _v3
    unsigned pid = 0;
    unsigned long long used_bytes = 0;
    unsigned gpu_instance = 0, compute_instance = 0;
  };
  static constexpr unsigned long long kUnknownBytes = std::numeric_limits<unsigned long long>::max();

  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  const char* (*error_string)(Result) = nullptr;
  Result (*find)(const char*, GpuHandle*) = nullptr;
  Result (*utilization)(GpuHandle, Utilization*) = nullptr;
  Result (*memory)(GpuHandle, Memory*) = nullptr;
  Result (*processes)(GpuHandle, unsigned*, ProcessInfo*) = nullptr;

  void check(Result result, const char* what) const {
    if (result != kSuccess) throw Error(std::string("NVML: ") + what + ": " + error_string(result));
  }

  std::vector<ProcessInfo> processes_on(GpuHandle gpu) const {
    std::vector<ProcessInfo> infos;
    // How many there are is known by asking; more may have come meanwhile.
    for (unsigned count = 0;;) {
      infos.resize(count);
      const Result result = processes(gpu, &count, infos.empty() ? nullptr : infos.data());
      if (result == kInsufficientSize) continue;
      check(result, "nvmlDeviceGetComputeRunningProcesses");
      infos.resize(std::min<std::size_t>(infos.size(), count));
      return infos;
    }
  }
};

Nvml::~Nvml() {
  if (functions_ != nullptr) functions_->shutdown();
  delete functions_;  // the library stays open: it may own threads
}

void Nvml::open_locked() {
  if (functions_ != nullptr) return;
  void* const library = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error("NVML, which says who uses a GPU, cannot be opened: " + std::string(dlerror()));
  auto found = std::make_unique<Functions>();
  const auto look_up = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) throw Error(library_ + " has no " + name + ": the NVIDIA driver is too old");
  };
  look_up(found->init, "nvmlInit_v2");
  look_up(found->shutdown, "nvmlShutdown");
  look_up(found->error_string, "nvmlErrorString");
  look_up(found->find, "nvmlDeviceGetHandleByPciBusId_v2");
  look_up(found->utilization, "nvmlDeviceGetUtilizationRates");
  look_up(found->memory, "nvmlDeviceGetMemoryInfo");
  look_up(found->processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  found->check(found->init(), "nvmlInit");
  functions_ = found.release();
}

DeviceUse Nvml::look(const std::string& pci_address) {
  const std::lock_guard lock(mutex_);
  open_locked();
  Functions::GpuHandle gpu = nullptr;
  functions_->check(functions_->find(pci_address.c_str(), &gpu), "nvmlDeviceGetHandleByPciBusId");
  Functions::Memory memory;
  functions_->check(functions_->memory(gpu, &memory), "nvmlDeviceGetMemoryInfo");
  DeviceUse use{.used_bytes = memory.used, .total_bytes = memory.total};
  // Not every GPU counts: a part of one (MIG) does not.
  constexpr double kPercent = 100;
  if (Functions::Utilization rates; functions_->utilization(gpu, &rates) == Functions::kSuccess)
    use.busy = rates.gpu / kPercent;
  for (const Functions::ProcessInfo& info : functions_->processes_on(gpu)) {
    const int pid = static_cast<int>(info.pid);
    use.processes.push_back({.pid = pid,
                             .command = command_of_process(pid),
                             .bytes = info.used_bytes == Functions::kUnknownBytes ? 0 : info.used_bytes});
  }
  std::sort(use.processes.begin(), use.processes.end(),
            [](const ProcessUse& a, const ProcessUse& b) { return a.bytes > b.bytes; });
  return use;
}

}  // namespace tenon::cuda
