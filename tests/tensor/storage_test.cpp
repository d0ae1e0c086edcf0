// Storages: where their memory comes from, and that it goes back there.
#include <tenon/device/device_state.h>
#include <tenon/tensor/storage.h>

#include <gtest/gtest.h>

#include <device/fake_driver.h>

#include <cstddef>
#include <limits>
#include <vector>

namespace tenon {
namespace {

using test::fake;

TEST(StorageMemory, GoesBackToItsAllocatorWhenItIsResizedOrEnds) {
  const test::FakeDevices devices;
  DeviceState& state = device_state(fake());
  const auto live = [&] { return state.allocator().stats().allocated_bytes.current; };
  {
    const auto storage = make_intrusive<StorageImpl>(state, std::size_t{1000});
    EXPECT_EQ(storage->allocator(), &state.allocator());
    EXPECT_EQ(live(), 1024);
    storage->resize(3000);
    EXPECT_EQ(live(), 3072);
    storage->resize(0);
    EXPECT_EQ(live(), 0);
    EXPECT_EQ(storage->allocator(), nullptr);
    storage->resize(1);
    EXPECT_EQ(live(), 512);
    EXPECT_EQ(storage->allocator(), &state.allocator());
  }
  EXPECT_EQ(live(), 0);
}

TEST(StorageMemory, OfNothingIsNone) {
  const test::FakeDevices devices;
  const auto storage = make_intrusive<StorageImpl>(device_state(fake()), std::size_t{0});
  EXPECT_EQ(storage->data(), nullptr);
  EXPECT_EQ(storage->allocator(), nullptr);
}

TEST(StorageMemory, ThatIsPageLockedIsOfNoStreamOfTheDevice) {
  const test::FakeDevices devices;
  const auto storage = make_intrusive<StorageImpl>(device_state(fake(1)), std::size_t{100},
                                                   StorageImpl::PinnedFor{device_state(fake())});
  EXPECT_EQ(storage->block().request.stream.id, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(storage->pinned_for(), &device_state(fake()));
  EXPECT_EQ(make_intrusive<StorageImpl>(device_state(fake(1)), std::size_t{100})->block().request.stream.id, 0u);
}

TEST(StorageMemory, ThatWasGivenBackIsNotGivenBackAgainAtTheEnd) {
  const test::FakeDevices devices;
  DeviceState& state = device_state(fake());
  const auto live = [&] { return state.allocator().stats().allocated_bytes.current; };
  {
    const auto other = make_intrusive<StorageImpl>(state, std::size_t{100});
    const auto storage = make_intrusive<StorageImpl>(state, std::size_t{1000});
    storage->give_back();
    EXPECT_FALSE(storage->is_there());
    EXPECT_EQ(storage->nbytes(), 1000u);
    EXPECT_EQ(live(), 512);
    storage->give_back();
    EXPECT_EQ(live(), 512);
  }
  EXPECT_EQ(live(), 0);
}

TEST(StorageMemory, ThatIsForeignEndsByItsDeleterIfItHasOne) {
  const test::FakeDevices devices;
  DeviceState& state = device_state(fake());
  char memory[8] = {};
  std::vector<void*> deleted;
  for (const std::size_t bytes : {sizeof memory, std::size_t{0}}) {
    int context = 0;
    {
      const auto storage = make_intrusive<StorageImpl>(
          state, memory, bytes, [&](void* given) { deleted.push_back(given); }, &context);
      EXPECT_EQ(storage->data(), memory);
      EXPECT_EQ(storage->context(), &context);
      EXPECT_EQ(storage->allocator(), nullptr);
      EXPECT_TRUE(deleted.empty());
    }
    EXPECT_EQ(deleted, std::vector<void*>{&context});
    deleted.clear();
  }
  make_intrusive<StorageImpl>(state, memory, sizeof memory, nullptr, nullptr);  // ends
  EXPECT_TRUE(deleted.empty());
}

TEST(StorageMemory, OfNoAllocatorIsUsedOnAnotherStreamWithoutAWord) {
  const test::FakeDevices devices;
  DeviceState& state = device_state(fake());
  char memory[8] = {};
  make_intrusive<StorageImpl>(state, memory, sizeof memory, nullptr, nullptr)->record_stream({7});
  make_intrusive<StorageImpl>(state, std::size_t{0})->record_stream({7});
  const auto storage = make_intrusive<StorageImpl>(state, std::size_t{1000});
  storage->give_back();
  storage->record_stream({7});
  EXPECT_EQ(state.allocator().stats().allocated_bytes.current, 0);
}

}  // namespace
}  // namespace tenon
