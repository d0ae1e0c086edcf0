// A snapshot, key by key, as a pickle.
#include <tenon/replay/formats/pytorch/pickle/pickle_writer.h>
#include <tenon/replay/formats/pytorch/snapshot_fields.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/trace/long_work.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

namespace {

class SnapshotWriter {
 public:
  SnapshotWriter(const SnapshotImage& image, OutputFile& out)
      : image_(image), path_(out.path()), pickle_(out), stack_ids_(image.stacks.stacks.size(), kNone) {}

  void write() {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const Segment& segment : image_.segments) write(segment);
    pickle_.end_list();
    pickle_.text("device_traces");
    pickle_.begin_list();
    pickle_.begin_list();
    WorkMeter meter("writing " + path_, image_.events.size());
    for (const HistoryEvent& event : image_.events) {
      meter.step();
      write(event);
    }
    pickle_.end_list();
    pickle_.end_list();
    settings();
    tenon();
    pickle_.text("external_annotations");
    pickle_.begin_list();
    std::multiset<std::string_view> open;
    for (const auto& [time_us, mark] : image_.marks) {
      std::string_view name = mark;
      const auto started =
          name.starts_with(kEndOfAnnotation) ? open.find(name.substr(kEndOfAnnotation.size())) : open.end();
      const bool is_end = started != open.end();
      if (is_end) {
        name = *started;
        open.erase(started);
      } else {
        open.insert(name);
      }
      pickle_.begin_dict();
      item("name", name);
      item("stage", is_end ? "END" : "START");
      item("device", std::uint64_t{0});
      item("time_us", static_cast<std::uint64_t>(time_us));
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
    pickle_.stop();
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  void item(std::string_view key, std::uint64_t value) {
    pickle_.text(key);
    pickle_.address(value);
  }
  void item(std::string_view key, std::string_view value) {
    pickle_.text(key);
    pickle_.text(value);
  }
  void frames(std::uint32_t stack) {
    pickle_.text("frames");
    if (stack_ids_[stack] != kNone) return pickle_.recall(stack_ids_[stack]);
    pickle_.begin_list();
    for (const std::uint32_t number : image_.stacks.stacks[stack]) {
      const StackFrame& frame = image_.stacks.frames[number];
      pickle_.begin_dict();
      item("name", frame.name);
      item("filename", frame.file);
      item("line", std::uint64_t{frame.line});
      pickle_.end_dict();
    }
    pickle_.end_list();
    stack_ids_[stack] = pickle_.remember();
  }

  void write(const Segment& segment) {
    pickle_.begin_dict();
    item("device", std::uint64_t{0});
    item("address", segment.address);
    item("total_size", segment.bytes);
    item("allocated_size", segment.allocated_bytes());
    item("active_size", segment.active_bytes());
    item("requested_size", segment.requested_bytes());
    item("stream", segment.stream.id);
    item("segment_type", segment.is_large ? "large" : "small");
    pickle_.text("segment_pool_id");
    pickle_.pair(0, 0);
    pickle_.text("is_expandable");
    pickle_.truth(segment.is_expandable);
    frames(0);
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const BlockInfo& block : segment.blocks) {
      pickle_.begin_dict();
      item("address", block.address);
      item("size", block.bytes);
      item("requested_size", block.requested_bytes);
      item("state", block.state == BlockState::kActive ? "active_allocated"
                    : block.state == BlockState::kFree ? "inactive"
                                                       : "active_pending_free");
      frames(block.stack);
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write(const HistoryEvent& event) {
    pickle_.begin_dict();
    item("action", name_of(event.action));
    item(event.action == HistoryAction::kOom ? "device_free" : "addr", event.address);
    item("size", event.bytes);
    item("stream", event.stream.id);
    item("time_us", static_cast<std::uint64_t>(event.time_us));
    item("compile_context", "N/A");
    item("user_metadata", "");
    frames(event.stack);
    pickle_.end_dict();
  }

  void settings() {
    pickle_.text("allocator_settings");
    pickle_.begin_dict();
    item("PYTORCH_CUDA_ALLOC_CONF", image_.pytorch_conf);
    pickle_.text("max_split_size");
    pickle_.number(image_.max_split_bytes == 0 ? -1 : static_cast<std::int64_t>(image_.max_split_bytes));
    pickle_.text("garbage_collection_threshold");
    pickle_.real(image_.garbage_collection_threshold);
    pickle_.text("expandable_segments");
    pickle_.truth(image_.pytorch_conf.find("expandable_segments:True") != std::string::npos);
    pickle_.text("pinned_num_register_threads");
    pickle_.number(1);
    pickle_.text("release_lock_on_cudamalloc");
    pickle_.truth(false);
    pickle_.text("pinned_use_cuda_host_register");
    pickle_.truth(false);
    pickle_.text("roundup_power2_divisions");
    pickle_.begin_dict();
    for (int power = 0; power < 16; ++power)
      item(std::to_string(1 << power), std::uint64_t{image_.roundup_divisions[static_cast<std::size_t>(power)]});
    pickle_.end_dict();
    pickle_.end_dict();
  }

  // Readers of snapshots skip keys that they do not know.
  void tenon() {
    if (image_.allocator.empty() && !image_.empty_caches) return;
    pickle_.text("tenon");
    pickle_.begin_dict();
    item("allocator", image_.allocator);
    item("allocator_options", image_.allocator_options);
    if (!image_.allocator_plugin.empty()) item("allocator_plugin", image_.allocator_plugin);
    pickle_.text("is_pytorch_allocator");
    pickle_.truth(image_.is_pytorchs);
    item("origin", image_.is_replay ? "replay" : "recording");
    if (image_.unlisted_bytes != 0) item("unlisted_bytes", image_.unlisted_bytes);
    if (image_.is_replay) {
      item("seeded_blocks", image_.seeded_blocks);
      pickle_.text("recording");
      pickle_.begin_list();
      for (const auto& [key, value] : image_.recording) item(key, value);
      pickle_.end_list();
      pickle_.text("failures");
      pickle_.begin_list();
      for (const auto& [reserved, left] : image_.failures) {
        pickle_.address(reserved);
        pickle_.address(left);
      }
      pickle_.end_list();
    }
    if (image_.empty_caches) {
      pickle_.text("empty_caches");
      pickle_.begin_list();
      for (const std::uint64_t entry : *image_.empty_caches) pickle_.address(entry);
      pickle_.end_list();
    }
    pickle_.end_dict();
  }

  const SnapshotImage& image_;
  const std::string path_;
  PickleWriter pickle_;
  std::vector<std::uint32_t> stack_ids_;
};

}  // namespace

void write_snapshot(const SnapshotImage& image, const std::string& path) {
  OutputFile out(path);
  SnapshotWriter(image, out).write();
  out.close();
}

}  // namespace tenon::replay
