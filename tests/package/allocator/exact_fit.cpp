// The least allocator that caches: freed segments wait by size and stream, and serve only requests of exactly that
// size.
#include <tenon/plugin/plugin.h>

#include <map>
#include <set>
#include <utility>

namespace {

class ExactFit final : public tenon::Allocator {
 public:
  static tenon::OptionSchema options() {
    return {tenon::OptionSpec::size("granularity", 512, "sizes are rounded up to a multiple of this")};
  }

  explicit ExactFit(const tenon::AllocatorContext& context)
      : source_(context.source), granularity_(context.options.size("granularity")) {}

  ~ExactFit() override {
    trim(0);
    for (const auto& [address, bytes] : live_) source_.release(address, bytes);
  }

  tenon::Block allocate(const tenon::Request& request) override {
    const std::size_t bytes = tenon::align_up(request.bytes, granularity_);
    if (bytes < request.bytes) throw tenon::OutOfMemory({.requested_bytes = request.bytes});  // rounded past the end
    void* address = nullptr;
    if (auto found = cached_.find({request.stream, bytes}); found != cached_.end()) {
      address = found->second;
      cached_.erase(found);
    } else if (address = source_.acquire(bytes); address == nullptr) {
      if (trim(0) == 0 || (address = source_.acquire(bytes)) == nullptr) {
        throw tenon::OutOfMemory({.requested_bytes = request.bytes});
      }
    }
    live_.emplace(address, bytes);
    return {.data = address, .bytes = bytes, .request = request};
  }

  void deallocate(const tenon::Block& block, tenon::StreamRef last_use) noexcept override {
    // The simplest right answer for a block that other streams used: wait until the device is done.
    if (used_elsewhere_.erase(block.data) != 0 || last_use != block.request.stream) source_.synchronize();
    live_.erase(block.data);
    cached_.emplace(std::pair{block.request.stream, block.bytes}, block.data);
  }

  void record_use(const tenon::Block& block, tenon::StreamRef) override { used_elsewhere_.insert(block.data); }

  std::size_t trim(std::size_t keep_bytes) override {
    std::size_t cached = 0, given_back = 0;
    for (const auto& entry : cached_) cached += entry.first.second;
    if (cached > keep_bytes) source_.synchronize();
    while (cached > keep_bytes) {
      const auto last = std::prev(cached_.end());
      const std::size_t bytes = last->first.second;
      source_.release(last->second, bytes);
      cached_.erase(last);
      cached -= bytes;
      given_back += bytes;
    }
    return given_back;
  }

 private:
  tenon::MemorySource& source_;
  std::size_t granularity_;
  std::map<void*, std::size_t> live_;
  std::set<void*> used_elsewhere_;
  std::multimap<std::pair<tenon::StreamRef, std::size_t>, void*> cached_;
};

}  // namespace

TENON_ALLOCATOR(exact_fit, "1.0", ExactFit, "freed blocks serve requests of exactly their size")
