// The image of an allocator that runs: its history, its segments as they are now, its settings in PyTorch's words.
#include <tenon/device/snapshot.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/replay/formats/image/snapshot_image.h>
#include <tenon/runtime/conf_policy.h>

namespace tenon::replay {

void describe_settings(const StackConfig& policy, SnapshotImage& image) {
  image.pytorch_conf = conf_of_policy(policy);
  image.allocator = policy.policy.name;
  image.allocator_options = policy.options.spec();
  image.is_pytorchs = policy.policy.traits.pytorch_conf.has_value();
  if (!image.is_pytorchs) return;
  for (const OptionSpec& option : policy.options.schema()) {
    if (option.name == "max_split_size") image.max_split_bytes = policy.options.size(option.name);
    if (option.name == "garbage_collection_threshold")
      image.garbage_collection_threshold = policy.options.real(option.name);
    if (option.name == "roundup_power2_divisions")
      image.roundup_divisions = parse_roundup_divisions(policy.options.text(option.name));
  }
}

SnapshotImage image_of_stack(const AllocatorStack& stack, const History& history) {
  SnapshotImage image;
  describe_settings(stack.config(), image);
  static_cast<Snapshot&>(image) = take_snapshot({}, stack, &history);
  if (image.segments.empty()) image.unlisted_bytes = static_cast<std::uint64_t>(stack.stats().reserved_bytes.current);
  return image;
}

}  // namespace tenon::replay
