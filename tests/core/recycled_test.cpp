// Small objects taken again by the thread that gave them back.
#include <tenon/core/export.h>
#include <tenon/core/recycled.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace tenon {
namespace {

TEST(Recycled, TheNextObjectOfASizeIsTheOneGivenBackLast) {
  if (kIsSanitized) GTEST_SKIP() << "under a sanitizer every object comes from the heap";
  void* first = take_recycled(100);
  void* second = take_recycled(100);
  give_recycled(first, 100);
  give_recycled(second, 100);
  EXPECT_EQ(take_recycled(100), second);
  EXPECT_EQ(take_recycled(97), first) << "97 and 100 bytes round to the same size";
  give_recycled(first, 97);
  give_recycled(second, 100);
}

TEST(Recycled, ObjectsInUseNeverOverlap) {
  struct Object {
    unsigned char* bytes;
    std::size_t size;
    unsigned char mark;
  };
  std::vector<Object> live;
  std::uint32_t state = 47;  // fixed seed
  const auto draw = [&](std::uint32_t bound) { return (state = state * 1664525u + 1013904223u) / 65536u % bound; };
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 200 && draw(2) == 0) {
      Object object{nullptr, 1 + draw(1500), static_cast<unsigned char>(step)};
      object.bytes = static_cast<unsigned char*>(take_recycled(object.size));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object.bytes) % alignof(std::max_align_t), 0u);
      std::memset(object.bytes, object.mark, object.size);
      live.push_back(object);
    } else if (!live.empty()) {
      std::swap(live[draw(static_cast<std::uint32_t>(live.size()))], live.back());
      const Object object = live.back();
      live.pop_back();
      for (std::size_t i = 0; i < object.size; ++i) ASSERT_EQ(object.bytes[i], object.mark) << "step " << step;
      give_recycled(object.bytes, object.size);
    }
  }
  for (const Object& object : live) give_recycled(object.bytes, object.size);
}

TEST(Recycled, AThreadMayGiveBackWhatAnotherTookAndEndWithIt) {
  std::vector<void*> objects;
  for (int i = 0; i < 1000; ++i) objects.push_back(take_recycled(1024));  // more than a thread keeps
  std::thread([&] {
    for (void* object : objects) give_recycled(object, 1024);
    void* own = take_recycled(1024);
    std::memset(own, 1, 1024);
    give_recycled(own, 1024);
  }).join();
  give_recycled(nullptr, 64);
}

TEST(Recycled, AContainerGrowsInIt) {
  std::vector<int, RecycledAllocator<int>> numbers;
  for (int i = 0; i < 5000; ++i) numbers.push_back(i);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace tenon
