// What lives, and who made it: on request every live block and tensor is known with its call stack; marks say what
// lived at a moment, and two of them what has grown between.
//
//   tenon::memory::LiveRecording recording;              // from here on, for as long as it lives
//   const auto before = tenon::memory::mark();
//   ...
//   std::cout << tenon::memory::diff(before, tenon::memory::mark()).text();
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/dtype.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/memory/history/history_settings.h>
#include <tenon/memory/history/live_block.h>
#include <tenon/memory/purpose.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {
class ClosingHandle;
}

namespace tenon::memory {

/// While it lives, what is allocated on the device is known with its stack, on the host page-locked memory of whichever
/// device too, and so is every tensor, whether a history of the device (record_memory_history) is begun or ended
/// meanwhile or not; it leaves that as it is. Each allocation then walks its stack, which takes some microseconds the
/// first time and, on x86-64, a fraction of one from then on. After close_devices() it is of tensors alone:
/// what is opened again is another memory.
class TENON_EXPORT LiveRecording {
 public:
  /// Without tensors, `lists_tensors` = false, it is of blocks alone.
  TENON_API explicit LiveRecording(Device device = kCPU, bool lists_tensors = true);
  TENON_API ~LiveRecording();
  LiveRecording(const LiveRecording&) = delete;
  LiveRecording& operator=(const LiveRecording&) = delete;
  Device device() const { return device_; }

 private:
  void drop_blocks() noexcept;

  Device device_;
  bool lists_tensors_;
  bool keeps_blocks_ = true;
  Owned<ClosingHandle> closing_;
};

/// A tensor that lives.
struct LiveTensor {
  std::vector<std::int64_t> sizes;
  Dtype dtype = Dtype::kFloat32;
  Device device;
  std::size_t bytes = 0;          ///< of its elements
  std::size_t storage_bytes = 0;  ///< of the memory that it keeps, which others may share
  Purpose purpose = Purpose::kOther;
  std::string label;
  bool page_locked = false;  ///< memory of the host that pin_memory() and its like take
  bool requires_grad = false;
  std::string grad_fn;           ///< the name of the node that made it; empty where there is none
  std::uint32_t references = 0;  ///< autograd's included
  std::string made_at;           ///< its call site: "step (train.cpp:31) < main (train.cpp:80)"
};
/// Tensors that were made while a LiveRecording lived, those with the largest storage first. Other threads that
/// make or end a tensor meanwhile wait.
TENON_API std::vector<LiveTensor> live_tensors();
/// The same as a table, the first so many.
TENON_API std::string live_tensors_text(std::size_t most = 20);

/// What lived on a device at a moment, of what was allocated since the recording began.
struct Mark {
  std::string name;
  Device device;
  std::vector<LiveBlock> blocks;  ///< oldest first
};
/// Throws Error where no LiveRecording of that device lives.
TENON_API Mark mark(std::string name = {}, Device device = kCPU);

/// Blocks of one call site, purpose, label and size: how many more there are.
struct DiffRow {
  std::string site;
  Purpose purpose = Purpose::kOther;
  std::string label;
  bool page_locked = false;     ///< memory of the host that pin_memory() and its like take
  std::size_t block_bytes = 0;  ///< of each
  std::int64_t blocks = 0;      ///< more, or fewer where negative
  std::int64_t bytes = 0;
};
struct MarkDiff {
  std::string from, to;       ///< the names of the marks
  std::vector<DiffRow> rows;  ///< what grew most first; what did not change is left out
  std::int64_t bytes = 0;     ///< in all
  /// A table, the first so many.
  TENON_API std::string text(std::size_t most = 20) const;
};
/// What grew from one mark to a later one. The recording has to live still, else sites are "[no stack]". Throws Error
/// for marks of two devices.
TENON_API MarkDiff diff(const Mark& from, const Mark& to);

/// From now on everything is recorded as by a LiveRecording, and when the program ends what still lives is written to
/// standard error, by call site. Also: the environment variable TENON_LIVE_AT_EXIT=1.
TENON_API void report_live_at_exit(Device device = kCPU);
/// What that says.
TENON_API std::string live_blocks_text(Device device = kCPU, std::size_t most = 20);

}  // namespace tenon::memory
