// Greedy passes, exact searches by bisection, improving passes.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/packing/component_packer.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/memory/packing/repeats.h>

#include <algorithm>
#include <numeric>

namespace tenon::packing {

namespace {

/// The search keeps a word for each pair that lives together.
constexpr std::size_t kMostExactBuffers = 3000;
/// The first orders find nearly everything within so many nodes; then the others join, and so do improving passes.
constexpr std::size_t kFirstPreorders = 3;
constexpr std::uint64_t kNodesOfFirstPreorders = 1U << 16;
/// Around the fullest section of a larger problem.
constexpr std::size_t kWindowBuffers = 300;
/// Passes without success after which improving begins anew, at first; twice as many each time that all beginnings were
/// tried.
constexpr std::size_t kFruitlessPasses = 4;

/// Of what a packing is above the bound, so much is tried to be saved at once: a half at first, less after so many
/// passes without success.
constexpr std::uint64_t kLargestPart = 2, kSmallestPart = 64;
constexpr std::size_t kPassesOfAPart = 6;

std::uint64_t common_unit(std::span<const Buffer> buffers) {
  std::uint64_t unit = 0;
  for (const Buffer& buffer : buffers) {
    unit = std::gcd(std::gcd(unit, buffer.size), buffer.alignment == 1 ? 0 : buffer.alignment);
    if (buffer.offset) unit = std::gcd(unit, *buffer.offset);
  }
  return std::max<std::uint64_t>(unit, 1);
}

Order order_of(const Offsets& offsets) {
  Order order(offsets.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return offsets[i]; });
  return order;
}

}  // namespace

ComponentPacker::ComponentPacker(std::span<const Buffer> buffers, std::uint64_t seed, double part_seconds,
                                 std::function<bool()> is_stopping)
    : buffers_(buffers),
      seed_(seed),
      part_seconds_(part_seconds),
      is_stopping_(std::move(is_stopping)),
      work_(buffers),
      random_(seed),
      unit_(common_unit(buffers)),
      lower_bound_(align_up(work_.timeline.lower_bound(), unit_)),
      nodes_(4 * buffers.size()),
      patience_(kFruitlessPasses) {}

void ComponentPacker::offer(const Offsets& offsets, std::string_view method) {
  if (offsets.empty()) return;
  const std::uint64_t height = height_of(buffers_, offsets);
  if (height >= height_) return;
  height_ = height;
  offsets_ = offsets;
  method_ = method;
}

void ComponentPacker::greedy() {
  const bool has_hints = std::ranges::any_of(buffers_, [](const Buffer& buffer) { return buffer.hint.has_value(); });
  // The quick ones, without which first fit might not end in time.
  offer(birth_best_fit(work_), "best fit by birth");
  offer(death_best_fit(work_), "best fit by death");
  Offsets offsets;
  std::ptrdiff_t good = 0;
  for (const Ordering& ordering : kOrderings) {
    if (ordering.criterion == Criterion::kHint && !has_hints) continue;
    if (is_done() || (!beginnings_.empty() && is_over())) return;
    const FirstFit pass =
        first_fit(work_, order_by(work_, ordering), offsets_.empty() ? kMaxBytes * 2 : height_ - 1, offsets);
    if (!pass.failed) {
      offer(offsets, name_of(ordering.criterion));
    } else if (offsets_.empty()) {
      throw ValueError("buffers with fixed offsets overlap");
    }
    // Only the first one goes on to its end: it is seldom far off, and in short budgets all that there is time for.
    work_.is_stopping = [this] { return is_over(); };
    // Improving begins with those that were good.
    beginnings_.insert(pass.failed ? beginnings_.end() : beginnings_.begin() + good++, ordering);
  }
  for (const double weight : {1.0, 2.0, 4.0}) {
    for (const bool is_backwards : {false, true}) {
      if (is_over()) return;
      offer(fit_beside_alike(work_, is_backwards, weight), "best fit beside what ends alike");
    }
  }
  if (is_over()) return;
  offer(split_and_fuse(work_), "split and fuse");
  for (const Criterion criterion :
       {Criterion::kLifetimeClassBirth, Criterion::kLifetimeClassDeath, Criterion::kBirth}) {
    for (const double usage : {0.7, 0.9}) {
      if (is_over()) return;
      offer(fit_groups(work_, {criterion, 1}, usage), "first fit by group");
    }
  }
  if (!is_over()) pack_repeats();
}

/// One layer of all that are alike, and the rest around it.
void ComponentPacker::pack_repeats() {
  std::optional<Folded> folded = fold_repeats(buffers_);
  if (!folded) return;
  PackOptions options{.time_limit_seconds = part_seconds_, .seed = seed_, .is_stopping = is_stopping_};
  const PackResult part = pack(folded->part, options);
  folded->set_height(part.height);
  options.capacity = std::max(goal_, lower_bound_);
  offer(folded->offsets(part.offsets, pack(folded->rest, options).offsets), "one layer for all that are alike");
}

bool ComponentPacker::can_be_exact() const {
  return buffers_.size() <= kMostExactBuffers && !work_.timeline.has_gaps();
}

void ComponentPacker::search() {
  if (can_be_exact()) search_exactly();
  if (is_over() || (can_be_exact() && nodes_ <= kNodesOfFirstPreorders)) return;
  if (!can_be_exact() && rounds_ == 0) pack_fullest_window();
  improve(std::size_t{16} << std::min<std::size_t>(rounds_, 4));
  ++rounds_;
}

/// Whether it fits, by all orders in turn.
SearchEnd ComponentPacker::fits_under(std::uint64_t capacity) {
  if (!exact_) {
    exact_ = std::make_unique<ExactSearch>(buffers_, work_.timeline);
    exact_->is_stopping = is_stopping_;
  }
  const std::span<const Preorder> all(kPreorders);
  for (const Preorder preorder : nodes_ > kNodesOfFirstPreorders ? all : all.first(kFirstPreorders)) {
    const SearchEnd end = exact_->run(capacity, preorder, nodes_);
    if (end == SearchEnd::kFound) offer(exact_->offsets(), "branch and bound");
    if (end == SearchEnd::kInfeasible) lower_bound_ = std::max(lower_bound_, capacity / unit_ * unit_ + unit_);
    if (end != SearchEnd::kStopped || is_stopping_()) return end;
  }
  return SearchEnd::kStopped;
}

/// First whether the bound (or the goal) itself can be reached; once that is known to be hard, between it and the best
/// packing.
void ComponentPacker::search_exactly() {
  std::uint64_t low = std::max(lower_bound_, goal_);
  bool is_first = true;
  while (!is_over() && low < height_) {
    const std::uint64_t target = is_first ? low : low + (height_ - unit_ - low) / 2 / unit_ * unit_;
    is_first = false;
    const SearchEnd end = fits_under(target);
    if (end == SearchEnd::kStopped && nodes_ <= kNodesOfFirstPreorders) break;
    if (end != SearchEnd::kFound) low = target / unit_ * unit_ + unit_;
  }
  nodes_ *= 2;
}

/// From each order in turn, then from the best packing's, a little changed.
void ComponentPacker::begin_anew() {
  fruitless_ = 0;
  if (begun_ < beginnings_.size()) {
    order_ = order_by(work_, beginnings_[begun_++]);
    return;
  }
  begun_ = 0;
  patience_ *= 2;
  order_ = order_of(offsets_);
  std::uniform_int_distribution<std::size_t> any(0, order_.size() - 1);
  for (int i = 0; i < 3; ++i) std::swap(order_[any(random_)], order_[any(random_)]);
}

/// Squeaky wheel: who did not fit under a lower limit goes earlier in the order.
void ComponentPacker::improve(std::size_t passes) {
  if (order_.empty() || fruitless_ >= patience_) begin_anew();
  Offsets offsets;
  for (std::size_t pass = 0; pass < passes && !is_over(); ++pass) {
    const std::uint64_t low = std::max(goal_, lower_bound_);
    const std::uint64_t limit = height_ - std::max<std::uint64_t>(1, (height_ - low) / part_);
    const FirstFit result = first_fit(work_, order_, limit, offsets);
    if (!result.failed) {
      offer(offsets, "improved first fit");
      fruitless_ = 0;
      part_ = std::max(part_ / 2, kLargestPart);
      continue;
    }
    if (++fruitless_ % kPassesOfAPart == 0) part_ = std::min(2 * part_, kSmallestPart);
    const std::size_t from = *result.failed;
    const std::size_t to = std::uniform_int_distribution<std::size_t>(0, from)(random_) *
                           std::uniform_int_distribution<std::size_t>(1, 8)(random_) / 8;
    std::rotate(order_.begin() + static_cast<std::ptrdiff_t>(to), order_.begin() + static_cast<std::ptrdiff_t>(from),
                order_.begin() + static_cast<std::ptrdiff_t>(from) + 1);
  }
}

/// The buffers around the fullest moment under the bound, if that can be; then all others around them.
void ComponentPacker::pack_fullest_window() {
  if (work_.timeline.has_gaps()) return;
  const std::vector<std::uint64_t>& load = work_.timeline.load();
  const auto fullest = static_cast<std::uint32_t>(std::ranges::max_element(load) - load.begin());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_distance;  // from the fullest section, buffer
  for (std::uint32_t i = 0; i < buffers_.size(); ++i) {
    const Piece& piece = work_.timeline.pieces(i).front();
    const std::uint32_t distance = piece.begin > fullest  ? piece.begin - fullest
                                   : piece.end <= fullest ? fullest + 1 - piece.end
                                                          : 0;
    by_distance.emplace_back(distance, i);
  }
  std::ranges::sort(by_distance);
  if (by_distance.size() > kWindowBuffers && by_distance[kWindowBuffers].first == 0) return;
  while (by_distance.size() > kWindowBuffers) by_distance.pop_back();
  std::vector<Buffer> window;
  for (const auto& [distance, i] : by_distance) window.push_back(buffers_[i]);
  const Timeline timeline(window);
  ExactSearch search(window, timeline);
  search.is_stopping = is_stopping_;
  for (const Preorder preorder : kPreorders) {
    if (is_over()) return;
    if (search.run(std::max(lower_bound_, goal_), preorder, 1U << 18) != SearchEnd::kFound) continue;
    Offsets offsets(buffers_.size());
    work_.occupancy.clear();
    std::vector<bool> is_placed(buffers_.size());
    const auto place = [&](std::uint32_t i, std::uint64_t offset) {
      offsets[i] = offset;
      is_placed[i] = true;
      work_.occupancy.add(work_.timeline.pieces(i), offset);
    };
    for (std::size_t w = 0; w < window.size(); ++w) place(by_distance[w].second, search.offsets()[w]);
    bool fits = true;
    for (const std::uint32_t i : order_by(work_, {Criterion::kSize})) {
      if (is_placed[i] || !fits) continue;
      const Buffer& buffer = buffers_[i];
      const std::uint64_t offset =
          buffer.offset ? work_.occupancy.lowest(work_.timeline.pieces(i), 1, *buffer.offset, *buffer.offset)
                        : work_.occupancy.lowest(work_.timeline.pieces(i), buffer.alignment, 0, height_ - buffer.size);
      fits = offset != Occupancy::kNone;
      if (fits) place(i, offset);
    }
    if (fits) return offer(offsets, "branch and bound around the fullest moment");
  }
}

}  // namespace tenon::packing
