// Writing Tenon's binary traces. Declared in binary_format.h.
#include <tenon/core/files/write_all.h>
#include <tenon/core/units.h>
#include <tenon/replay/formats/tenon/binary_format.h>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

namespace tenon::replay {

namespace {
constexpr std::size_t kFlushBytes = 4 * KiB;  // so much is lost at most when a file is cut

std::string file_head(bool has_columns) {
  std::string head(kBinaryMagic);
  head.push_back(static_cast<char>(has_columns ? kBinaryVersion : kBinaryVersionWithoutColumns));
  return head;
}
}  // namespace

BinaryTraceWriter::BinaryTraceWriter(std::string path, bool has_columns) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0666);
  if (descriptor_ < 0) throw Error("cannot write " + path_ + ": " + std::strerror(errno));
  append(file_head(has_columns));
}

BinaryTraceWriter::BinaryTraceWriter(OutputFile& out, bool has_columns) : path_(out.path()), out_(&out) {
  append(file_head(has_columns));
}

void BinaryTraceWriter::append(std::string_view bytes) {
  if (out_ != nullptr) return out_->write(bytes);
  if (!write_all(descriptor_, bytes)) throw Error("cannot write " + path_ + ": " + std::strerror(errno));
}

BinaryTraceWriter::~BinaryTraceWriter() {
  if (descriptor_ < 0) return;
  try {
    flush();
  } catch (const Error&) {  // nobody is left to be told
  }
  ::close(descriptor_);
}

void BinaryTraceWriter::varint(std::uint64_t value) {
  while (value >= 0x80) {
    chunk_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  chunk_.push_back(static_cast<char>(value));
}

void BinaryTraceWriter::tag(BinaryTag tag) { chunk_.push_back(static_cast<char>(tag)); }

void BinaryTraceWriter::text(std::string_view value) {
  const auto [entry, is_new] = texts_.try_emplace(std::string(value), texts_.size());
  varint(entry->second);
  if (!is_new) return;
  varint(value.size());
  chunk_.append(value);
}

void BinaryTraceWriter::stack(const std::vector<StackFrame>& frames) {
  const auto [entry, is_new] = stacks_.try_emplace(frames, stacks_.size());
  varint(entry->second);
  if (!is_new) return;
  varint(frames.size());
  for (const StackFrame& frame : frames) {
    text(frame.name);
    text(frame.file);
    varint(frame.line);
  }
}

void BinaryTraceWriter::end_record() {
  if (chunk_.size() >= kFlushBytes) flush();
}

void BinaryTraceWriter::header(std::string_view key, std::string_view value) {
  tag(BinaryTag::kHeader);
  text(key.substr(0, MiB));
  text(value.substr(0, MiB));
  end_record();
}

std::uint64_t BinaryTraceWriter::allocate(std::uint64_t bytes, std::uint64_t stream,
                                          const std::vector<StackFrame>& frames) {
  tag(frames.empty() ? BinaryTag::kAllocate : BinaryTag::kAllocateWithStack);
  const auto [size, is_new_size] = sizes_.try_emplace(bytes, sizes_.size());
  varint(size->second);
  if (is_new_size) varint(bytes);
  const auto [known, is_new_stream] = streams_.try_emplace(stream, streams_.size());
  varint(known->second);
  if (is_new_stream) varint(stream);
  if (!frames.empty()) stack(frames);
  end_record();
  return allocations_++;
}

void BinaryTraceWriter::next_fails(std::uint64_t reserved_bytes, std::uint64_t device_free_bytes) {
  tag(BinaryTag::kFails);
  varint(reserved_bytes);
  varint(device_free_bytes);
}

void BinaryTraceWriter::free(std::uint64_t allocation, bool deferred) {
  tag(deferred ? BinaryTag::kFreeDeferred : BinaryTag::kFree);
  varint(allocations_ - allocation);
  end_record();
}

void BinaryTraceWriter::free_completed(std::uint64_t allocation) {
  tag(BinaryTag::kFreeCompleted);
  varint(allocations_ - allocation);
  end_record();
}

void BinaryTraceWriter::use(std::uint64_t allocation, std::uint64_t stream) {
  tag(BinaryTag::kUse);
  varint(allocations_ - allocation);
  const auto [known, is_new] = streams_.try_emplace(stream, streams_.size());
  varint(known->second);
  if (is_new) varint(stream);
  end_record();
}

void BinaryTraceWriter::empty_cache() {
  tag(BinaryTag::kEmptyCache);
  end_record();
}

void BinaryTraceWriter::mark(std::string_view name) {
  tag(BinaryTag::kMark);
  text(name.substr(0, MiB));
  end_record();
}

void BinaryTraceWriter::recording_starts() {
  tag(BinaryTag::kStarts);
  end_record();
}

void BinaryTraceWriter::at(std::int64_t time_us) {
  const std::int64_t later = time_us - time_us_;
  if (later == 0 && has_time_) return;  // a first one of 0 is told: what comes before the first gets that one
  has_time_ = true;
  tag(BinaryTag::kTime);
  varint(later < 0 ? ~(static_cast<std::uint64_t>(later) << 1) : static_cast<std::uint64_t>(later) << 1);
  time_us_ = time_us;
}

void BinaryTraceWriter::meant_for(Purpose purpose) {
  if (purpose_ == purpose) return;
  tag(BinaryTag::kPurpose);
  varint(static_cast<std::uint64_t>(purpose));
  purpose_ = purpose;
}

void BinaryTraceWriter::start_of(const RecordedAllocator& recorded) {
  header(kDeviceCallCount, std::to_string(recorded.actions.size()));
  for (const SegmentInfo& segment : recorded.initial_segments) {
    tag(BinaryTag::kSegment);
    varint(segment.address);
    varint(segment.bytes);
    varint(segment.stream.id);
    varint((segment.is_large ? 1U : 0U) + (segment.is_expandable ? 2U : 0U));
    end_record();
  }
  std::uint64_t last = 0;
  for (const std::uint64_t address : recorded.seed_addresses) {
    tag(BinaryTag::kSeedAddress);
    varint(address - last);
    last = address;
    end_record();
  }
}

void BinaryTraceWriter::device_call(const DeviceCall& call, std::uint64_t events_since) {
  tag(BinaryTag::kDeviceCall);
  varint(binary_device_call(call.action));
  varint(call.bytes);
  varint(events_since);
  end_record();
}

void BinaryTraceWriter::flush() {
  if (chunk_.empty()) return;
  const auto bytes = static_cast<std::uint32_t>(chunk_.size());
  const auto sum = static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(chunk_.data()), bytes));
  std::string out(8, '\0');
  std::memcpy(out.data(), &bytes, 4);
  std::memcpy(out.data() + 4, &sum, 4);
  out += chunk_;
  append(out);
  chunk_.clear();
}

void BinaryTraceWriter::close() {
  flush();
  if (descriptor_ < 0) return;
  const int code = ::close(descriptor_);
  descriptor_ = -1;
  if (code != 0) throw Error("cannot write " + path_ + ": " + std::strerror(errno));
}

}  // namespace tenon::replay
