// Counted references: whoever gives up the last one destroys the object, once, and nobody gets it afterwards.
#include <schedules/seeds.h>

#include <tenon/tensor/intrusive_ptr.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace tenon {
namespace {

using test::run_scheduled;
using test::try_seeds;

struct Leaf;

/// Stands for the accumulator of a leaf. What it leaves behind stays readable: the test looks, no sanitizer is needed.
struct Accumulator : WeaklyKnown {
  explicit Accumulator(Leaf& of) : leaf(of) {}
  Leaf& leaf;
  bool is_alive = true;
};
void destroy_counted(Accumulator* object) noexcept;

struct Leaf {
  std::mutex mutex;
  Accumulator* known = nullptr;  // and not owned
  std::vector<std::unique_ptr<Accumulator>> made;

  /// As autograd::gradient_edge().
  IntrusivePtr<Accumulator> accumulator() {
    const std::lock_guard lock(mutex);
    if (known && known->try_retain()) return IntrusivePtr<Accumulator>::adopt(known);
    made.push_back(std::make_unique<Accumulator>(*this));
    known = made.back().get();
    return IntrusivePtr<Accumulator>(known);
  }
};

void destroy_counted(Accumulator* object) noexcept {
  EXPECT_TRUE(object->is_alive) << "destroyed twice";
  const std::lock_guard lock(object->leaf.mutex);
  object->is_alive = false;
  if (object->leaf.known == object) object->leaf.known = nullptr;
}

TEST(LastReference, IsNotGivenUpWhileSomebodyRetainsTheObject) {
  try_seeds(300, [](std::uint64_t seed) {
    Leaf leaf;
    const auto body = [&] {
      for (int round = 0; round < 20; ++round) {
        const IntrusivePtr<Accumulator> mine = leaf.accumulator();
        EXPECT_TRUE(mine->is_alive);
        const IntrusivePtr<Accumulator> second = mine;
        EXPECT_TRUE(mine->is_alive);
      }
    };
    run_scheduled(seed, {body, body, body});
    EXPECT_EQ(leaf.known, nullptr);
    for (const auto& object : leaf.made) EXPECT_FALSE(object->is_alive);
  });
}

TEST(LastReference, OfAnObjectWithOwnersOnlyIsGivenUpOnce) {
  struct Shared : RefCounted {
    explicit Shared(int& ends) : ends_(ends) {}
    ~Shared() { ++ends_; }
    int& ends_;
  };
  try_seeds(300, [](std::uint64_t seed) {
    int ends = 0;
    auto first = make_intrusive<Shared>(ends);
    auto second = first;
    const auto body = [&](IntrusivePtr<Shared>& own) {
      return [&] {
        for (int round = 0; round < 5; ++round) {
          IntrusivePtr<Shared> copy = own;
          EXPECT_EQ(ends, 0);
        }
        own.reset();
      };
    };
    run_scheduled(seed, {body(first), body(second)});
    EXPECT_EQ(ends, 1);
  });
}

}  // namespace
}  // namespace tenon
