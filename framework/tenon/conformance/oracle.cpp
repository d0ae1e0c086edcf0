// Live intervals, by address and by physical memory; freed ones until every stream that used them has got there.
#include <tenon/conformance/oracle.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::conformance {

namespace {

bool share_a_byte(const std::vector<PhysicalExtent>& some, const std::vector<PhysicalExtent>& others) {
  return std::ranges::any_of(some, [&](const PhysicalExtent& one) {
    return std::ranges::any_of(
        others, [&](const PhysicalExtent& other) { return one.begin < other.end && other.begin < one.end; });
  });
}

}  // namespace

bool Oracle::Pending::shares_a_byte(std::uintptr_t begin, std::uintptr_t end,
                                    const std::vector<PhysicalExtent>& of_block) const {
  return (address < end && begin < address + bytes) || share_a_byte(behind, of_block);
}

void Oracle::forget_reached() {
  std::erase_if(pending_, [&](Pending& pending) {
    std::erase_if(pending.users, [&](const auto& user) { return device_.reached(user.second); });
    return pending.users.empty();
  });
}

Finding Oracle::hand_out(const Block& block, StreamRef stream, std::vector<PhysicalExtent> behind) {
  const auto address = reinterpret_cast<std::uintptr_t>(block.data);
  const std::uintptr_t end = address + block.bytes;
  if (const auto [range, is_free] = live_.add(address, end); !is_free) {
    return {cause::kOverlap, fmt::format("the block [{:#x}, {:#x}) overlaps the live block [{:#x}, {:#x})", address,
                                         end, range->first, range->second.end)};
  }

  forget_reached();
  for (const Pending& pending : pending_) {
    if (!pending.shares_a_byte(address, end, behind)) continue;
    for (const auto& [user, ticket] : pending.users) {
      if (user == stream) continue;  // in order behind it
      return {cause::kStreams,
              fmt::format("the block [{:#x}, {:#x}) for stream {} was freed while stream {} still used it, and that "
                          "stream has not got there yet",
                          address, end, stream.id, user.id)};
    }
  }
  return hand_out_physical({address, end}, std::move(behind));
}

Finding Oracle::hand_out_physical(const Addresses& block, std::vector<PhysicalExtent> behind) {
  std::vector<PhysicalExtent>& added = physical_of_[block.begin];
  for (const PhysicalExtent& extent : behind) {
    const auto [range, is_free] = physical_.add(extent.begin, extent.end, block);
    if (!is_free) {
      const Addresses& other = range->second.value;
      return {cause::kOverlap,
              fmt::format("the block [{:#x}, {:#x}) shares physical memory with the live block [{:#x}, "
                          "{:#x}): a page is mapped at two addresses and handed out at both",
                          block.begin, block.end, other.begin, other.end)};
    }
    added.push_back(extent);
  }
  return {};
}

std::string Oracle::still_used(std::uintptr_t address, std::size_t bytes) {
  forget_reached();
  for (const Pending& pending : pending_) {
    if (pending.address >= address + bytes || pending.address + pending.bytes <= address) continue;
    return fmt::format("[{:#x}, {:#x}) went back to the device while stream {} still used it", address, address + bytes,
                       pending.users.front().first.id);
  }
  return {};
}

void Oracle::take_back(const Block& block, const std::vector<StreamRef>& users) {
  const auto address = reinterpret_cast<std::uintptr_t>(block.data);
  live_.remove(address);
  Pending pending{address, block.bytes, {}, {}};
  if (auto physical = physical_of_.extract(address)) {
    for (const PhysicalExtent& extent : physical.mapped()) physical_.remove(extent.begin);
    pending.behind = std::move(physical.mapped());
  }
  for (const StreamRef user : users) pending.users.emplace_back(user, device_.mark(user));
  pending_.push_back(std::move(pending));
  if (pending_.size() > 256) forget_reached();
}

}  // namespace tenon::conformance
