// One unit for all sizes of a column, so that they compare at a glance.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <span>
#include <string>

namespace tenon {

class TENON_API ByteUnit {
 public:
  /// The largest unit that leaves three digits of the smallest size, but not more than four before the point of the
  /// largest. Zeros do not count.
  explicit ByteUnit(std::span<const std::int64_t> sizes);

  /// "0.12 GiB". A size that would be shown as 0 and is none keeps a unit of its own.
  std::string show(std::int64_t bytes) const;

 private:
  std::size_t unit_ = 0;
  int digits_ = 0;
};

}  // namespace tenon
