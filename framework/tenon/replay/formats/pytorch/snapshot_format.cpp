// PyTorch memory snapshots: torch.cuda.memory._dump_snapshot, a pickle.
#include <tenon/replay/formats/pytorch/snapshot_reader.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>

#include <tenon/core/text/counted.h>

#include <algorithm>

namespace tenon::replay {

namespace {

constexpr char kProtocol = '\x80';  // the operator PROTO, with which a pickle begins since protocol 2

std::vector<std::string> left_out(const Trace& trace) {
  const auto uses = std::ranges::count(trace.events, EventKind::kUse, &TraceEvent::kind);
  if (uses == 0) return {};
  return {counted(uses, "use") + " on other streams (the frees of these blocks wait there, until the next allocation)"};
}

}  // namespace

const Format& snapshot_format() {
  static const Format format{
      .name = "snapshot",
      .files = "PyTorch snapshots (pickle protocol 2 to 5)",
      .endings = {".pickle", ".pkl"},
      .written_as = "PyTorch snapshot",
      .likeness =
          [](std::string_view head) { return head.starts_with(kProtocol) ? Likeness::kCertain : Likeness::kNone; },
      .read = read_snapshot,
      .write = [](const Trace& trace, const std::string& path,
                  const WriteOptions& options) { write_snapshot(options.place(trace), path); },
      .shows_segments = true,
      .left_out = left_out,
      .write_image = write_snapshot};
  return format;
}

}  // namespace tenon::replay
