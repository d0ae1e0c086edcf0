// MemoryRange of `planned` against a plain list of its pieces: which places are taken, which pages have memory, what it
// reports, at every step; on a device that has too little and whose maps fail now and then.
#include <planned/memory_range.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::planned {
namespace {

constexpr std::size_t kRangePage = 4 * KiB, kRangePages = 12, kUnit = 512;

/// Knows what is mapped, and fails in the map that it is told to.
class PageSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    if (maps_until_failure > 0 && --maps_until_failure == 0) throw Error("a map that fails");
    upstream_.map(address, bytes, physical, offset);
    EXPECT_EQ(bytes, kRangePage);
    EXPECT_TRUE(mapped.insert(Address(address)).second) << "mapped twice";
  }
  void unmap(void* address, std::size_t bytes) noexcept override {
    EXPECT_EQ(bytes, kRangePage);
    EXPECT_EQ(mapped.erase(Address(address)), 1u) << "was not mapped";
    upstream_.unmap(address, bytes);
  }
  std::set<std::uint64_t> mapped;
  int maps_until_failure = 0;  ///< 0: none fails
};

/// A range as a list of pieces, in order.
struct PlainRange {
  struct Piece {
    std::size_t begin = 0, end = 0;
    bool is_free = true;
    std::uint64_t stream = 0;
    bool is_settled = true;
    std::optional<Ticket> ticket{};
    std::size_t requested = 0;
    std::size_t bytes() const { return end - begin; }
  };

  PlainRange(MemorySource& device, std::size_t bytes, bool is_virtual)
      : device(device), is_virtual(is_virtual), pieces{{.end = bytes}} {}

  bool is_usable(Piece& piece, std::uint64_t stream) {
    if (!piece.is_free) return false;
    if (piece.is_settled || piece.stream == stream) return true;
    if (!piece.ticket) piece.ticket = device.mark({piece.stream});
    return piece.is_settled = device.reached(*piece.ticket);
  }
  std::set<std::size_t> pages_of(std::size_t begin, std::size_t end) const {
    std::set<std::size_t> all;
    for (std::size_t at = begin; is_virtual && at < end; ++at)
      all.insert(at / kRangePage), at = at / kRangePage * kRangePage + kRangePage - 1;
    return all;
  }
  std::size_t missing(std::size_t begin, std::size_t end) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(pages_of(begin, end), [&](std::size_t page) { return !pages.contains(page); }));
  }
  /// The piece is free there, and the device has what is missing: `left` pages.
  bool can_take_at(std::size_t begin, std::size_t end, std::uint64_t stream) {
    for (Piece& piece : pieces)
      if (piece.begin < end && piece.end > begin && !is_usable(piece, stream)) return false;
    return true;
  }
  std::optional<std::size_t> place_for(std::size_t bytes, std::size_t base, std::size_t alignment,
                                       std::uint64_t stream) {
    std::vector<Piece*> in_order;
    for (Piece& piece : pieces)
      if (piece.is_free) in_order.push_back(&piece);
    std::ranges::stable_sort(in_order, {}, [](const Piece* piece) { return piece->bytes(); });
    for (Piece* const piece : in_order) {
      std::size_t begin = piece->begin;
      while ((base + begin) % alignment != 0) ++begin;
      if (begin + bytes <= piece->end && is_usable(*piece, stream)) return begin;
    }
    return std::nullopt;
  }
  void cut_at(std::size_t at) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].begin >= at || pieces[i].end <= at) continue;
      Piece rest = pieces[i];
      rest.begin = pieces[i].end = at;
      pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
      return;
    }
  }
  void take(std::size_t begin, std::size_t end, std::uint64_t stream, std::size_t requested) {
    pages.merge(pages_of(begin, end));
    cut_at(begin);
    cut_at(end);
    std::erase_if(pieces, [&](const Piece& piece) { return piece.begin >= begin && piece.end <= end; });
    const auto behind = std::ranges::find_if(pieces, [&](const Piece& piece) { return piece.begin >= end; });
    pieces.insert(behind, {begin, end, false, stream, true, {}, requested});
  }
  static bool merges(Piece& left, const Piece& right) {
    if (!left.is_free || !right.is_free) return false;
    if (!left.is_settled && !right.is_settled) {
      if (left.stream != right.stream) return false;
      const bool both = left.ticket && right.ticket;
      if (!both) left.ticket.reset();
      if (both && right.ticket->value > left.ticket->value) left.ticket = right.ticket;
    } else if (!right.is_settled) {
      left.stream = right.stream, left.ticket = right.ticket, left.is_settled = false;
    }
    left.end = right.end;
    return true;
  }
  void give(std::size_t begin, std::optional<Ticket> ticket) {
    auto here = std::ranges::find(pieces, begin, &Piece::begin);
    here->is_free = true, here->is_settled = false, here->ticket = ticket, here->requested = 0;
    if (std::next(here) != pieces.end() && merges(*here, *std::next(here))) pieces.erase(std::next(here));
    if (here != pieces.begin() && merges(*std::prev(here), *here)) pieces.erase(here);
  }
  void settle() {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!pieces[i].is_free) continue;
      pieces[i].is_settled = true, pieces[i].ticket.reset();
      while (i + 1 < pieces.size() && pieces[i + 1].is_free) {
        pieces[i].end = pieces[i + 1].end;
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  /// From the top, pages of which all is free, but those that are kept.
  std::size_t shrink(std::size_t bytes, std::size_t kept_begin, std::size_t kept_end) {
    std::size_t given = 0;
    for (std::size_t page = kRangePages; page-- > 0 && given < bytes;) {
      const std::size_t begin = page * kRangePage, end = begin + kRangePage;
      const bool is_in_one_piece = std::ranges::any_of(
          pieces, [&](const Piece& piece) { return piece.is_free && piece.begin <= begin && piece.end >= end; });
      const bool is_kept = begin < kept_end && end > kept_begin;
      if (pages.contains(page) && is_in_one_piece && !is_kept) pages.erase(page), given += kRangePage;
    }
    return given;
  }
  std::size_t active() const {
    std::size_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.is_free ? 0 : piece.bytes();
    return sum;
  }
  /// What a walk shows; and the longest free part that has memory.
  std::string shown(std::size_t& largest) const {
    std::string text;
    largest = 0;
    for (const Piece& piece : pieces)
      for (std::size_t begin = piece.begin; begin < piece.end;) {
        const auto has_memory = [&](std::size_t at) { return !is_virtual || pages.contains(at / kRangePage); };
        std::size_t end = begin;
        while (end < piece.end && (!piece.is_free || has_memory(end) == has_memory(begin))) end += kUnit / 8;
        const bool is_unmapped = piece.is_free && !has_memory(begin);
        if (piece.is_free && !is_unmapped) largest = std::max(largest, end - begin);
        text += fmt::format("{}+{} {} {}; ", begin, end - begin, piece.requested,
                            is_unmapped     ? 3
                            : piece.is_free ? static_cast<int>(BlockState::kFree)
                                            : 0);
        begin = end;
      }
    return text;
  }

  MemorySource& device;
  const bool is_virtual;
  std::vector<Piece> pieces;
  std::set<std::size_t> pages;
};

struct Shown final : SegmentVisitor {
  explicit Shown(std::uint64_t base) : base(base) {}
  void segment(const SegmentInfo& info) override {
    head = fmt::format("{} at {} of {}, {}", info.bytes, info.address - base, info.stream.id,
                       info.is_expandable ? "pages" : "whole");
  }
  void block(const BlockInfo& info) override {
    const int state = info.state == BlockState::kUnmapped ? 3
                      : info.state == BlockState::kFree   ? static_cast<int>(BlockState::kFree)
                                                          : 0;
    text += fmt::format("{}+{} {} {}; ", info.address - base, info.bytes, info.requested_bytes, state);
  }
  const std::uint64_t base;
  std::string head, text;
};

/// One course, each step in both.
class RangeCourse {
 public:
  RangeCourse(std::uint64_t seed, bool is_virtual)
      : random_(seed),
        device_({.capacity_bytes = is_virtual ? 9 * kRangePage : 2 * kRangePages * kRangePage,
                 .page_bytes = is_virtual ? kRangePage : 0,
                 .manual_completion = true}),
        source_(device_),
        plain_(device_, kRangePages * kRangePage, is_virtual),
        base_(is_virtual ? source_.reserve(kRangePages * kRangePage) : source_.acquire(kRangePages * kRangePage)),
        range_(std::make_unique<MemoryRange>(source_, base_, kRangePages * kRangePage, is_virtual)) {}
  ~RangeCourse() {
    range_.reset();
    EXPECT_EQ(device_.used_bytes(), 0u);
    EXPECT_EQ(device_.reserved_address_bytes(), 0u);
    EXPECT_TRUE(source_.mapped.empty());
  }
  RangeCourse(const RangeCourse&) = delete;
  RangeCourse& operator=(const RangeCourse&) = delete;

  void step() {
    const std::uint64_t choice = drawn(20);
    if (choice < 9) {
      take(choice < 5);
    } else if (choice < 15) {
      give();
    } else if (choice == 15) {
      device_.complete(StreamRef{drawn(3)});
    } else if (choice == 16) {
      device_.synchronize();
      range_->settle();
      plain_.settle();
    } else if (plain_.is_virtual) {
      device_.synchronize();
      range_->settle();
      plain_.settle();
      const std::size_t bytes = drawn(4 * kRangePage), from = drawn(kRangePages * kRangePage),
                        kept = drawn(2) * drawn(3 * kRangePage);
      EXPECT_EQ(range_->shrink(bytes, kept == 0 ? 0 : from, kept),
                plain_.shrink(bytes, kept == 0 ? 0 : from, kept == 0 ? 0 : from + kept));
    }
    look();
  }

 private:
  std::uint64_t drawn(std::uint64_t below) { return random_() % below; }

  void take(bool is_at) {
    const std::uint64_t stream = drawn(3);
    const std::size_t bytes = (1 + drawn(drawn(4) == 0 ? 40 : 8)) * (kUnit / 8) * (1 + drawn(2) * 7);
    const std::size_t offset = drawn(kRangePages * kRangePage / 64 + 2) * 64, alignment = std::size_t{64} << drawn(4);
    source_.maps_until_failure = plain_.is_virtual && drawn(8) == 0 ? 1 + static_cast<int>(drawn(3)) : 0;
    std::optional<std::size_t> wanted;
    if (!is_at) {
      wanted = plain_.place_for(bytes, Address(base_), alignment, stream);
    } else if (offset + bytes <= kRangePages * kRangePage && plain_.can_take_at(offset, offset + bytes, stream)) {
      wanted = offset;
    }
    bool throws = false;
    if (wanted) {
      const std::size_t missing = plain_.missing(*wanted, *wanted + bytes);
      const std::size_t left = device_.usage().free_bytes / kRangePage;
      const auto until_failure = static_cast<std::size_t>(source_.maps_until_failure);
      throws = until_failure != 0 && until_failure <= std::min(missing, left);
      if (missing > left || throws) wanted.reset();
    }
    Tile* tile = nullptr;
    try {
      tile = is_at ? range_->take_at(offset, bytes, {stream}) : range_->take(bytes, alignment, {stream});
      EXPECT_FALSE(throws);
    } catch (const Error&) {
      EXPECT_TRUE(throws);
    }
    source_.maps_until_failure = 0;
    ASSERT_EQ(tile != nullptr, wanted.has_value());
    if (tile == nullptr) return;
    EXPECT_EQ(tile->offset, *wanted);
    EXPECT_EQ(tile->bytes, bytes);
    EXPECT_EQ(tile->stream.id, stream);
    EXPECT_EQ(Address(tile->data()), Address(base_) + *wanted);
    tile->requested_bytes = bytes - drawn(8);
    plain_.take(*wanted, *wanted + bytes, stream, tile->requested_bytes);
    out_.push_back(tile);
  }
  void give() {
    if (out_.empty()) return;
    std::swap(out_[drawn(out_.size())], out_.back());
    Tile* const tile = out_.back();
    out_.pop_back();
    const std::size_t offset = tile->offset;
    const std::optional<Ticket> ticket = drawn(2) == 0 ? std::optional(device_.mark(tile->stream)) : std::nullopt;
    range_->give(tile, ticket);
    plain_.give(offset, ticket);
  }
  void look() {
    range_->check_invariants();
    const std::size_t active = plain_.active();
    const std::size_t reserved = plain_.is_virtual ? plain_.pages.size() * kRangePage : kRangePages * kRangePage;
    EXPECT_EQ(range_->active_bytes(), active);
    EXPECT_EQ(range_->reserved_bytes(), reserved);
    EXPECT_EQ(range_->bytes(), kRangePages * kRangePage);
    EXPECT_EQ(device_.used_bytes(), reserved);
    EXPECT_EQ(range_->is_empty(), active == 0 && reserved == 0);
    std::set<std::uint64_t> mapped;
    for (const std::size_t page : plain_.pages) mapped.insert(Address(base_) + page * kRangePage);
    EXPECT_EQ(source_.mapped, mapped);
    std::size_t largest = 0;
    const std::string wanted = plain_.shown(largest);
    EXPECT_EQ(range_->largest_free_bytes(), reserved == 0 ? 0 : largest);
    Shown shown{std::uint64_t{Address(base_)}};
    range_->walk(shown);
    EXPECT_EQ(shown.text, reserved == 0 ? "" : wanted);
    const char* const kind = plain_.is_virtual ? "pages" : "whole";
    const std::string head = fmt::format("{} at 0 of {}, {}", reserved, plain_.pieces.front().stream, kind);
    EXPECT_EQ(shown.head, reserved == 0 ? "" : head);
    const std::size_t from = drawn(kRangePages * kRangePage), bytes = drawn(3) * drawn(2 * kRangePage);
    EXPECT_EQ(range_->missing_bytes(from, bytes), plain_.missing(from, from + bytes) * kRangePage);
  }

  std::mt19937_64 random_;
  AddressOnlySource device_;
  PageSource source_;
  PlainRange plain_;
  void* const base_;
  std::unique_ptr<MemoryRange> range_;
  std::vector<Tile*> out_;
};

TEST(MemoryRangeModel, TakesGivesAndShrinksAsAListOfItsPiecesDoes) {
  for (const bool is_virtual : {true, false})
    for (std::uint64_t seed = 1; seed <= 12 && !testing::Test::HasFailure(); ++seed) {
      RangeCourse course(seed, is_virtual);
      for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) {
        SCOPED_TRACE(fmt::format("seed {}, step {}, {}", seed, step, is_virtual ? "pages" : "whole"));
        course.step();
      }
    }
}

TEST(MemoryRangeRules, APieceOfMemoryGoesBackWholeAndOnceAndOnlyWhereAllOfItIsFree) {
  AddressOnlySource device({.page_bytes = 0});
  MemoryRange range(device, device.acquire(kRangePage), kRangePage, false);
  Tile* const tile = range.take(kUnit, 64, {});
  ASSERT_NE(tile, nullptr);
  EXPECT_EQ(range.shrink(kRangePage), 0u) << "something is out";
  range.give(tile, std::nullopt);
  EXPECT_EQ(range.shrink(0), 0u);
  EXPECT_EQ(device.used_bytes(), kRangePage);
  EXPECT_FALSE(range.is_empty());
  EXPECT_EQ(range.shrink(1), kRangePage);
  EXPECT_TRUE(range.is_empty());
  EXPECT_EQ(device.used_bytes(), 0u);
  EXPECT_EQ(range.shrink(1), 0u);
  EXPECT_EQ(range.largest_free_bytes(), 0u);
}

TEST(MemoryRangeRules, WhatIsBrokenIsNamed) {
  const auto said_of = [](auto&& breaks) -> std::string {
    AddressOnlySource device({.page_bytes = kRangePage});
    MemoryRange range(device, device.reserve(4 * kRangePage), 4 * kRangePage, true);
    Tile* const first = range.take_at(0, kRangePage, {});
    Tile* const second = range.take_at(kRangePage, kRangePage, {});
    range.check_invariants();
    const auto [kept_first, kept_second] = std::pair(*first, *second);
    breaks(range, *first, *second);
    std::string text;
    try {
      range.check_invariants();
    } catch (const Error& error) {
      text = error.what();
    }
    *first = kept_first, *second = kept_second;
    return text;
  };
  const auto nothing = [](MemoryRange&, Tile&, Tile&) {};
  EXPECT_EQ(said_of(nothing), "");
  const std::string tiling = "planned: tiles do not tile their range";
  EXPECT_EQ(said_of([](MemoryRange&, Tile& tile, Tile&) { tile.bytes += 64; }), tiling);
  EXPECT_EQ(said_of([](MemoryRange&, Tile& tile, Tile&) { tile.bytes = 0; }), tiling);
  EXPECT_EQ(said_of([](MemoryRange&, Tile&, Tile& tile) { tile.offset += 64; }), tiling);
  EXPECT_EQ(said_of([](MemoryRange&, Tile&, Tile& tile) { tile.state = BlockState::kFree; }),
            "planned: a free tile is not in the index");
  EXPECT_EQ(said_of([](MemoryRange& range, Tile&, Tile& tile) {
              range.give(&tile, std::nullopt);
              tile.state = BlockState::kActive;
            }),
            "planned: a block that is out has a page without memory");
  EXPECT_EQ(said_of([](MemoryRange& range, Tile& tile, Tile& other) {
              range.take_at(2 * kRangePage, 2 * kRangePage, {});
              range.give(&tile, std::nullopt);
              tile.state = BlockState::kActive;
              static_cast<void>(other);
            }),
            "planned: the index has tiles that are not there");
}

}  // namespace
}  // namespace tenon::planned
