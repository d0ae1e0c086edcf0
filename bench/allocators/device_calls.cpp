// What a device's own calls for memory cost, of a size at a time: microseconds, least / median / most of the rounds.
// The device is idle, so that no call waits for work. Each round takes memory of every size, and gives it back.
//
//   tenon_device_calls [DEVICE [ROUNDS]]        (cuda:0, 20)
#include <tenon/core/device.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/driver_pool.h>
#include <tenon/memory/memory_source.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace tenon;

constexpr std::array<std::size_t, 6> kSizes{2 * MiB, 8 * MiB, 32 * MiB, 128 * MiB, 512 * MiB, 2 * GiB};

/// Calls of one kind, and what they took at each of the sizes.
struct Row {
  std::string name;
  std::array<std::vector<double>, kSizes.size()> microseconds;

  template <class F>
  auto time(std::size_t size, const F& call) {
    struct Clock {
      std::vector<double>& to;
      std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
      ~Clock() { to.push_back(1e6 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()); }
    } clock{microseconds[size]};
    return call();
  }
};

void print(Row& row) {
  std::printf("| %s |", row.name.c_str());
  for (std::vector<double>& times : row.microseconds) {
    std::ranges::sort(times);
    if (times.empty())
      std::printf(" |");
    else
      std::printf(" %.1f / %.1f / %.1f |", times.front(), times[times.size() / 2], times.back());
  }
  std::printf("\n");
}

void* there(void* address, std::size_t bytes) {
  if (address == nullptr) throw Error(std::string("the device has no ") + std::to_string(bytes / MiB) + " MiB left");
  return address;
}

void take_and_give(MemorySource& memory, int rounds) {
  Row acquire{"acquire", {}}, release{"release", {}};
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      void* const address = there(acquire.time(i, [&] { return memory.acquire(kSizes[i]); }), kSizes[i]);
      release.time(i, [&] { memory.release(address, kSizes[i]); });
    }
  }
  print(acquire);
  print(release);
}

void map_and_unmap(MemorySource& memory, int rounds) {
  Row reserve{"reserve", {}}, create{"create", {}}, map{"map", {}}, unmap{"unmap", {}}, destroy{"destroy", {}},
      unreserve{"unreserve", {}}, pages{"map, a page at a time", {}}, unmap_pages{"unmap those at once", {}};
  const std::size_t page = memory.traits().page_bytes;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      const std::size_t bytes = kSizes[i];
      char* const address = static_cast<char*>(there(reserve.time(i, [&] { return memory.reserve(bytes); }), bytes));
      const Physical physical = create.time(i, [&] { return memory.create(bytes); });
      if (!physical) throw Error("the device has no memory left");
      map.time(i, [&] { memory.map(address, bytes, physical, 0); });
      unmap.time(i, [&] { memory.unmap(address, bytes); });
      destroy.time(i, [&] { memory.destroy(physical, bytes); });
      if (bytes <= 512 * MiB) {
        std::vector<Physical> parts;
        for (std::size_t at = 0; at < bytes; at += page) parts.push_back(memory.create(page));
        pages.time(i, [&] {
          for (std::size_t part = 0; part < parts.size(); ++part)
            memory.map(address + part * page, page, parts[part], 0);
        });
        unmap_pages.time(i, [&] {
          for (std::size_t part = 0; part < parts.size(); ++part) memory.unmap(address + part * page, page);
        });
        for (const Physical part : parts) memory.destroy(part, page);
      }
      unreserve.time(i, [&] { memory.unreserve(address, bytes); });
    }
  }
  for (Row* row : {&reserve, &create, &map, &unmap, &destroy, &unreserve, &pages, &unmap_pages}) print(*row);
}

void pool_and_return(MemorySource& memory, int rounds) {
  const std::unique_ptr<DriverPool> pool = memory.make_driver_pool({.release_threshold = SIZE_MAX});
  if (pool == nullptr) return;
  Row first{"pool, growing", {}}, again{"pool, cached", {}}, release{"pool, release", {}};
  const std::array<StreamRef, 1> streams{};
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      pool->trim(0);
      void* address = there(first.time(i, [&] { return pool->acquire(kSizes[i], {}); }), kSizes[i]);
      pool->release(address, kSizes[i], streams);
      memory.synchronize();
      address = there(again.time(i, [&] { return pool->acquire(kSizes[i], {}); }), kSizes[i]);
      release.time(i, [&] { pool->release(address, kSizes[i], streams); });
      memory.synchronize();
    }
  }
  for (Row* row : {&first, &again, &release}) print(*row);
}

}  // namespace

int main(int argc, char** argv) try {
  const Device device(argc > 1 ? argv[1] : "cuda:0");
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 20;
  DeviceDriver& driver = device_state(device).driver();
  std::printf("%s, microseconds, least / median / most of %d\n\n| call |", driver.properties().name.c_str(), rounds);
  for (const std::size_t size : kSizes) std::printf(" %zu MiB |", size / MiB);
  std::printf("\n|---|---|---|---|---|---|---|\n");
  MemorySource& memory = driver.memory();
  memory.release(there(memory.acquire(2 * MiB), 2 * MiB), 2 * MiB);  // makes the context
  take_and_give(memory, rounds);
  if (memory.traits().virtual_memory) map_and_unmap(memory, rounds);
  pool_and_return(memory, rounds);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
