// CUB's own CachingDeviceAllocator under a history in text form: what it takes from a device at most, over the most
// that was asked for. Held against the allocator cub_bins in bench/results/baselines.md. Built by hand, since it needs
// the headers of a CUDA toolkit and nothing else: the few functions of the runtime that CUB calls stand below.
//
//   g++ -O2 -std=c++17 -I$CUDA/include -I$CUDA/include/cccl bench/replay/cub_original.cpp -o cub_original
//   zcat HISTORY.trace.gz | ./cub_original GROWTH MIN_BIN MAX_BIN MAX_CACHED_BYTES
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <unordered_map>

#include <cuda_runtime_api.h>

namespace {
std::unordered_map<void*, std::size_t> taken;
std::size_t reserved = 0, peak_reserved = 0, calls = 0;
std::uintptr_t next_address = std::uintptr_t{1} << 40;
}  // namespace

// A device without an end whose streams have always got where they are.
extern "C" {
cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  ++calls;
  *address = reinterpret_cast<void*>(next_address);
  next_address += bytes + 512;
  taken[*address] = bytes;
  reserved += bytes;
  if (reserved > peak_reserved) peak_reserved = reserved;
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  ++calls;
  reserved -= taken.at(address);
  taken.erase(address);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = nullptr, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
}

#include <cub/util_allocator.cuh>

int main(int count, char** words) {
  if (count != 5) return std::cerr << "usage: cub_original GROWTH MIN_BIN MAX_BIN MAX_CACHED_BYTES < HISTORY\n", 2;
  const auto number = [&](int i) { return std::strtoull(words[i], nullptr, 10); };
  cub::CachingDeviceAllocator allocator(static_cast<unsigned>(number(1)), static_cast<unsigned>(number(2)),
                                        static_cast<unsigned>(number(3)), number(4));
  std::unordered_map<std::uint64_t, std::pair<void*, std::size_t>> blocks;
  std::size_t requested = 0, peak_requested = 0;
  for (std::string line; std::getline(std::cin, line);) {
    char* rest = nullptr;
    const std::uint64_t id = std::strtoull(line.c_str() + 1, &rest, 10);
    if (line[0] == 'a') {
      const std::size_t bytes = std::strtoull(rest, &rest, 10);
      auto* const stream = reinterpret_cast<cudaStream_t>(std::strtoull(rest, nullptr, 10));
      void* address = nullptr;
      if (allocator.DeviceAllocate(0, &address, bytes, stream) != cudaSuccess) return std::cerr << "refused\n", 1;
      blocks[id] = {address, bytes};
      requested += bytes;
      if (requested > peak_requested) peak_requested = requested;
    } else if (line[0] == 'f') {
      allocator.DeviceFree(0, blocks.at(id).first);
      requested -= blocks.at(id).second;
    } else if (line[0] == 'e') {
      allocator.FreeAllCached();
    }
  }
  std::cout << peak_requested << ' ' << peak_reserved << ' ' << calls << '\n';
}
