// Numbers of groups of ranks.
#include <tenon/comm/group_id.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace tenon {
namespace {

TEST(GroupIds, OfGroupsOfGroupsAreTheirOwn) {
  constexpr std::int64_t all = 0, outer = id_of_group(all, 1, 0), inner = id_of_group(outer, 1, 0);
  constexpr std::int64_t innermost = id_of_group(inner, 1, 0);  // no constant, where it would overflow
  EXPECT_EQ((std::set<std::int64_t>{all, outer, id_of_group(all, 2, 0), id_of_group(all, 1, 2), inner, innermost,
                                    id_of_group(innermost, 1, 0)})
                .size(),
            7U);
}

}  // namespace
}  // namespace tenon
