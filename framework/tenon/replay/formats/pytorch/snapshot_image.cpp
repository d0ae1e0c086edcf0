// The image of an allocator that runs: its history, its segments as they are now, its settings in PyTorch's words.
#include <tenon/memory/pytorch_conf.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/formats/pytorch/snapshot_image.h>

#include <algorithm>
#include <unordered_map>

namespace tenon::replay {

namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void describe_settings(const StackConfig& policy, SnapshotImage& image) {
  image.pytorch_conf = conf_of_policy(policy);
  image.allocator = policy.policy.name;
  image.allocator_options = policy.options.spec();
  if (policy.policy.name != "caching" && policy.policy.name != "expandable") return;
  for (const OptionSpec& option : policy.options.schema()) {
    if (option.name == "max_split_size") image.max_split_bytes = policy.options.size(option.name);
    if (option.name == "garbage_collection_threshold")
      image.garbage_collection_threshold = policy.options.real(option.name);
    if (option.name == "roundup_power2_divisions")
      image.roundup_divisions = parse_roundup_divisions(policy.options.text(option.name));
  }
}

void ImageVisitor::segment(const SegmentInfo& info) {
  current_ = info;
  has_open_ = false;
}

void ImageVisitor::block(const BlockInfo& info) {
  if (info.state == BlockState::kUnmapped) {
    has_open_ = false;
    return;
  }
  if (!has_open_) {
    segments_.push_back({.address = number(info.address),
                         .stream = current_.stream.id,
                         .is_large = current_.is_large,
                         .is_expandable = current_.is_expandable});
    has_open_ = true;
  }
  ImageSegment& segment = segments_.back();
  segment.bytes += info.bytes;
  segment.blocks.push_back({number(info.address), info.bytes, info.requested_bytes, info.state, 0});
}

SnapshotImage image_of_stack(const AllocatorStack& stack, const History& history) {
  SnapshotImage image;
  describe_settings(stack.config(), image);
  std::unordered_map<StackId, std::uint32_t> known{{0, 0}};
  const auto stack_id = [&](StackId id) {
    const auto [entry, is_new] = known.try_emplace(id, static_cast<std::uint32_t>(image.stacks.size()));
    if (is_new) {
      image.stacks.emplace_back();
      for (const StackFrame& frame : history.frames(id)) {
        image.stacks.back().push_back({frame.name, frame.file, static_cast<std::uint32_t>(std::max(0, frame.line))});
      }
    }
    return entry->second;
  };
  for (const HistoryEvent& event : history.events()) {
    image.entries.push_back(
        {event.action, event.address, event.bytes, event.stream.id, event.time_us, stack_id(event.stack)});
  }
  ImageVisitor visitor(image.segments);
  stack.walk(visitor);
  for (ImageSegment& segment : image.segments) {
    for (ImageBlock& block : segment.blocks) {
      if (block.state != BlockState::kFree) block.stack = stack_id(history.live_stack(block.address));
    }
  }
  std::ranges::sort(image.segments, {}, &ImageSegment::address);
  return image;
}

}  // namespace tenon::replay
