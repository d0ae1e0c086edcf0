// The values that PyTorch gave, as make.py wrote them.
#pragma once

#include "support/json.h"

#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::test {

inline nlohmann::json recorded(const std::string& name) {
  std::ifstream file(TENON_SOURCE_DIR "/tests/pytorch_values/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str());
}

/// A number, or one of the words that JSON has no number for.
inline double number_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  const auto word = value.get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return word == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

inline std::vector<double> numbers_of(const nlohmann::json& values) {
  std::vector<double> numbers;
  for (const nlohmann::json& value : values) numbers.push_back(number_of(value));
  return numbers;
}

/// In row-major order, each within `tolerance` of what was recorded, relative to numbers above one.
inline void expect_recorded(const Tensor& got, const nlohmann::json& want, double tolerance = 1e-9) {
  const Tensor flat = got.detach().to(kFloat64).contiguous();
  const std::vector<double> numbers = numbers_of(want);
  ASSERT_EQ(flat.numel(), static_cast<std::int64_t>(numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double value = flat.data_ptr<double>()[i];
    if (std::isnan(numbers[i]) ? std::isnan(value) : value == numbers[i]) continue;
    if (std::isinf(numbers[i])) {
      EXPECT_EQ(value, numbers[i]) << "element " << i;
    } else {
      EXPECT_NEAR(value, numbers[i], tolerance * std::max(1., std::abs(numbers[i]))) << "element " << i;
    }
  }
}

}  // namespace tenon::test
