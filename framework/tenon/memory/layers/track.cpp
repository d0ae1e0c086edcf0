// Layer `track`: knows every live block. Finds leaks, double and unknown frees, and frees whose block was changed.
#include <tenon/core/error.h>
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/memory/history/call_stack.h>
#include <tenon/memory/layers/fault_log.h>
#include <tenon/memory/layers/layer.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <unordered_map>

namespace tenon {

namespace {

constexpr std::size_t kLeaksShown = 10;

class Track final : public LayerAllocator {
 public:
  Track(std::unique_ptr<Allocator> inner, const Options& options)
      : LayerAllocator(std::move(inner)), faults_("track", options), stack_every_(options.integer("stack_every")) {}

  ~Track() override {
    if (live_.empty()) return;
    const auto leaks = leaks_by_age();
    std::fprintf(stderr, "tenon: track: %s never freed, %s in all\n",
                 counted(leaks.size(), "block was", "blocks were").c_str(), format_bytes(live_bytes_).c_str());
    for (std::size_t i = 0; i < std::min(leaks.size(), kLeaksShown); ++i) {
      std::fprintf(stderr, "tenon: track:   %s\n", describe(leaks[i].first, *leaks[i].second).c_str());
    }
  }

  Block allocate(const Request& request) override {
    faults_.throw_pending();
    const Block block = inner_->allocate(request);
    Live entry{.number = ++count_, .bytes = block.bytes, .cookie = block.cookie, .request = request};
    if (stack_every_ > 0 && count_ % static_cast<std::uint64_t>(stack_every_) == 0) entry.stack = capture_call_stack();
    live_[block.data] = std::move(entry);
    freed_.erase(block.data);
    live_bytes_ += block.bytes;
    return block;
  }

  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    const auto found = live_.find(block.data);
    if (found == live_.end()) return refuse(block);  // not passed on: a policy that trusts its caller would break
    Live entry = std::move(found->second);
    live_.erase(found);
    live_bytes_ -= entry.bytes;
    if (entry.bytes != block.bytes || entry.request.bytes != block.request.bytes || entry.cookie != block.cookie) {
      faults_.add(
          fmt::format("size mismatch: block {} was handed out with {} bytes ({} requested) and came back with {} ({} "
                      "requested); freed as it was handed out",
                      fmt::ptr(block.data), entry.bytes, entry.request.bytes, block.bytes, block.request.bytes));
    }
    const Block as_given{.data = block.data, .bytes = entry.bytes, .cookie = entry.cookie, .request = entry.request};
    freed_[block.data] = entry.number;
    inner_->deallocate(as_given, last_use);
  }

  void check_invariants() const override {
    faults_.throw_first();
    inner_->check_invariants();
  }

  std::vector<std::pair<std::string, std::string>> summary() const override {
    std::vector<std::pair<std::string, std::string>> entries{{"live_blocks", fmt::format("{}", live_.size())},
                                                             {"live_bytes", fmt::format("{}", live_bytes_)}};
    faults_.summarize(entries);
    const auto leaks = leaks_by_age();
    for (std::size_t i = 0; i < std::min(leaks.size(), kLeaksShown); ++i) {
      entries.emplace_back("live", describe(leaks[i].first, *leaks[i].second));
    }
    return entries;
  }

 private:
  struct Live {
    std::uint64_t number = 0;  ///< the how-manieth allocation it was
    std::size_t bytes = 0;
    void* cookie = nullptr;
    Request request;
    std::vector<void*> stack;
  };

  void refuse(const Block& block) noexcept {
    if (const auto before = freed_.find(block.data); before != freed_.end()) {
      faults_.add(
          fmt::format("double free: block {} of {} bytes, allocation number {}, was freed before; the second free is "
                      "ignored",
                      fmt::ptr(block.data), block.bytes, before->second));
    } else {
      faults_.add(
          fmt::format("unknown free: {} of {} bytes was never handed out by this allocator; the free is ignored",
                      fmt::ptr(block.data), block.bytes));
    }
  }

  std::vector<std::pair<const void*, const Live*>> leaks_by_age() const {
    std::vector<std::pair<const void*, const Live*>> leaks;
    for (const auto& [address, entry] : live_) leaks.emplace_back(address, &entry);
    std::sort(leaks.begin(), leaks.end(),
              [](const auto& a, const auto& b) { return a.second->number < b.second->number; });
    return leaks;
  }

  static std::string describe(const void* address, const Live& entry) {
    std::string text =
        fmt::format("{}: {} bytes, {}{}{}, stream {}, allocation number {}", fmt::ptr(address), entry.request.bytes,
                    name_of(entry.request.purpose), entry.request.label != 0 ? " of " : "",
                    label_name(entry.request.label), entry.request.stream.id, entry.number);
    for (const StackFrame& frame : symbolize(entry.stack)) {
      text += fmt::format("\n      {} ({}:{})", frame.name, frame.file, frame.line);
    }
    return text;
  }

  FaultLog faults_;
  const std::int64_t stack_every_;
  std::uint64_t count_ = 0;
  std::size_t live_bytes_ = 0;
  std::unordered_map<const void*, Live> live_;
  std::unordered_map<const void*, std::uint64_t> freed_;  ///< addresses that are free now, and the last number they had
};

}  // namespace

LayerInfo track_layer() {
  return {
      .name = "track",
      .summary = "finds leaks, double and unknown frees, and blocks that come back changed",
      .options = {FaultLog::option(),
                  OptionSpec::integer("stack_every", 0, "keep the call stack of every n-th allocation; 0 = none")
                      .range(std::int64_t{0}, std::int64_t{1} << 40)},
      .create = [](std::unique_ptr<Allocator> inner, const LayerContext& context) -> std::unique_ptr<LayerAllocator> {
        return std::make_unique<Track>(std::move(inner), context.options);
      }};
}

}  // namespace tenon
