// Interning frames and stacks, within a bound on their texts.
#include <tenon/replay/formats/pytorch/snapshot_stacks.h>

#include <algorithm>

namespace tenon::replay {

namespace {

// Every frame gets texts of its own; a file states each text once. Real ones have a few dozen frames a source file.
constexpr std::uint64_t kMaxFrameExpansion = 64;
constexpr std::uint64_t kFrameBytesFree = 16 << 20;

}  // namespace

std::uint32_t SnapshotStacks::frame(PickleValue value) {
  const Pickle& pickle = fields_.pickle;
  bool ok = false;
  const std::uint64_t line = pickle.unsigned_int(pickle.get(value, "line"), ok);
  StackFrame made{std::string(pickle.text(pickle.get(value, "name"))),
                  std::string(pickle.text(pickle.get(value, "filename"))),
                  ok ? static_cast<std::uint32_t>(std::min<std::uint64_t>(line, 0xffffffff)) : 0};
  const std::size_t known = stacks_.frames.size();
  const std::uint64_t bytes = made.name.size() + made.file.size();
  const std::uint32_t number = frames_.number_of(std::move(made));
  if (stacks_.frames.size() != known) {
    frame_bytes_ += bytes;
    if (frame_bytes_ > kFrameBytesFree + kMaxFrameExpansion * pickle.text_bytes())
      fields_.fail("", "its stack frames name the same long texts over and over: refused");
  }
  return number;
}

StackId SnapshotStacks::stack(PickleValue frames) {
  const Pickle& pickle = fields_.pickle;
  if (!with_stacks_ || !Pickle::is_sequence(frames) || pickle.size(frames) == 0) return 0;
  const auto [known, is_new] = stack_of_list_.try_emplace(frames.payload(), 0);
  if (!is_new) return known->second;
  fields_.spend(pickle.size(frames));
  std::vector<std::uint32_t> ids;
  pickle.for_each(frames, [&](std::uint64_t, PickleValue value) {
    if (fields_.is_small_dict(value)) ids.push_back(frame(value));
  });
  const auto [entry, added] = stack_ids_.try_emplace(ids, static_cast<StackId>(stacks_.stacks.size()));
  if (added) stacks_.stacks.push_back(std::move(ids));
  return known->second = entry->second;
}

}  // namespace tenon::replay
