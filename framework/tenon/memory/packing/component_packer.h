// ComponentPacker: packs buffers that hang together in time, in slices, until it is good enough. pack() gives each
// component as much time as it may have.
#pragma once

#include <tenon/memory/packing/exact_search.h>
#include <tenon/memory/packing/greedy.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace tenon::packing {

class ComponentPacker {
 public:
  /// `buffers` outlive it. `is_stopping` is asked often. What repeats is looked at for as long as `part_seconds`.
  ComponentPacker(std::span<const Buffer> buffers, std::uint64_t seed, double part_seconds,
                  std::function<bool()> is_stopping);

  /// Every height up to this one will do.
  void set_goal(std::uint64_t goal) { goal_ = goal; }
  /// Whether nothing is left to do: it is as low as asked for, or as it can be.
  bool is_done() const { return height_ <= std::max(goal_, lower_bound_); }

  /// One pass in each order. Always has a packing afterwards.
  void greedy();
  /// A round of exact searches or of improving passes; each round is longer than the one before.
  void search();

  const Offsets& offsets() const { return offsets_; }
  std::uint64_t height() const { return height_; }
  std::uint64_t lower_bound() const { return lower_bound_; }
  const std::string& method() const { return method_; }

 private:
  bool is_over() const { return is_done() || is_stopping_(); }
  void offer(const Offsets& offsets, std::string_view method);
  bool can_be_exact() const;
  void search_exactly();
  SearchEnd fits_under(std::uint64_t capacity);
  void begin_anew();
  void improve(std::size_t passes);
  void pack_fullest_window();
  void pack_repeats();

  std::span<const Buffer> buffers_;
  const std::uint64_t seed_;
  const double part_seconds_;
  std::function<bool()> is_stopping_;
  Workspace work_;
  std::mt19937_64 random_;
  std::uint64_t unit_ = 1;  ///< every height is a multiple of it
  std::uint64_t goal_ = 0;
  std::uint64_t lower_bound_ = 0;
  Offsets offsets_;
  std::uint64_t height_ = Occupancy::kNone;
  std::string method_;

  std::unique_ptr<ExactSearch> exact_;
  std::uint64_t nodes_ = 0;  ///< of each exact search in this round
  Order order_;              ///< that improving goes on from
  std::vector<Ordering> beginnings_;
  std::size_t begun_ = 0;  ///< of these
  std::size_t patience_, fruitless_ = 0;
  std::uint64_t part_ = 16;  ///< of what is above the bound the 16th
  std::size_t rounds_ = 0;
};

}  // namespace tenon::packing
