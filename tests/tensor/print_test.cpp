// Printing, against what libtorch's C++ prints.
#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/libtorch_names.h>
#include <tenon/tensor/shape/indexing.h>

#include <gtest/gtest.h>

#include <sstream>

namespace tenon {
namespace {

std::string printed(const Tensor& tensor) {
  std::ostringstream stream;
  stream << tensor;
  return stream.str();
}

TEST(Print, MatchesLibtorch) {
  EXPECT_EQ(printed(Tensor()), "[ Tensor (undefined) ]");
  EXPECT_EQ(printed(tensor(3)), "3\n[ CPULongType{} ]");
  EXPECT_EQ(printed(tensor({1, 2, 30})), "  1\n  2\n 30\n[ CPULongType{3} ]");
  EXPECT_EQ(printed(tensor({{1.5, 2.0}, {3.0, 4.0}})), " 1.5000  2.0000\n 3.0000  4.0000\n[ CPUFloatType{2,2} ]");
  EXPECT_EQ(printed(ones({2, 1, 2})), "(1,.,.) = \n  1  1\n\n(2,.,.) = \n  1  1\n[ CPUFloatType{2,1,2} ]");
  EXPECT_EQ(printed(empty({0})), "[ CPUFloatType{0} ]");
}

TEST(Print, IndicesAndOptions) {
  std::ostringstream stream;
  stream << indexing::Slice(1, 2, 3);
  EXPECT_EQ(stream.str(), "1:2:3");
  stream.str("");
  stream << IntArrayRef({2, 3});
  EXPECT_EQ(stream.str(), "[2, 3]");
  stream.str("");
  stream << kFloat32 << " " << Device(kCPU);
  EXPECT_EQ(stream.str(), "Float cpu");
}

TEST(Print, TheFirstIndexOfAStackRunsFastest) {
  EXPECT_EQ(printed(arange(8).view({2, 2, 1, 2})),
            "(1,1,.,.) = \n  0  1\n\n(2,1,.,.) = \n  4  5\n\n(1,2,.,.) = \n  2  3\n\n(2,2,.,.) = \n  6  7\n"
            "[ CPULongType{2,2,1,2} ]");
}

TEST(Print, NamesTypesAndFormatsAsLibtorch) {
  std::ostringstream stream;
  stream << ones({1}, kInt64).dtype() << "," << ones({1}, kInt16).dtype() << "," << MemoryFormat::ChannelsLast << ","
         << MemoryFormat::Contiguous;
  EXPECT_EQ(stream.str(), "long int,short int,ChannelsLast,Contiguous");
}

}  // namespace
}  // namespace tenon
