// Which pieces of work come before which, and what they use.
#include "support/emulated_cuda/stream_order.h"

#include "support/emulated_cuda/misuse.h"

#include <algorithm>
#include <utility>

namespace tenon::emulated_cuda {

namespace {

constexpr std::size_t kMostUses = 20000;  // the oldest are forgotten

void join(std::map<std::uint32_t, std::uint64_t>& reached, const std::map<std::uint32_t, std::uint64_t>& other) {
  for (const auto& [line, number] : other) {
    std::uint64_t& own = reached[line];
    own = std::max(own, number);
  }
}

}  // namespace

MomentRef StreamOrder::next(int device, const std::vector<MomentRef>& after) {
  auto moment = std::make_shared<Moment>();
  moment->reached = waited_;
  moment->line = static_cast<std::uint32_t>(lines_.size());
  for (const MomentRef& one : after) {
    join(moment->reached, one->reached);
    const Line& line = lines_[one->line];
    if (line.last == one->number && line.device == device) moment->line = one->line;
  }
  if (moment->line == lines_.size()) lines_.push_back({device, 0});
  moment->number = ++lines_[moment->line].last;
  moment->reached[moment->line] = moment->number;
  return moment;
}

void StreamOrder::host_waited_for_device(int device) {
  for (std::uint32_t line = 0; line < lines_.size(); ++line) {
    if (lines_[line].device == device) waited_[line] = lines_[line].last;
  }
  has_waited_ = true;
}

void StreamOrder::host_waited_for(const MomentRef& moment) {
  join(waited_, moment->reached);
  has_waited_ = true;
}

void StreamOrder::use(const MomentRef& moment, const std::string& what, Address address, std::size_t bytes,
                      bool writes) {
  if (!is_looking() || bytes == 0) return;
  if (std::exchange(has_waited_, false)) {
    std::erase_if(uses_, [&](const Use& use) {
      const auto found = waited_.find(use.moment->line);
      return found != waited_.end() && found->second >= use.moment->number;
    });
  }
  std::erase_if(uses_, [&](const Use& use) {
    if (use.address >= address + bytes || address >= use.address + use.bytes) return false;
    const bool ordered = moment->is_after(*use.moment);
    if ((writes || use.writes) && !ordered && !use.moment->is_after(*moment)) {
      misuse(what + (writes ? " writes " : " reads ") + std::to_string(bytes) + " bytes at " + hexadecimal(address) +
             ", which " + use.what + " on another stream " + (use.writes ? "writes" : "reads") +
             ", and nothing orders the two");
    }
    // Whoever comes after the new piece comes after that one, too.
    return ordered && (writes || !use.writes) && address <= use.address && use.address + use.bytes <= address + bytes;
  });
  if (uses_.size() >= kMostUses) uses_.erase(uses_.begin(), uses_.begin() + kMostUses / 2);
  uses_.push_back({moment, what, address, bytes, writes});
}

void StreamOrder::forget(Address address, std::size_t bytes) {
  std::erase_if(uses_,
                [&](const Use& use) { return use.address < address + bytes && address < use.address + use.bytes; });
}

}  // namespace tenon::emulated_cuda
