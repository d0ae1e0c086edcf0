// The ledger against plain counters: threads that come and go take turns, so that every figure has one right value.
#include <tenon/memory/stack/usage_ledger.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

namespace tenon {
namespace {

/// A thread that does one thing at a time while the test waits for it.
class Hand {
 public:
  ~Hand() {
    step_ = nullptr;
    go_.release();
    thread_.join();
  }
  template <class Step>
  void run(const Step& step) {
    step_ = [](const void* what) { (*static_cast<const Step*>(what))(); };
    what_ = &step;
    go_.release();
    done_.acquire();
  }

 private:
  void serve() {
    for (go_.acquire(); step_ != nullptr; go_.acquire()) {
      step_(what_);
      done_.release();
    }
  }

  void (*step_)(const void*) = nullptr;
  const void* what_ = nullptr;
  std::binary_semaphore go_{0}, done_{0};
  std::thread thread_{[this] { serve(); }};
};

struct Piece {
  std::size_t requested, block;
  Purpose purpose;
  ElementKind elements;
};

/// What the ledger says it counts, one number at a time.
class PlainCounters {
 public:
  void add(const Piece& piece) {
    requested_.increase(as_signed(piece.requested));
    allocated_.increase(as_signed(piece.block));
    blocks_.increase(1);
    of(piece.purpose).increase(as_signed(piece.requested));
    of(piece.purpose, piece.elements).increase(as_signed(piece.requested));
  }
  void remove(const Piece& piece) {
    requested_.decrease(as_signed(piece.requested));
    allocated_.decrease(as_signed(piece.block));
    blocks_.decrease(1);
    of(piece.purpose).decrease(as_signed(piece.requested));
    of(piece.purpose, piece.elements).decrease(as_signed(piece.requested));
  }
  void reset_peak() {
    every([](Stat& stat) { stat.peak = stat.current; });
  }
  void reset_accumulated() {
    every([](Stat& stat) { stat.allocated = stat.freed = 0; });
  }
  void expect_is_what(const UsageLedger& ledger) const {
    MemoryStats said;
    ledger.read(said);
    expect_same(said.requested_bytes, requested_, "requested bytes");
    expect_same(said.allocated_bytes, allocated_, "allocated bytes");
    expect_same(said.allocations, blocks_, "blocks");
    for (int i = 0; i < kPurposeCount; ++i) {
      const auto at = static_cast<std::size_t>(i);
      expect_same(said.requested_by_purpose[at], by_purpose_[at], name_of(static_cast<Purpose>(i)));
      for (std::size_t kind = 0; kind < kElementKindCount; ++kind)
        expect_same(said.requested_by_element[at][kind], by_element_[at][kind],
                    name_of(static_cast<ElementKind>(kind)));
    }
    EXPECT_EQ(ledger.allocated_bytes(), allocated_.current);
    EXPECT_EQ(ledger.live_blocks(), blocks_.current);
  }
  std::int64_t requested() const { return requested_.current; }
  std::int64_t allocated() const { return allocated_.current; }

 private:
  static std::int64_t as_signed(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }
  static void expect_same(const Stat& said, const Stat& is, std::string_view what) {
    EXPECT_EQ(said.current, is.current) << what;
    EXPECT_EQ(said.peak, is.peak) << what;
    EXPECT_EQ(said.allocated, is.allocated) << what;
    EXPECT_EQ(said.freed, is.freed) << what;
  }
  Stat& of(Purpose purpose) { return by_purpose_[static_cast<std::size_t>(purpose)]; }
  Stat& of(Purpose purpose, ElementKind kind) {
    return by_element_[static_cast<std::size_t>(purpose)][static_cast<std::size_t>(kind)];
  }
  template <class Change>
  void every(const Change& change) {
    for (Stat* const stat : {&requested_, &allocated_, &blocks_}) change(*stat);
    for (Stat& stat : by_purpose_) change(stat);
    for (auto& kinds : by_element_)
      for (Stat& stat : kinds) change(stat);
  }

  Stat requested_, allocated_, blocks_;
  std::array<Stat, kPurposeCount> by_purpose_;
  std::array<std::array<Stat, kElementKindCount>, kPurposeCount> by_element_;
};

Piece drawn_piece(std::mt19937_64& random) {
  // Empty requests, small ones and now and then one that dwarfs what is live.
  const std::size_t most = random() % 50 == 0 ? std::size_t{1} << 40 : random() % 10 == 0 ? 1'000'000 : 2'000;
  const std::size_t requested = random() % most;
  return {requested, requested + random() % 512, static_cast<Purpose>(random() % kPurposeCount),
          static_cast<ElementKind>(random() % kElementKindCount)};
}

/// A history that `seed` draws. The ledger may be asked from whichever thread calls.
class History {
 public:
  History(UsageLedger& ledger, std::uint64_t seed) : ledger_(ledger), seed_(seed), random_(seed) {}

  std::uint64_t drawn(std::uint64_t below) { return random_() % below; }
  void follow(int steps) {
    for (; steps > 0 && !::testing::Test::HasFailure(); --steps) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed_ << ", step " << step_);
      step();
    }
  }
  void expect_right() const { model_.expect_is_what(ledger_); }
  const PlainCounters& model() const { return model_; }

 private:
  void step() {
    // Waves: for a while more comes than goes, then the other way round.
    const unsigned rises_of_100 = step_++ / 150 % 2 == 0 ? 60 : 40;
    const std::uint64_t what = drawn(1000);
    if (what < 10) {
      ledger_.reset_peak();
      model_.reset_peak();
    } else if (what < 20) {
      ledger_.reset_accumulated();
      model_.reset_accumulated();
    } else if (live_.empty() || what % 100 < rises_of_100) {
      add(drawn_piece(random_));
    } else {
      std::swap(live_[drawn(live_.size())], live_.back());
      remove_last();
    }
    // Not after each step: looking is itself a step that may settle what threads had not told yet.
    if (drawn(8) == 0) expect_right();
  }
  void add(const Piece& piece) {
    ledger_.add(piece.requested, piece.block, piece.purpose, piece.elements);
    model_.add(piece);
    live_.push_back(piece);
  }
  void remove_last() {
    ledger_.remove(live_.back().requested, live_.back().block, live_.back().purpose, live_.back().elements);
    model_.remove(live_.back());
    live_.pop_back();
  }

  UsageLedger& ledger_;
  const std::uint64_t seed_;
  std::mt19937_64 random_;
  PlainCounters model_;
  std::vector<Piece> live_;
  unsigned step_ = 0;
};

TEST(UsageLedgerModel, CountsByThreadsThatComeAndGoAreThoseOfOneCounter) {
  for (std::uint64_t seed = 1; seed <= 15 && !HasFailure(); ++seed) {
    UsageLedger ledger(false);
    History history(ledger, seed);
    std::array<std::unique_ptr<Hand>, 4> hands;
    for (int turn = 0; turn < 120; ++turn) {
      auto& hand = hands[history.drawn(hands.size())];
      if (history.drawn(20) == 0) hand.reset();  // a thread ends, and another may take its slot
      if (!hand) hand = std::make_unique<Hand>();
      const int steps = history.drawn(2) == 0 ? 1 : static_cast<int>(history.drawn(40));
      hand->run([&] { history.follow(steps); });
    }
    history.expect_right();
  }
}

TEST(UsageLedgerModel, CountsUnderOneLockAreThoseOfOneCounter) {
  for (std::uint64_t seed = 1; seed <= 50 && !HasFailure(); ++seed) {
    UsageLedger ledger(true);
    History history(ledger, seed);
    history.follow(1500);
    history.expect_right();
    EXPECT_EQ(ledger.requested_by_one_thread(), static_cast<std::size_t>(history.model().requested()));
    EXPECT_EQ(ledger.allocated_by_one_thread(), static_cast<std::size_t>(history.model().allocated()));
  }
}

}  // namespace
}  // namespace tenon
