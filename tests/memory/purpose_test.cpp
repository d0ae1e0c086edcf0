// Purposes and labels of a thread.
#include <tenon/core/error.h>
#include <tenon/memory/element_kind.h>
#include <tenon/memory/purpose.h>

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <thread>

namespace tenon {
namespace {

TEST(Purpose, GuardsNestAndTheOuterPurposeComesBack) {
  EXPECT_EQ(current_purpose(), Purpose::kActivation) << "what a thread starts with";
  {
    const PurposeGuard outer(Purpose::kParameter);
    {
      const PurposeGuard inner(Purpose::kWorkspace);
      EXPECT_EQ(current_purpose(), Purpose::kWorkspace);
    }
    EXPECT_EQ(current_purpose(), Purpose::kParameter);
  }
  EXPECT_EQ(current_purpose(), Purpose::kActivation);
}

TEST(Purpose, BelongsToOneThread) {
  const PurposeGuard guard(Purpose::kData);
  Purpose seen = Purpose::kOther;
  std::thread([&] { seen = current_purpose(); }).join();
  EXPECT_EQ(seen, Purpose::kActivation);
}

TEST(Purpose, EveryOneHasAName) {
  for (int i = 0; i < kPurposeCount; ++i) EXPECT_NE(name_of(static_cast<Purpose>(i)), "unknown");
  EXPECT_EQ(name_of(Purpose::kOptimizerState), "optimizer_state");
}

TEST(ElementKind, OfADtypeIsNamedAsUsersNameIt) {
  std::set<std::string_view> names;
  for (int i = 0; i < kElementKindCount; ++i) names.insert(name_of(static_cast<ElementKind>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kElementKindCount)) << "each has its own";
  for (const Dtype dtype :
       {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt8, Dtype::kBool})
    EXPECT_EQ(name_of(element_kind_of(dtype)), name_of(dtype));
  EXPECT_EQ(element_kind_of(Dtype::kUInt8), ElementKind::kInt8);
  for (const Dtype dtype : {Dtype::kInt16, Dtype::kInt32, Dtype::kInt64})
    EXPECT_EQ(name_of(element_kind_of(dtype)), "integer");
}

TEST(Label, EqualNamesAreOneLabelAndGuardsNest) {
  EXPECT_EQ(current_label(), 0);
  std::uint16_t first = 0;
  {
    const LabelGuard outer("purpose_test.a");
    first = current_label();
    EXPECT_NE(first, 0);
    {
      const LabelGuard inner("purpose_test.b");
      EXPECT_NE(current_label(), first);
      EXPECT_EQ(label_name(current_label()), "purpose_test.b");
    }
    EXPECT_EQ(current_label(), first);
  }
  const LabelGuard again("purpose_test.a");
  EXPECT_EQ(current_label(), first);
  EXPECT_EQ(label_name(0), "");
}

}  // namespace
}  // namespace tenon
