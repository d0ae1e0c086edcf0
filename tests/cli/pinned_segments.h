// A history that fragments: three segments of 100 MiB, each pinned by a block of 15 MiB, then a request of 200 MiB. At
// most 300 MiB are live at once; ordinary segments cannot be given back and 500 MiB are reserved, expandable ones lose
// the pages in their holes.
#pragma once

#include <string>

namespace tenon::test {

constexpr long kMiB = 1 << 20;

/// The same in small, for what replays it under many settings: segments of 14 MiB pinned by 3 MiB, a request of 28 MiB,
/// 42 MiB live, 70 MiB reserved.
struct PinnedSizes {
  long segment = 100, filler = 80, pin = 15, last = 200;
};
constexpr PinnedSizes kSmallPinned{.segment = 14, .filler = 11, .pin = 3, .last = 28};

inline std::string pinned_segments(const PinnedSizes& mebibytes_of = {}) {
  std::string text;
  const auto a = [&](int id, long mebibytes) {
    text += "a " + std::to_string(id) + " " + std::to_string(mebibytes * kMiB) + " 0\n";
  };
  const auto f = [&](int id) { text += "f " + std::to_string(id) + "\n"; };
  for (int i = 0; i < 3; ++i) a(i, mebibytes_of.segment);
  for (int i = 0; i < 3; ++i) f(i);
  for (int i = 3; i < 6; ++i) a(i, mebibytes_of.filler);
  for (int i = 6; i < 9; ++i) a(i, mebibytes_of.pin);
  for (int i = 3; i < 6; ++i) f(i);
  a(9, mebibytes_of.last);
  f(9);
  for (int i = 6; i < 9; ++i) f(i);
  return text;
}

/// Blocks of 3 MiB with a live one between two freed ones, then blocks of 5 MiB: whoever cannot put free pieces
/// together takes new memory for them. 192 MiB live, 272 MiB reserved at least by PyTorch.
inline std::string checkered() {
  std::string text;
  for (int i = 0; i < 64; ++i) text += "a " + std::to_string(i) + " 3145728 0\n";
  for (int i = 0; i < 64; i += 2) text += "f " + std::to_string(i) + "\n";
  for (int i = 64; i < 80; ++i) text += "a " + std::to_string(i) + " 5242880 0\n";
  for (int i = 1; i < 64; i += 2) text += "f " + std::to_string(i) + "\n";
  for (int i = 64; i < 80; ++i) text += "f " + std::to_string(i) + "\n";
  return text;
}

}  // namespace tenon::test
