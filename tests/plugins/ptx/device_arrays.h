// Arrays of the emulated device, filled from the host and read back.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tenon::ptx_test {

template <class T>
T* on_device(const std::vector<T>& values) {
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, values.size() * sizeof(T)), cudaSuccess);
  cudaMemcpyAsync(address, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, nullptr);
  return static_cast<T*>(address);
}
template <class T>
std::vector<T> fetched(const T* address, std::size_t count) {
  std::vector<T> values(count);
  EXPECT_EQ(cudaMemcpyAsync(values.data(), address, count * sizeof(T), cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
  return values;
}

}  // namespace tenon::ptx_test
