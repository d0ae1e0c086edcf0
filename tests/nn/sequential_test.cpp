// Sequential and AnyModule: types are checked when forward is called.
#include "../support/message_of.h"

#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/activation.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;

struct Doubler : nn::Module {
  int forward(int x) { return 2 * x; }
};
struct Adder : nn::Module {
  int forward(int x, int y) { return x + y; }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, nn::AnyValue(10)})
};

TEST(Sequential, ChainsModules) {
  nn::Sequential chain(Doubler{}, Adder{}, Doubler{});
  EXPECT_EQ(chain->forward<int>(1), 24);
}

TEST(Sequential, RegistersNames) {
  nn::Sequential named({{"a", nn::Linear(2, 3)}, {"b", nn::ReLU()}});
  EXPECT_EQ(named->named_parameters().keys(), (std::vector<std::string>{"a.weight", "a.bias"}));
}

TEST(Sequential, SaysWhichTypeItReturns) {
  nn::Sequential chain(Doubler{});
  EXPECT_THAT(message_of([&] { chain->forward<float>(1); }),
              HasSubstr("The type of the return value is int, but you asked for type float"));
  EXPECT_THAT(message_of([&] { nn::Sequential()->forward<int>(1); }), HasSubstr("empty Sequential"));
}

TEST(AnyModule, CountsArguments) {
  nn::AnyModule any(Doubler{});
  EXPECT_THAT(message_of([&] { any.forward<int>(); }), HasSubstr("expects 1 argument(s), but received 0."));
  EXPECT_THAT(message_of([&] { any.forward<int>(1, 2); }), HasSubstr("expects 1 argument(s), but received 2."));
  EXPECT_THAT(message_of([&] { any.forward<int>(1.0); }),
              HasSubstr("Expected argument #0 to be of type int, but received value of type double"));
}

TEST(AnyModule, FillsInDefaults) {
  nn::AnyModule any(Adder{});
  EXPECT_EQ(any.forward<int>(1), 11);
  EXPECT_EQ(any.forward<int>(1, 2), 3);
}

TEST(Sequential, RefusesANameAndStaysAsItWas) {
  nn::Sequential chain(nn::Linear(2, 3));
  EXPECT_THROW(chain->push_back("a.b", nn::Linear(3, 4)), Error);
  EXPECT_THROW(chain->push_back("0", nn::Linear(3, 4)), Error);
  EXPECT_EQ(chain->size(), 1u);
  EXPECT_EQ(chain->children().size(), 1u);
  EXPECT_EQ(chain->forward(tenon::ones({1, 2})).size(1), 3);
}

}  // namespace
}  // namespace tenon::test
