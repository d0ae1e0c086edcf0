// Owned: one object, moved and never copied, deleted once.
#include <tenon/core/owned.h>

#include <gtest/gtest.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace tenon {
namespace {

struct Counted {
  explicit Counted(int& alive) : alive(alive) { ++alive; }
  virtual ~Counted() { --alive; }
  int& alive;
};
struct Derived final : Counted {
  using Counted::Counted;
};

static_assert(!std::is_copy_constructible_v<Owned<Counted>> && !std::is_copy_assignable_v<Owned<Counted>>);
static_assert(std::is_nothrow_move_constructible_v<Owned<Counted>>);
static_assert(sizeof(Owned<Counted>) == sizeof(void*));

TEST(Owned, DeletesItsObjectWithItself) {
  int alive = 0;
  {
    const Owned<Counted> owned(std::make_unique<Counted>(alive));
    EXPECT_TRUE(owned);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Owned, TakesAnObjectOfADerivedClass) {
  int alive = 0;
  Owned<Counted> owned = std::make_unique<Derived>(alive);
  EXPECT_NE(dynamic_cast<Derived*>(owned.get()), nullptr);
  owned.reset();
  EXPECT_FALSE(owned);
  EXPECT_EQ(alive, 0);
}

TEST(Owned, GivesItsObjectToTheOneItIsMovedTo) {
  int first = 0, second = 0;
  Owned<Counted> from(new Counted(first));
  Owned<Counted> to(new Counted(second));
  to = std::move(from);
  EXPECT_FALSE(from);  // NOLINT: what is left is said
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  Owned<Counted>& same = to;
  to = std::move(same);
  EXPECT_EQ(first, 1);
  EXPECT_TRUE(to);
}

TEST(Owned, KnowsNothingOfWhatItReleased) {
  int alive = 0;
  Owned<Counted> owned(new Counted(alive));
  const std::unique_ptr<Counted> released(owned.release());
  EXPECT_FALSE(owned);
  EXPECT_EQ(alive, 1);
}

}  // namespace
}  // namespace tenon
