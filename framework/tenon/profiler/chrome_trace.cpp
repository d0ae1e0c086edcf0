// A Chrome trace: threads of the host with their events, devices with their streams, memory as counters and as the
// instants of torch.profiler, arrows from the operator that made a node of autograd to the node's run. Declared in
// exports.h.
#include <tenon/profiler/exports.h>

#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/io/utf8.h>
#include <tenon/replay/formats/pytorch/chrome_writer.h>

#include <fmt/format.h>

#include <unistd.h>

#include <cmath>
#include <map>
#include <set>

namespace tenon::profiler {
namespace {

using replay::quoted_json;

/// Devices are processes of their own behind the program's.
constexpr int kFirstDevicePid = 1'000'000;

const char* category_of(EventKind kind) {
  switch (kind) {
    case EventKind::kLabel:
    case EventKind::kPhase:
      return "user_annotation";
    case EventKind::kModule:
      return "module";
    case EventKind::kCopy:
      return "gpu_memcpy";
    default:
      return "cpu_op";
  }
}

/// c10's number of a kind of device.
int device_type_of(const Device& device) {
  if (device.is_cpu()) return 0;
  return device.is_cuda() ? 1 : 20;  // PrivateUse1: a kind that PyTorch does not know
}

std::int64_t whole_ns(double us) { return std::llround(us * 1000); }

double us(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

class Writer {
 public:
  Writer(const Recording& recording, const std::string& path) : recording_(recording), out_(path), pid_(::getpid()) {}

  void write() {
    out_.write(
        fmt::format("{{\"schemaVersion\":1,\"deviceProperties\":[],\"record_shapes\":{:d},\"profile_memory\":{:d},"
                    "\"with_stack\":{:d},\"with_flops\":{:d},\"baseTimeNanoseconds\":{},\"traceEvents\":[\n",
                    recording_.has_shapes, recording_.has_memory, recording_.has_stacks, recording_.has_flops,
                    recording_.start_unix_ns));
    names();
    for (std::size_t i = 0; i < recording_.events.size(); ++i) event(i);
    for (std::size_t i = 0; i < recording_.events.size(); ++i) arrow(i);
    for (const DeviceEvent& one : recording_.device_events) device_event(one);
    std::size_t number = recording_.events.size();
    for (const MemoryEvent& one : recording_.memory) memory(one, number++);
    for (const AllocatorCall& call : recording_.allocator_calls)
      add(fmt::format(R"({{"ph":"i","cat":"cpu_instant_event","s":"t","name":{},"pid":{},"tid":{},"ts":{:.3f},)"
                      R"("args":{{"device":{},"bytes":{}}}}})",
                      quoted_json("allocator: " + call.name), pid_, call.thread, us(call.time_ns),
                      quoted_json(call.device.str()), call.bytes));
    for (const Mark& mark : recording_.marks)
      add(replay::chrome_instant(mark.name, us(mark.time_ns), pid_, static_cast<int>(mark.thread)));
    out_.write("\n],\"displayTimeUnit\":\"ms\"}\n");
    out_.close();
  }

 private:
  void add(const std::string& event) {
    out_.write(separator_);
    out_.write(event);
    separator_ = ",\n";
  }

  void name(const char* what, int pid, std::int64_t tid, const std::string& text) {
    add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"ts":0,"args":{{"name":{}}}}})", what, pid, tid,
                    quoted_json(text)));
  }

  void names() {
    name("process_name", pid_, 0, "tenon");
    std::set<std::uint32_t> threads;
    for (const Event& one : recording_.events) threads.insert(one.thread);
    for (const std::uint32_t thread : threads) name("thread_name", pid_, thread, fmt::format("thread {}", thread));
    std::set<std::pair<std::string, std::uint64_t>> streams;
    for (const DeviceEvent& one : recording_.device_events) streams.insert({one.device.str(), one.stream});
    for (const auto& [device, stream] : streams) {
      const int pid = pid_of(device);
      name("process_name", pid, 0, device);
      name("thread_name", pid, stream_number(stream), fmt::format("stream {}", stream));
    }
  }

  int pid_of(const std::string& device) {
    return device_pids_.try_emplace(device, kFirstDevicePid + static_cast<int>(device_pids_.size())).first->second;
  }
  static std::int64_t stream_number(std::uint64_t stream) { return static_cast<std::int64_t>(stream & 0x7fffffff); }

  void event(std::size_t i) {
    const Event& one = recording_.events[i];
    std::string args = fmt::format("\"External id\":{},\"Ev Idx\":{}", i + 1, i);
    if (one.node != nullptr) args += fmt::format(",\"Sequence number\":{}", one.sequence);
    if (one.forward != kNone)
      args += fmt::format(",\"Fwd thread id\":{}", recording_.events[static_cast<std::size_t>(one.forward)].thread);
    if (!one.shapes.empty()) args += ",\"Input Dims\":" + one.shapes;
    if (one.flops > 0) args += fmt::format(",\"flops\":{:.0f}", one.flops);
    if (recording_.has_memory && is_visible(one.kind))
      args += fmt::format(",\"CPU Mem\":{},\"Self CPU Mem\":{}", one.cpu_bytes, one.self_cpu_bytes);
    if (const std::string module = scopes::module_path(one.context); !module.empty())
      args += ",\"Module Hierarchy\":" + quoted_json(module);
    if (!one.stack.empty()) {
      std::string lines;
      for (const std::string& frame : one.stack) lines += frame + ";\n";
      args += ",\"Call stack\":" + quoted_json(lines);
    }
    add(fmt::format(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                    category_of(one.kind), quoted_json(one.name), pid_, one.thread, us(one.start_ns),
                    us(one.end_ns - one.start_ns), args));
  }

  void arrow(std::size_t i) {
    const Event& to = recording_.events[i];
    // The engine's part of a node and the node itself have one number: the arrow leads to the outer one.
    if (to.forward == kNone) return;
    if (to.visible_parent != kNone) {
      const Event& outer = recording_.events[static_cast<std::size_t>(to.visible_parent)];
      if (outer.forward == to.forward && outer.node == to.node) return;
    }
    const Event& from = recording_.events[static_cast<std::size_t>(to.forward)];
    const std::size_t id = ++arrows_;
    add(fmt::format(R"({{"ph":"s","id":{},"cat":"fwdbwd","name":"fwdbwd","pid":{},"tid":{},"ts":{:.3f}}})", id, pid_,
                    from.thread, us(from.start_ns)));
    add(fmt::format(R"({{"ph":"f","bp":"e","id":{},"cat":"fwdbwd","name":"fwdbwd","pid":{},"tid":{},"ts":{:.3f}}})", id,
                    pid_, to.thread, us(to.start_ns)));
  }

  /// Both ends are rounded, not the length: a kernel would overlap with the next one of its stream otherwise.
  void device_event(const DeviceEvent& one) {
    const std::int64_t start = whole_ns(one.start_us), end = whole_ns(one.start_us + one.duration_us);
    add(fmt::format(R"({{"ph":"X","cat":"kernel","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
                    R"("args":{{"device":{},"stream":{},"virtual time":{},"External id":{}}}}})",
                    quoted_json(one.name), pid_of(one.device.str()), stream_number(one.stream), us(start),
                    us(end - start), quoted_json(one.device.str()), one.stream, one.is_virtual, one.event + 1));
  }

  /// Who reads "[memory]" adds up what there is of one device.
  void memory(const MemoryEvent& one, std::size_t number) {
    add(fmt::format(R"({{"ph":"i","cat":"cpu_instant_event","s":"t","name":"{}","pid":{},"tid":{},"ts":{:.3f},)"
                    R"("args":{{"Ev Idx":{},"Addr":{},"Bytes":{},"Device Type":{},"Device Id":{},)"
                    R"("Total Allocated":{},"Total Reserved":{}}}}})",
                    is_page_locked(one) ? "[page-locked memory]" : "[memory]", pid_, one.thread, us(one.time_ns),
                    number, one.address, one.bytes, device_type_of(one.device),
                    one.device.is_cpu() ? -1 : static_cast<int>(one.device.index()), one.allocated_bytes,
                    one.reserved_bytes));
    add(replay::chrome_counter(
        is_page_locked(one) ? "page-locked memory" : "memory of " + one.device.str(), us(one.time_ns), pid_,
        {{"live bytes", static_cast<std::uint64_t>(std::max<std::int64_t>(one.allocated_bytes, 0))},
         {"reserved bytes", static_cast<std::uint64_t>(one.reserved_bytes)}}));
  }

  const Recording& recording_;
  replay::OutputFile out_;
  const int pid_;
  const char* separator_ = "";
  std::size_t arrows_ = 0;
  std::map<std::string, int> device_pids_;
};

}  // namespace

void write_chrome_trace(const Recording& recording, const std::string& path) { Writer(recording, path).write(); }

}  // namespace tenon::profiler
