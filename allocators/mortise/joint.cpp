// The two ends first, then whole pages between them.
#include "joint.h"

#include "free_tiles.h"
#include "pages.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

namespace tenon::mortise {

namespace {

/// A free tile as a joint sees it: whole pages, the end of a page before them and the beginning of one behind.
struct Source {
  Tile* tile;
  std::uintptr_t pages_begin, pages_end;
  std::size_t run_bytes() const { return pages_end - pages_begin; }
  std::size_t head_bytes() const { return pages_begin - tile->address; }
  std::size_t tail_bytes() const { return tile->end() - pages_end; }
};

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// The ends of a block: how much of which source.
struct Ends {
  std::size_t head = kNone, tail = kNone;  ///< indices of sources
  std::size_t head_bytes = 0, tail_bytes = 0;
  std::size_t left_over = kNone;
  bool found() const { return left_over != kNone; }
};

/// Ends of one kind, each shorter than a page, by multiples of kCoarseGrain as blocks are. Of those of one size one is
/// known: it serves as well as the others.
class EndsBySize {
 public:
  explicit EndsBySize(std::size_t page_bytes)
      : source_of_(std::make_unique_for_overwrite<std::uint32_t[]>(page_bytes / kCoarseGrain)),
        words_(page_bytes / kCoarseGrain / 64 + 1) {}

  void add(std::size_t bytes, std::size_t source) {
    const std::size_t size = bytes / kCoarseGrain;
    source_of_[size] = static_cast<std::uint32_t>(source);
    words_[size / 64] |= std::uint64_t{1} << (size % 64);
  }
  /// The source of the shortest of at least so many bytes; kNone where there is none.
  std::size_t at_least(std::size_t bytes) const {
    const std::size_t size = align_up(bytes, kCoarseGrain) / kCoarseGrain;
    for (std::size_t word = size / 64; word < words_.size(); ++word) {
      const std::uint64_t bits = word == size / 64 ? words_[word] >> (size % 64) << (size % 64) : words_[word];
      if (bits != 0) return source_of_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
    }
    return kNone;
  }

 private:
  std::unique_ptr<std::uint32_t[]> source_of_;  ///< by size; of those that have a bit
  std::vector<std::uint64_t> words_;            ///< a bit for each size that there is
};

class Planner {
 public:
  Planner(const std::vector<Tile*>& free, std::size_t bytes, std::size_t page_bytes)
      : bytes_(bytes), page_bytes_(page_bytes), heads_of_size_(page_bytes), tails_of_size_(page_bytes) {
    sources_.reserve(free.size());
    const Pages pages(page_bytes);
    for (Tile* tile : free) {
      const std::uintptr_t begin = pages.ceil(tile->address), end = pages.floor(tile->end());
      if (begin <= end) sources_.push_back({tile, begin, end});
    }
    std::size_t page_bytes_free = 0;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i].head_bytes() != 0) heads_of_size_.add(sources_[i].head_bytes(), i);
      if (sources_[i].tail_bytes() != 0) tails_of_size_.add(sources_[i].tail_bytes(), i);
      page_bytes_free += sources_[i].run_bytes();
    }
    free_pages_ = page_bytes_free / page_bytes;
  }

  Joint plan(bool shares_ends) {
    const std::size_t rest = bytes_ % page_bytes_;
    Ends ends;
    // Two ends of together one page and the rest save a page; ends of just the rest come next.
    if (shares_ends && bytes_ >= rest + page_bytes_) ends = best_ends(rest + page_bytes_);
    if (shares_ends && !ends.found() && rest != 0) ends = best_ends(rest);
    const std::size_t of_ends = ends.found() ? ends.head_bytes + ends.tail_bytes : 0;
    const std::size_t between = bytes_ - of_ends;
    const std::size_t pages = align_up(between, page_bytes_) / page_bytes_;
    if (pages > free_pages_) return {.pieces = {}, .missing_pages = pages - free_pages_};
    return {.pieces = pieces(ends, between), .missing_pages = 0};
  }

 private:
  void consider(Ends& best, std::size_t head, std::size_t head_bytes, std::size_t tail, std::size_t tail_bytes) const {
    std::size_t left_over = 0;
    if (head != kNone) left_over += sources_[head].head_bytes() - head_bytes;
    if (tail != kNone) left_over += sources_[tail].tail_bytes() - tail_bytes;
    if (left_over < best.left_over) best = {head, tail, head_bytes, tail_bytes, left_over};
  }

  /// Ends of together `bytes`, each less than a page: one of them is used up, or one alone suffices.
  Ends best_ends(std::size_t bytes) const {
    Ends best;
    if (bytes < page_bytes_) {
      if (const std::size_t head = heads_of_size_.at_least(bytes); head != kNone) consider(best, head, bytes, kNone, 0);
      if (const std::size_t tail = tails_of_size_.at_least(bytes); tail != kNone) consider(best, kNone, 0, tail, bytes);
    }
    for (std::size_t i = 0; i < sources_.size() && best.left_over != 0; ++i) {
      if (const std::size_t head_bytes = sources_[i].head_bytes(); head_bytes != 0 && head_bytes < bytes)
        if (const std::size_t tail = tails_of_size_.at_least(bytes - head_bytes); tail != kNone)
          consider(best, i, head_bytes, tail, bytes - head_bytes);
      if (const std::size_t tail_bytes = sources_[i].tail_bytes(); tail_bytes != 0 && tail_bytes < bytes)
        if (const std::size_t head = heads_of_size_.at_least(bytes - tail_bytes); head != kNone)
          consider(best, head, bytes - tail_bytes, i, tail_bytes);
    }
    return best;
  }

  /// Whole pages: behind the head, before the tail, then the longest runs, of which the last is the shortest that
  /// suffices. `between` may end within a page where there is no tail.
  std::vector<Piece> pieces(const Ends& ends, std::size_t between) {
    std::vector<Piece> head, middle, tail;
    const auto take_front = [&](Source& source, std::size_t bytes) {
      const Piece piece{source.pages_begin, bytes};
      source.pages_begin += align_up(bytes, page_bytes_);
      between -= bytes;
      return piece;
    };
    if (ends.head != kNone) {
      Source& source = sources_[ends.head];
      const std::uintptr_t begin = source.pages_begin - ends.head_bytes;
      head.push_back({begin, ends.head_bytes});
      if (const std::size_t more = std::min(whole(between), source.run_bytes()); more != 0)
        head.back().bytes += take_front(source, more).bytes;
    }
    if (ends.tail != kNone) {
      Source& source = sources_[ends.tail];
      const std::size_t more = std::min(whole(between), source.run_bytes());
      tail.push_back({source.pages_end - more, more + ends.tail_bytes});
      source.pages_end -= more;
      between -= more;
    }
    std::erase_if(sources_, [](const Source& s) { return s.run_bytes() == 0; });
    std::ranges::sort(sources_, std::ranges::greater{}, &Source::run_bytes);
    for (std::size_t i = 0; between != 0; ++i) {
      std::size_t chosen = i;
      // Where one run suffices, the shortest that does.
      while (chosen + 1 < sources_.size() && sources_[chosen + 1].run_bytes() >= between) ++chosen;
      Source& source = sources_[chosen];
      middle.push_back(take_front(source, std::min(between, source.run_bytes())));
    }
    head.insert(head.end(), middle.begin(), middle.end());
    head.insert(head.end(), tail.begin(), tail.end());
    return head;
  }
  std::size_t whole(std::size_t bytes) const { return bytes / page_bytes_ * page_bytes_; }

  const std::size_t bytes_, page_bytes_;
  std::vector<Source> sources_;
  EndsBySize heads_of_size_, tails_of_size_;
  std::size_t free_pages_ = 0;
};

}  // namespace

Joint plan_joint(const std::vector<Tile*>& free, std::size_t bytes, std::size_t page_bytes, bool shares_ends) {
  return Planner(free, bytes, page_bytes).plan(shares_ends);
}

}  // namespace tenon::mortise
