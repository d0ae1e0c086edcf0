// Printing, against what libtorch's C++ prints.
#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/libtorch_names.h>
#include <tenon/tensor/shape/indexing.h>

#include <gtest/gtest.h>

#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace tenon {
namespace {

std::string printed(const Tensor& tensor) {
  std::ostringstream stream;
  stream << tensor;
  return stream.str();
}

// The literals of vectors and of matrices without a scale are what libtorch 2.15 prints (1e+05 is "100000" there).
// Stacks and scaled matrices are laid out as before 2.x, every row below the first: 2.15 indents their first row less.
Tensor of(const std::vector<double>& numbers) { return tensor(numbers, TensorOptions(kFloat64)); }

/// `count` numbers with a fraction, from 100000.5 on, 10000 apart: they share the scale 100000.
Tensor large(std::int64_t count) { return arange(count, TensorOptions(kFloat64)) * 10000 + 100000.5; }

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

TEST(Print, OneFractionAmongNumbersShowsAllOfThemWithFourDigits) {
  EXPECT_EQ(printed(of({1.5, 2.0})), " 1.5000\n 2.0000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({2.0, 1.5})), " 2.0000\n 1.5000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({-1.5, 2.0})), "-1.5000\n 2.0000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.0, 1.5})), " 0.0000\n 1.5000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.1, 0.25})), " 0.1000\n 0.2500\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.1, 1.25})), " 0.1000\n 1.2500\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({99999.5, 20000.25})), " 99999.5000\n 20000.2500\n[ CPUDoubleType{2} ]");
}

TEST(Print, WholeNumbersAreAsWideAsTheLongestAndScientificFromTenDigitsOn) {
  EXPECT_EQ(printed(zeros({2})), " 0\n 0\n[ CPUFloatType{2} ]");
  EXPECT_EQ(printed(ones({2}, kBool)), " 1\n 1\n[ CPUBoolType{2} ]");
  EXPECT_EQ(printed(tensor({-10, 9})), "-10\n  9\n[ CPULongType{2} ]");
  EXPECT_EQ(printed(tensor({123456789, 1})), "1.23457e+08\n         1\n[ CPULongType{2} ]");
  EXPECT_EQ(printed(tensor({1234567890L, 1L})), " 1.2346e+09\n 1.0000e+00\n[ CPULongType{2} ]");
  EXPECT_EQ(printed(of({1e10, 1.0})), " 1.0000e+10\n 1.0000e+00\n[ CPUDoubleType{2} ]");
}

TEST(Print, MoreThanFourDigitsBetweenTheLeastAndTheMostAreScientific) {
  EXPECT_EQ(printed(of({1.5, 12345.5})), "     1.5000\n 12345.5000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({1.5, 123456.5})), " 1.5000e+00\n 1.2346e+05\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.5, 9999.5})), "    0.5000\n 9999.5000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.5, 10000.5})), " 5.0000e-01\n 1.0000e+04\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.001, 100.5})), " 1.0000e-03\n 1.0050e+02\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.5, 0.0001})), " 0.5000\n 0.0001\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({1.5, 123456.5, 2.5, 3.5}).view({2, 2})),
            " 1.5000e+00  1.2346e+05\n 2.5000e+00  3.5000e+00\n[ CPUDoubleType{2,2} ]");
}

TEST(Print, ExponentsOfThreeDigitsAtEitherEndMakeAllWider) {
  EXPECT_EQ(printed(of({1e98, 1.5})), " 1.0000e+98\n 1.5000e+00\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({1e99, 1.5})), "  1.0000e+99\n  1.5000e+00\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({1e-100, 1.5})), "1.0000e-100\n 1.5000e+00\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({1e-101, 1.5})), " 1.0000e-101\n  1.5000e+00\n[ CPUDoubleType{2} ]");
}

TEST(Print, LargeAndSmallNumbersShareAScale) {
  EXPECT_EQ(printed(of({100000.5, 200000.25})), "1e+05 *\n 1.0000\n 2.0000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.001, 0.0025})), "0.001 *\n 1.0000\n 2.5000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({0.01, 0.025})), "0.01 *\n 1.0000\n 2.5000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(printed(of({100000.5, 200000.25, 300000.125, -1.5e5}).view({2, 2})),
            "1e+05 *\n 1.0000  2.0000\n 3.0000 -1.5000\n[ CPUDoubleType{2,2} ]");
  EXPECT_EQ(printed(large(8).view({2, 2, 2})),
            "(1,.,.) = \n 1e+05 *\n  1.0000  1.1000\n   1.2000  1.3000\n\n(2,.,.) = \n 1e+05 *\n  1.4000  1.5000\n   "
            "1.6000  1.7000\n[ CPUDoubleType{2,2,2} ]");
}

TEST(Print, WhatIsNotFiniteDoesNotCountForTheFormat) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(printed(of({inf, -inf, nan})), "inf\n-inf\nnan\n[ CPUDoubleType{3} ]");
  EXPECT_EQ(printed(of({inf, 1.5, nan, -inf})), "    inf\n 1.5000\n    nan\n   -inf\n[ CPUDoubleType{4} ]");
  EXPECT_EQ(printed(of({inf, 2.0, nan, -inf})), "inf\n 2\nnan\n-inf\n[ CPUDoubleType{4} ]");
}

TEST(Print, RowsThatAreTooLongForALineAreGroupsOfColumns) {
  EXPECT_EQ(printed(arange(20).view({1, 20})),
            "  0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15  16  17  18  19\n[ CPULongType{1,20} ]");
  EXPECT_EQ(printed(arange(60).view({2, 30})),
            "Columns 1 to 20  0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15  16  17  18  19\n"
            " 30  31  32  33  34  35  36  37  38  39  40  41  42  43  44  45  46  47  48  49\n"
            "\nColumns 21 to 30 20  21  22  23  24  25  26  27  28  29\n"
            " 50  51  52  53  54  55  56  57  58  59\n[ CPULongType{2,30} ]");
  EXPECT_EQ(printed(large(24).view({2, 12})),
            "Columns 1 to 101e+05 *\n 1.0000  1.1000  1.2000  1.3000  1.4000  1.5000  1.6000  1.7000  1.8000  1.9000\n"
            " 2.2000  2.3000  2.4000  2.5000  2.6000  2.7000  2.8000  2.9000  3.0000  3.1000\n"
            "\nColumns 11 to 121e+05 *\n 2.0000  2.1000\n 3.2000  3.3000\n[ CPUDoubleType{2,12} ]");
}

TEST(Print, TheMatricesOfAStackAreIndented) {
  EXPECT_EQ(printed(arange(12).view({2, 3, 2})),
            "(1,.,.) = \n  0  1\n  2  3\n  4  5\n\n(2,.,.) = \n   6   7\n   8   9\n  10  11\n"
            "[ CPULongType{2,3,2} ]");
  EXPECT_EQ(printed(arange(60).view({1, 2, 30})),
            "(1,.,.) = \n Columns 1 to 19   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15  16  17  18\n"
            "  30  31  32  33  34  35  36  37  38  39  40  41  42  43  44  45  46  47  48\n"
            "\nColumns 20 to 30  19  20  21  22  23  24  25  26  27  28  29\n"
            "  49  50  51  52  53  54  55  56  57  58  59\n[ CPULongType{1,2,30} ]");
  EXPECT_EQ(printed(large(24).view({1, 2, 12})),
            "(1,.,.) = \n Columns 1 to 9 1e+05 *\n"
            "  1.0000  1.1000  1.2000  1.3000  1.4000  1.5000  1.6000  1.7000  1.8000\n"
            "   2.2000  2.3000  2.4000  2.5000  2.6000  2.7000  2.8000  2.9000  3.0000\n"
            "\nColumns 10 to 12 1e+05 *\n  1.9000  2.0000  2.1000\n   3.1000  3.2000  3.3000\n"
            "[ CPUDoubleType{1,2,12} ]");
  EXPECT_EQ(printed(arange(24).view({2, 3, 2, 2})),
            "(1,1,.,.) = \n  0  1\n  2  3\n\n(2,1,.,.) = \n  12  13\n  14  15\n\n"
            "(1,2,.,.) = \n  4  5\n  6  7\n\n(2,2,.,.) = \n  16  17\n  18  19\n\n"
            "(1,3,.,.) = \n   8   9\n  10  11\n\n(2,3,.,.) = \n  20  21\n  22  23\n[ CPULongType{2,3,2,2} ]");
}

TEST(Print, WithoutElementsOnlyTheTypeAndTheSizesAreSaid) {
  EXPECT_EQ(printed(empty({2, 0})), "[ CPUFloatType{2,0} ]");
  EXPECT_EQ(printed(empty({2, 0, 3})), "[ CPUFloatType{2,0,3} ]");
  EXPECT_EQ(printed(tensor(1.5)), "1.5\n[ CPUFloatType{} ]");
  EXPECT_EQ(printed(tensor(1.0 / 3, TensorOptions(kFloat64))), "0.3333333333333333\n[ CPUDoubleType{} ]");
  EXPECT_EQ(printed(tensor(0.1)), "0.10000000149011612\n[ CPUFloatType{} ]");
  EXPECT_EQ(printed(tensor(123456789.0, TensorOptions(kFloat64))), "123456789\n[ CPUDoubleType{} ]");
  EXPECT_EQ(printed(tensor(1e20, TensorOptions(kFloat64))), "1e+20\n[ CPUDoubleType{} ]");
}

TEST(Print, OnADeviceThatHoldsNoDataTheSizesStandInPlaceOfNumbers) {
  const TensorOptions there{Device("meta")};
  EXPECT_EQ(printed(empty({2, 3}, there)), "tensor(..., device='meta', size=(2, 3))\n[ METAFloatType{2,3} ]");
  EXPECT_EQ(printed(empty({5}, there)), "tensor(..., device='meta', size=(5,))\n[ METAFloatType{5} ]");
  EXPECT_EQ(printed(empty({}, there)), "tensor(..., device='meta', size=())\n[ METAFloatType{} ]");
}

TEST(Print, LeavesTheStreamsFormatAsItWas) {
  std::ostringstream stream;
  stream << std::setprecision(3) << std::hex;
  for (const Tensor& shown : {tensor(1.25), of({1.5}), of({0.001, 0.0025}), large(4).view({2, 2}), tensor({{1, 2}})})
    stream << shown;
  stream.str("");
  stream << 1.23456 << ' ' << 255;
  EXPECT_EQ(stream.str(), "1.23 ff");
}

TEST(Print, NamesTypesAndFormatsAsLibtorch) {
  std::ostringstream stream;
  stream << ones({1}, kInt64).dtype() << "," << ones({1}, kInt16).dtype() << "," << MemoryFormat::ChannelsLast << ","
         << MemoryFormat::Contiguous;
  EXPECT_EQ(stream.str(), "long int,short int,ChannelsLast,Contiguous");
}

}  // namespace
}  // namespace tenon
