// The cache of page-locked host memory against a plain model of PyTorch's rules: which block each request gets, when a
// block comes back, and what is owned.
#include <tenon/memory/pinned_cache.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <list>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tenon {
namespace {

struct Rules {
  bool is_1_13;
  std::size_t round_threshold, cached_limit;  ///< 0 = none
};

std::string name_of(const Rules& rules) {
  return std::string(rules.is_1_13 ? "As1_13" : "As2_x") + "RoundTo" + std::to_string(rules.round_threshold) +
         "CachedTo" + std::to_string(rules.cached_limit);
}
void PrintTo(const Rules& rules, std::ostream* out) { *out << name_of(rules); }

/// Blocks by address. What is queued waits in one line for all streams.
class Model {
 public:
  explicit Model(Rules rules) : rules_(rules) {}

  /// The address that a request gets, or null for a new block.
  void* serve(std::size_t bytes, int stream) {
    settle();
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {  // in the order in which they came back
      const Record& record = records_.at(*it);
      if (record.stream != stream || record.bytes < bytes) continue;
      if (!rules_.is_1_13 && std::bit_ceil(record.bytes) != std::bit_ceil(bytes)) continue;
      const auto size_of = [&](void* address) { return std::pair(records_.at(address).bytes, address); };
      if (best == free_.end() || !rules_.is_1_13 || size_of(*it) < size_of(*best)) best = it;
    }
    if (best == free_.end()) return nullptr;
    void* const address = *best;
    free_.erase(best);
    return address;
  }
  std::size_t bytes_of_new(std::size_t bytes) const {
    const bool is_exact = (rules_.round_threshold != 0 && bytes > rules_.round_threshold) ||
                          (rules_.cached_limit != 0 && bytes > rules_.cached_limit);
    return is_exact ? bytes : std::bit_ceil(bytes);
  }
  void add(void* address, std::size_t bytes, int stream) { records_[address] = {bytes, stream, {}, 0}; }
  std::size_t bytes(void* address) const { return records_.at(address).bytes; }

  void use(void* address, int stream) {
    if (stream != records_.at(address).stream) records_.at(address).uses.insert(stream);
  }
  void give_back(void* address, int last_use) {
    use(address, last_use);
    Record& record = records_.at(address);
    if (record.uses.empty()) return keep(address);
    for (const int stream : record.uses) queue_.push_back({stream, ++clock_, address});
    record.waits = static_cast<int>(record.uses.size());
    record.uses.clear();
  }
  void complete(int stream) { reached_[stream] = clock_; }
  void trim(std::size_t keep_bytes) {
    settle();
    if (cached() <= keep_bytes) return;
    for (const Queued& queued : queue_) reached_[queued.stream] = clock_;  // the device is waited for
    std::map<std::pair<int, int>, std::list<void*>> lines;                 // by stream and class, the oldest first
    for (void* address : free_) {
      const Record& record = records_.at(address);
      lines[{record.stream, rules_.is_1_13 ? 0 : std::bit_width(record.bytes - 1)}].push_back(address);
    }
    for (auto& [key, line] : lines)
      for (void* address : line) {
        if (cached() <= keep_bytes) return;
        free_.remove(address);
        records_.erase(address);
      }
  }

  /// As the source counts: in units of `granularity`.
  std::size_t owned(std::size_t granularity) const {
    std::size_t sum = 0;
    for (const auto& [address, record] : records_) sum += (record.bytes + granularity - 1) / granularity * granularity;
    return sum;
  }
  std::size_t cached() const {
    std::size_t sum = 0;
    for (void* address : free_) sum += records_.at(address).bytes;
    return sum;
  }
  std::size_t largest_cached() const {
    std::size_t most = 0;
    for (void* address : free_) most = std::max(most, records_.at(address).bytes);
    return most;
  }

 private:
  struct Record {
    std::size_t bytes = 0;
    int stream = 0;
    std::set<int> uses;
    int waits = 0;
  };
  struct Queued {
    int stream;
    std::uint64_t time;
    void* address;
  };

  void keep(void* address) {
    if (rules_.cached_limit != 0 && records_.at(address).bytes > rules_.cached_limit) {
      complete(records_.at(address).stream);  // it is waited for, and its memory given back
      records_.erase(address);
    } else {
      free_.push_back(address);
    }
  }
  void settle() {
    while (!queue_.empty() && queue_.front().time <= reached_[queue_.front().stream]) {
      void* const address = queue_.front().address;
      queue_.pop_front();
      if (--records_.at(address).waits == 0) keep(address);
    }
  }

  const Rules rules_;
  std::map<void*, Record> records_;
  std::list<void*> free_;
  std::list<Queued> queue_;
  std::map<int, std::uint64_t> reached_;
  std::uint64_t clock_ = 0;
};

class PinnedCacheModel : public ::testing::TestWithParam<Rules> {};

TEST_P(PinnedCacheModel, ServesAsTheRulesSay) {
  const Rules rules = GetParam();
  AddressOnlySource source({.manual_completion = true});
  StackConfig config{.policy = pinned_cache(), .options = Options(pinned_cache().options), .layers = {}};
  if (rules.is_1_13) config.options.set_text("compat", "1.13");
  config.options.set_text("max_round_threshold", std::to_string(rules.round_threshold));
  config.options.set_text("max_cached_size", std::to_string(rules.cached_limit));
  const auto cache = AllocatorStack::make(source, config);
  Model model(rules);
  std::vector<Block> live;
  std::mt19937 draw(97);
  for (int step = 0; step < 6000; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const unsigned what = draw() % 100;
    if (what < 40 || live.empty()) {
      const std::size_t scale = std::size_t{1} << draw() % 14;
      const std::size_t bytes = 1 + draw() % (draw() % 3 == 0 ? scale : 3000);
      const int stream = draw() % 4 == 0 ? 1 : 0;
      void* const expected = model.serve(bytes, stream);
      const Block block = cache->allocate({.bytes = bytes, .stream = {static_cast<std::uint64_t>(stream)}});
      if (expected == nullptr) {
        for (const Block& other : live) ASSERT_NE(other.data, block.data);
        model.add(block.data, model.bytes_of_new(bytes), stream);
      } else {
        ASSERT_EQ(block.data, expected);
      }
      ASSERT_EQ(block.bytes, model.bytes(block.data));
      live.push_back(block);
    } else if (what < 60) {
      const Block& block = live[draw() % live.size()];
      const int stream = static_cast<int>(draw() % 4);
      cache->record_use(block, {static_cast<std::uint64_t>(stream)});
      model.use(block.data, stream);
    } else if (what < 92) {
      std::swap(live[draw() % live.size()], live.back());
      const Block block = live.back();
      live.pop_back();
      const int last = draw() % 3 == 0 ? static_cast<int>(draw() % 4) : static_cast<int>(block.request.stream.id);
      cache->deallocate(block, {static_cast<std::uint64_t>(last)});
      model.give_back(block.data, last);
    } else if (what < 99) {
      const int stream = static_cast<int>(draw() % 4);
      source.complete(StreamRef{static_cast<std::uint64_t>(stream)});
      model.complete(stream);
    } else {
      const std::size_t keep = draw() % 20000, before = model.owned(1);
      const std::size_t given = cache->trim(keep);
      model.trim(keep);
      ASSERT_EQ(given, before - model.owned(1));
    }
    ASSERT_EQ(source.used_bytes(), model.owned(source.traits().acquire_granularity));
    const PolicyStats said = cache->stats().policy;
    ASSERT_EQ(said.cached_bytes, model.cached());
    ASSERT_EQ(said.largest_free_bytes, model.largest_cached());
  }
  cache->check_invariants();
  for (const Block& block : live) cache->deallocate(block);
}

INSTANTIATE_TEST_SUITE_P(Rules, PinnedCacheModel,
                         ::testing::Values(Rules{false, 0, 0}, Rules{true, 0, 0}, Rules{false, 1024, 0},
                                           Rules{false, 0, 2048}, Rules{false, 512, 4096}, Rules{true, 1024, 4096},
                                           Rules{false, 1500, 3000}, Rules{true, 3000, 0}),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tenon
