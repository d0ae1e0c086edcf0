// A stand-in for NVIDIA's management library: one GPU, whose processes come while they are counted.
#include <unistd.h>

#include <cstring>

namespace {
constexpr int kSuccess = 0, kNotFound = 6, kInsufficientSize = 7;
int gpu = 0;
int users = 0;
}  // namespace

extern "C" {

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2() {
  ++users;
  return kSuccess;
}
int nvmlShutdown() {
  --users;
  return kSuccess;
}
int fake_nvml_users() { return users; }
const char* nvmlErrorString(int result) { return result == kNotFound ? "Not Found" : "Unknown Error"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** handle) {
  if (std::strcmp(address, "00000000:65:00.0") != 0) return kNotFound;
  *handle = &gpu;
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void*, Utilization* rates) {
  *rates = {87, 20};
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {80'000'000'000, 50'000'000'000, 30'000'000'000};
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, ProcessInfo* infos) {
  const unsigned there = *count == 0 ? 2 : 3;  // another one has come since they were counted
  const bool fits = infos != nullptr && *count >= there;
  *count = there;
  if (!fits) return kInsufficientSize;
  infos[0] = {999'999'999, 1'000'000'000, ~0U, ~0U};
  infos[1] = {static_cast<unsigned>(getpid()), 29'000'000'000, ~0U, ~0U};
  infos[2] = {999'999'998, ~0ULL, ~0U, ~0U};  // a driver model that does not tell
  return kSuccess;
}

}  // extern "C"
