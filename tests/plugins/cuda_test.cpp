// The CUDA backend: memory, virtual memory, streams and events of a real GPU. Skipped, with the reason, where there is
// none.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tenon {
namespace {

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    try {
      backend_ = &find_backend("cuda");
    } catch (const Error& error) {
      GTEST_SKIP() << "the CUDA plugin was not built: " << error.what();
    }
    if (backend_->device_count() == 0) GTEST_SKIP() << "no CUDA device: " << backend_->why_unavailable();
    device_ = &backend_->device(0);
  }
  void TearDown() override { shutdown(); }

  /// Copies `bytes` values to the device, on to `on_device`, and back.
  std::vector<unsigned char> fetch(const void* on_device, std::size_t bytes) {
    std::vector<unsigned char> host(bytes);
    device_->copy(host.data(), on_device, bytes, CopyKind::kDeviceToHost, {});
    device_->synchronize();
    return host;
  }

  Backend* backend_ = nullptr;
  DeviceDriver* device_ = nullptr;
};

TEST(CudaBackend, SaysWhyThereIsNoDeviceOrOpensOne) {
  Backend* backend = nullptr;
  try {
    backend = &find_backend("cuda");
  } catch (const Error& error) {
    GTEST_SKIP() << "the CUDA plugin was not built: " << error.what();
  }
  if (backend->device_count() > 0) {
    EXPECT_FALSE(backend->device(0).properties().name.empty());
    return;
  }
  EXPECT_FALSE(backend->why_unavailable().empty());
  try {
    backend->device(0);
    FAIL() << "a device was opened that is not there";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:0"), std::string::npos) << error.what();
  }
}

TEST_F(Cuda, AcquiredMemoryIsAlignedHoldsDataAndComesBack) {
  MemorySource& memory = device_->memory();
  void* address = memory.acquire(3 * MiB);
  ASSERT_NE(address, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 256, 0u);
  device_->fill(address, 0xa5, 3 * MiB, {});
  for (const unsigned char byte : fetch(address, 4096)) ASSERT_EQ(byte, 0xa5);
  memory.release(address, 3 * MiB);
}

TEST_F(Cuda, AnImpossibleRequestFindsTheDeviceExhaustedAndTheNextOneIsServed) {
  MemorySource& memory = device_->memory();
  EXPECT_EQ(memory.acquire(memory.traits().capacity_bytes * 2), nullptr);
  void* address = memory.acquire(MiB);
  EXPECT_NE(address, nullptr);
  memory.release(address, MiB);
}

TEST_F(Cuda, VirtualMemoryIsMappedUsedAndUnmapped) {
  MemorySource& memory = device_->memory();
  if (!memory.traits().virtual_memory) GTEST_SKIP() << "this driver has no virtual memory management";
  const std::size_t page = memory.traits().page_bytes;
  auto* address = static_cast<unsigned char*>(memory.reserve(4 * page));
  ASSERT_NE(address, nullptr);
  const Physical first = memory.create(page);
  const Physical second = memory.create(2 * page);
  ASSERT_TRUE(first && second);
  memory.map(address, page, first, 0);
  memory.map(address + page, 2 * page, second, 0);
  device_->fill(address, 7, 3 * page, {});
  EXPECT_EQ(fetch(address + 3 * page - 1, 1)[0], 7);
  memory.unmap(address, page);
  memory.unmap(address + page, 2 * page);
  memory.destroy(first, page);
  memory.destroy(second, 2 * page);
  memory.unreserve(address, 4 * page);
}

TEST_F(Cuda, TicketsAreReachedInTheOrderOfTheirStream) {
  MemorySource& memory = device_->memory();
  const StreamRef stream = device_->create_stream(0);
  void* address = memory.acquire(256 * MiB);
  ASSERT_NE(address, nullptr);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 50; ++i) {
    device_->fill(address, static_cast<std::uint8_t>(i), 256 * MiB, stream);
    tickets.push_back(memory.mark(stream));
  }
  memory.wait(tickets.back());
  for (const Ticket ticket : tickets) EXPECT_TRUE(memory.reached(ticket));
  EXPECT_EQ(fetch(address, 1)[0], 49);
  memory.release(address, 256 * MiB);
  device_->destroy_stream(stream);
}

TEST_F(Cuda, HostFunctionsRunInStreamOrder) {
  const StreamRef stream = device_->create_stream(0);
  std::vector<int> order;
  for (int i = 0; i < 10; ++i) device_->enqueue(stream, [&order, i] { order.push_back(i); });
  device_->synchronize(stream);
  ASSERT_EQ(order.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  device_->destroy_stream(stream);
}

TEST_F(Cuda, PinnedMemoryIsTheHostsAndCopiesBothWays) {
  MemorySource* pinned = device_->pinned_host_memory();
  ASSERT_NE(pinned, nullptr);
  auto* host = static_cast<unsigned char*>(pinned->acquire(MiB));
  ASSERT_NE(host, nullptr);
  host[12345] = 99;
  void* address = device_->memory().acquire(MiB);
  device_->copy(address, host, MiB, CopyKind::kHostToDevice, {});
  EXPECT_EQ(fetch(static_cast<unsigned char*>(address) + 12345, 1)[0], 99);
  device_->memory().release(address, MiB);
  pinned->release(host, MiB);
}

TEST_F(Cuda, ThreadsShareOneDevice) {
  MemorySource& memory = device_->memory();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory] {
      for (int i = 0; i < 50; ++i) {
        void* address = memory.acquire(MiB);
        const Ticket ticket = memory.mark({});
        memory.wait(ticket);
        memory.release(address, MiB);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon
