// The backend "cpu": options, properties, copies.
#include "backend.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <cblas.h>
#include <dnnl.h>

#include <cstring>
#include <fstream>

#include "kernels/linalg/bfloat16.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "x86-64 processor";
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

}  // namespace

DeviceProperties CpuDriver::properties() const {
  static const std::string name = processor_name();  // the kernel takes its time to write that file
  const std::size_t capacity = memory_.traits().capacity_bytes;
  return {.name = name,
          .capacity_bytes = capacity,
          .compute_units = available_cores(),
          .host_accessible = true,
          .asynchronous = false,
          .computes = true,
          .details = {{"isa", std::string(name_of(isa_))},
                      {"threads", std::to_string(thread_count())},
                      {"page", format_size_exact(memory_.traits().page_bytes)},
                      {"blas", std::string("OpenBLAS (") + openblas_get_corename() + ")"},
                      {"onednn", onednn_version()}}};
}

void CpuDriver::copy(void* destination, const void* source, std::size_t bytes, CopyKind, StreamRef) {
  if (bytes > 0 && destination != source) std::memmove(destination, source, bytes);
}

void CpuDriver::fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef) {
  if (bytes > 0) std::memset(destination, value, bytes);
}

void CpuDriver::set_threads(int count) { set_thread_count(count); }
int CpuDriver::threads() const { return thread_count(); }

OptionSchema CpuBackend::options() const {
  return {
      OptionSpec::integer("threads", 0, "threads that one kernel may use; 0 = all cores")
          .range(std::int64_t{0}, std::int64_t{kMaxThreads}),
      OptionSpec::size("capacity", 0, "memory that allocators may take; 0 = as much as the machine gives"),
      OptionSpec::size("page", 2 * MiB, "granularity of mapped memory, a multiple of 4KiB"),
      OptionSpec::text("isa", "auto", "vector instructions of the kernels").one_of({"auto", "avx512", "avx2", "sse2"}),
      OptionSpec::text("bfloat16", "auto",
                       "products of bfloat16: in 16 bits by oneDNN, as copies in float32, or what suits the processor")
          .one_of({"auto", "onednn", "float32"}),
  };
}

void CpuBackend::configure(const Options& options) {
  memory_.capacity_bytes = options.size("capacity");
  memory_.page_bytes = options.size("page");
  const Isa chosen = choose_isa(options.text("isa"));
  if (chosen != isa_) use_isa_(chosen);  // the widest is registered already
  isa_ = chosen;
  choose_bfloat16_products(options.text("bfloat16"));
  if (!options.is_default("threads")) set_thread_count(static_cast<int>(options.integer("threads")));
}

DeviceDriver& CpuBackend::device(int index) {
  if (index != 0) throw Error("cpu:" + std::to_string(index) + " does not exist: there is one device, cpu:0");
  const std::lock_guard lock(mutex_);
  if (!driver_) driver_ = std::make_unique<CpuDriver>(memory_, isa_);
  return *driver_;
}

void CpuBackend::shutdown() noexcept {
  stop_threads();
  const std::lock_guard lock(mutex_);
  driver_.reset();
}

}  // namespace tenon::cpu
