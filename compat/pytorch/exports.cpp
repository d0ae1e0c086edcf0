// The C functions: errors become exceptions that PyTorch knows, or return codes.
#include "adapter.h"
#include "raise.h"
#include "tenon_torch.h"

#include <tenon/core/error.h>
#include <tenon/device/memory_api.h>
#include <tenon/memory/history/history.h>
#include <tenon/replay/formats/image/snapshot_image.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace {

using tenon::pytorch::Adapter;

Adapter& adapter() { return Adapter::instance(); }
tenon::DeviceState& state_of(int device) { return adapter().device(device).state(); }

std::string& last_error() {
  thread_local std::string text;
  return text;
}

/// A text that Python reads before its next call.
const char* kept(std::string text) {
  thread_local std::string last;
  last = std::move(text);
  return last.c_str();
}

/// What PyTorch calls: exceptions are of kinds that it knows.
template <class Work>
auto for_pytorch(Work&& work) {
  std::string problem;
  bool out_of_memory = false;
  try {
    return work();
  } catch (const tenon::OutOfMemory& error) {
    problem = std::string("CUDA out of memory. ") + error.what();  // programs look for PyTorch's first words
    out_of_memory = true;
  } catch (const std::bad_alloc&) {  // the host's memory
    throw;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  last_error() = problem;
  if (out_of_memory) tenon::pytorch::raise_out_of_memory(problem);
  throw std::runtime_error("Tenon: " + problem);
}

/// What Python calls through ctypes: nothing is thrown.
template <class Result, class Work>
Result for_python(Result failed, Work&& work) noexcept {
  try {
    return work();
  } catch (const std::exception& error) {
    last_error() = error.what();
  }
  return failed;
}

std::string stats_json(int device) {
  std::string json = "{";
  tenon::DeviceState& state = state_of(device);
  for (const auto& [key, value] : tenon::memory_stats(state.device())) json += fmt::format("\"{}\": {}, ", key, value);
  const tenon::MemoryStats stats = state.allocator().stats();
  return json + fmt::format(
                    "\"tenon.device_calls\": {}, \"tenon.device_allocations\": {}, \"tenon.device_frees\": {}, "
                    "\"tenon.device_maps\": {}, \"tenon.device_unmaps\": {}, \"tenon.device_synchronizations\": {}, "
                    "\"tenon.device_waits\": {}}}",
                    stats.device_calls(), stats.device_allocations, stats.device_frees, stats.device_maps,
                    stats.device_unmaps, stats.device_synchronizations, stats.device_waits);
}

}  // namespace

extern "C" {

void* tenon_torch_alloc(ssize_t size, int device, CUstream_st* stream) {
  return for_pytorch([&]() -> void* {
    if (size < 0) throw tenon::ValueError(fmt::format("a size of {} bytes", size));
    return adapter().allocate(static_cast<std::size_t>(size), device, stream);
  });
}

void tenon_torch_free(void* pointer, ssize_t, int, CUstream_st*) {
  if (pointer == nullptr || adapter().deallocate(pointer)) return;
  std::fprintf(stderr, "tenon: PyTorch gave back %p, which is no block of Tenon's; it is left alone\n", pointer);
}

void tenon_torch_init(int) {}

void tenon_torch_reset() {
  for_pytorch([] {
    for (const auto* const device : adapter().opened()) tenon::empty_cache(device->state().device());
  });
}

void tenon_torch_memory_fraction(double fraction, int device) {
  for_pytorch([&] { tenon::set_per_process_memory_fraction(fraction, state_of(device).device()); });
}

void tenon_torch_record_stream(void* pointer, CUstream_st* stream) {
  for_pytorch([&] { adapter().record_use(pointer, stream); });
}

void tenon_torch_begin_allocate_to_pool(int device, TenonTorchPool pool, std::function<bool(CUstream_st*)> filter) {
  for_pytorch([&] { adapter().device(device).begin_pool(pool, std::move(filter)); });
}

void tenon_torch_end_allocate_to_pool(int device, TenonTorchPool pool) {
  for_pytorch([&] { adapter().device(device).end_pool(pool); });
}

void tenon_torch_release_pool(int device, TenonTorchPool pool) {
  for_pytorch([&] { adapter().device(device).release_pool(pool); });
}

int tenon_torch_configure(const char* allocator) {
  return for_python(-1, [&] {
    adapter().configure(allocator);
    return 0;
  });
}

const char* tenon_torch_last_error() { return last_error().c_str(); }

const char* tenon_torch_allocator(int device) {
  return for_python<const char*>(nullptr, [&] { return kept(state_of(device).allocator().config().policy.name); });
}

const char* tenon_torch_memory_stats(int device) {
  return for_python<const char*>(nullptr, [&] { return kept(stats_json(device)); });
}

const char* tenon_torch_memory_summary(int device, int abbreviated) {
  return for_python<const char*>(
      nullptr, [&] { return kept(tenon::memory_summary(state_of(device).device(), abbreviated != 0)); });
}

int tenon_torch_reset_peak_memory_stats(int device) {
  return for_python(-1, [&] {
    tenon::reset_peak_memory_stats(state_of(device).device());
    return 0;
  });
}

int tenon_torch_reset_accumulated_memory_stats(int device) {
  return for_python(-1, [&] {
    tenon::reset_accumulated_memory_stats(state_of(device).device());
    return 0;
  });
}

std::int64_t tenon_torch_empty_cache(int device) {
  return for_python<std::int64_t>(
      -1, [&] { return static_cast<std::int64_t>(tenon::empty_cache(state_of(device).device())); });
}

int tenon_torch_record_memory_history(int device, std::size_t max_entries) {
  return for_python(-1, [&] {
    const tenon::Device on = state_of(device).device();
    if (max_entries == 0) {
      tenon::stop_memory_history(on);
    } else {
      tenon::record_memory_history({.max_entries = max_entries}, on);
    }
    return 0;
  });
}

int tenon_torch_dump_snapshot(int device, const char* path) {
  return for_python(-1, [&] {
    const tenon::DeviceState& state = state_of(device);
    tenon::replay::write_snapshot(tenon::replay::image_of_stack(state.allocator(), state.history()), path);
    return 0;
  });
}

int tenon_torch_close() {
  return for_python(-1, [] {
    adapter().close();
    return 0;
  });
}

}  // extern "C"
