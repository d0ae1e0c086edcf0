// Large numbers for people.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <string>

namespace tenon {

/// 10652160 -> "10,652,160"; `number` is not negative.
TENON_API std::string grouped(std::int64_t number);

}  // namespace tenon
