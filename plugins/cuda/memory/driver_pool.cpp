// CUDA's stream-ordered allocator as a pool.
#include "memory/driver_pool.h"

#include "handles.h"
#include "memory/memory_source.h"

#include <algorithm>
#include <string>

namespace tenon::cuda {

namespace {

constexpr std::size_t kAlignment = 512;

void set(cudaMemPool_t pool, cudaMemPoolAttr attribute, bool value) {
  int number = value ? 1 : 0;
  check(cudaMemPoolSetAttribute(pool, attribute, &number), "cudaMemPoolSetAttribute");
}

bool has_pools(const Context& context) {
  int has = 0;
  check(cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, context.device()), "cudaDeviceGetAttribute");
  return has != 0;
}

}  // namespace

std::unique_ptr<CudaDriverPool> CudaDriverPool::make(CudaMemorySource& source, const DriverPoolOptions& options) {
  const ContextGuard guard(source.context());
  if (!has_pools(source.context())) return nullptr;
  return std::unique_ptr<CudaDriverPool>(new CudaDriverPool(source, options));
}

CudaDriverPool::CudaDriverPool(CudaMemorySource& source, const DriverPoolOptions& options) : source_(source) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {.type = cudaMemLocationTypeDevice, .id = source.context().device()};
  check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  try {
    cuuint64_t threshold = options.release_threshold;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold), "cudaMemPoolSetAttribute");
    set(pool_, cudaMemPoolReuseFollowEventDependencies, options.reuse_follow_event_dependencies);
    set(pool_, cudaMemPoolReuseAllowOpportunistic, options.reuse_allow_opportunistic);
    set(pool_, cudaMemPoolReuseAllowInternalDependencies, options.reuse_allow_internal_dependencies);
    source_.add(*this);
  } catch (...) {
    cudaMemPoolDestroy(pool_);
    throw;
  }
}

CudaDriverPool::~CudaDriverPool() {
  source_.remove(*this);
  const ContextGuard guard(source_.context().native(), std::nothrow);
  if (!guard) return;
  for (const Kept& kept : kept_)
    if (kept.address != nullptr) cudaFreeAsync(kept.address, nullptr);  // the device was waited for
  if (joining_ != nullptr) cudaStreamDestroy(joining_);
  cudaMemPoolDestroy(pool_);
  cudaGetLastError();
}

void* CudaDriverPool::acquire(std::size_t bytes, StreamRef stream) {
  if (bytes == 0) return nullptr;
  const ContextGuard guard(source_.context());
  const WhileCapturing allowed;
  if (source_.captures().load(std::memory_order_relaxed) != 0 && is_capturing(stream)) {
    throw Error(source_.traits().device +
                ": memory of the driver's pool cannot be taken while its stream is captured; use an allocator with "
                "private pools, such as caching");
  }
  if (keeps_.load(std::memory_order_relaxed)) free_what_was_kept();
  if (!source_.charge(bytes)) return nullptr;
  void* address = nullptr;
  const cudaError_t status = cudaMallocFromPoolAsync(&address, bytes, pool_, native(stream));
  if (status == cudaSuccess && reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0) return address;
  source_.refund(bytes);
  if (status == cudaSuccess) {
    cudaFreeAsync(address, native(stream));
    throw Error(source_.traits().device + ": the driver's pool aligns to less than " + std::to_string(kAlignment));
  }
  if (status != cudaErrorMemoryAllocation) check(status, "cudaMallocFromPoolAsync");
  cudaGetLastError();
  return nullptr;
}

void CudaDriverPool::release(void* address, std::size_t bytes, std::span<const StreamRef> streams) noexcept {
  const ContextGuard guard(source_.context().native(), std::nothrow);
  const WhileCapturing allowed;
  if (guard) {
    try {
      free_behind(address, streams);
    } catch (const Error&) {
      // The device is lost, and its memory with it.
    }
    cudaGetLastError();
  }
  source_.refund(bytes);
}

void CudaDriverPool::free_behind(void* address, std::span<const StreamRef> streams) {
  Timeline& timeline = source_.timeline();
  if (source_.captures().load(std::memory_order_relaxed) != 0 &&
      std::any_of(streams.begin(), streams.end(), [](StreamRef one) { return is_capturing(one); })) {
    Kept kept{address, {}};
    for (const StreamRef stream : streams) kept.until.push_back(timeline.mark(stream));
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(kept));
    keeps_.store(true, std::memory_order_relaxed);
    return;
  }
  cudaStream_t behind = native(streams.front());
  if (streams.size() > 1 || timeline.is_retired(streams.front())) {
    const std::lock_guard lock(mutex_);
    behind = joining_stream();
    for (const StreamRef stream : streams) timeline.let_wait(behind, stream);
    check(cudaFreeAsync(address, behind), "cudaFreeAsync");  // before another thread lets this stream wait for more
    return;
  }
  check(cudaFreeAsync(address, behind), "cudaFreeAsync");
}

cudaStream_t CudaDriverPool::joining_stream() {
  if (joining_ == nullptr)
    check(cudaStreamCreateWithFlags(&joining_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return joining_;
}

void CudaDriverPool::free_what_was_kept() {
  const std::lock_guard lock(mutex_);
  // A device that is lost throws in between: what was freed by then is known by its null, and no list is half moved.
  for (Kept& kept : kept_) {
    if (kept.address == nullptr ||
        !std::ranges::all_of(kept.until, [&](const Ticket ticket) { return source_.timeline().reached(ticket); }))
      continue;
    check(cudaFreeAsync(kept.address, joining_stream()), "cudaFreeAsync");
    kept.address = nullptr;
  }
  std::erase_if(kept_, [](const Kept& kept) { return kept.address == nullptr; });
  keeps_.store(!kept_.empty(), std::memory_order_relaxed);
}

std::size_t CudaDriverPool::reserved_bytes() const noexcept {
  const ContextGuard guard(source_.context().native(), std::nothrow);
  const WhileCapturing allowed;
  cuuint64_t bytes = 0;
  if (guard && cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &bytes) == cudaSuccess) {
    reserved_bytes_.store(bytes, std::memory_order_relaxed);
  } else {
    cudaGetLastError();
  }
  return reserved_bytes_.load(std::memory_order_relaxed);
}

void CudaDriverPool::trim(std::size_t keep_bytes) noexcept {
  const ContextGuard guard(source_.context().native(), std::nothrow);
  if (!guard) return;
  const WhileCapturing allowed;
  try {
    if (keeps_.load(std::memory_order_relaxed)) free_what_was_kept();
  } catch (const Error&) {
    // The device is lost.
  }
  cudaMemPoolTrimTo(pool_, keep_bytes);
  cudaGetLastError();
}

void CudaDriverPool::share_with(int device) {
  cudaMemAccessDesc access{};
  access.location = {.type = cudaMemLocationTypeDevice, .id = device};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  check(cudaMemPoolSetAccess(pool_, &access, 1), "cudaMemPoolSetAccess");
}

}  // namespace tenon::cuda
