// Placing work on the timeline of a device, and adding up what it did.
#include "timeline.h"

#include <algorithm>

namespace tenon::simulated {

void Timeline::kernel(StreamRef stream, const KernelWork& work) {
  if (!model_.is_on) return;
  const std::lock_guard lock(mutex_);
  ++total_.kernels;
  total_.flops += work.flops;
  place(kCompute, stream, model_.kernel_time_us(work));
}

void Timeline::fill(StreamRef stream, double bytes) { kernel(stream, {.flops = 0, .bytes = bytes}); }

void Timeline::copy_within(StreamRef stream, double bytes) {
  if (!model_.is_on) return;
  const std::lock_guard lock(mutex_);
  ++total_.kernels;
  place(kCompute, stream, model_.copy_time_us(bytes));
}

void Timeline::copy_over(StreamRef stream, Direction direction, double bytes) {
  if (!model_.is_on) return;
  const std::lock_guard lock(mutex_);
  ++total_.copies;
  total_.copied_bytes += bytes;
  const Link link = direction == Direction::kToPeer ? Link::kPeer : Link::kHost;
  const Engine engine = direction == Direction::kIn ? kCopyIn : direction == Direction::kOut ? kCopyOut : kCopyToPeer;
  place(engine, stream, model_.link_time_us(link, bytes));
}

/// Called with the lock held.
void Timeline::place(Engine engine, StreamRef stream, double us) {
  advance_virtual_time(virtual_time_us() + model_.launch_us);
  double& end = ends_[stream.id];
  const double begin = free_from(busy_[engine], std::max(end, virtual_time_us()), us);
  end = begin + us;
  publish(engine, us, end);
  if (us == 0) return;
  std::vector<Span>& busy = busy_[engine];
  const auto after =
      std::upper_bound(busy.begin(), busy.end(), begin, [](double at, const Span& span) { return at < span.begin; });
  if (after != busy.begin() && std::prev(after)->end == begin) {  // goes on without a break: one span
    std::prev(after)->end = end;
  } else {
    busy.insert(after, {begin, end});
  }
}

/// For whoever watches the device from another process. Called with the lock held.
void Timeline::publish(Engine engine, double us, double end) {
  constexpr double kNsPerUs = 1000;
  if (engine == kCompute) kernel_us_ever_ += us;
  counters_.kernel_ns.store(static_cast<std::uint64_t>(kNsPerUs * kernel_us_ever_), std::memory_order_relaxed);
  const auto end_ns = static_cast<std::uint64_t>(kNsPerUs * end);
  if (end_ns > counters_.virtual_ns.load(std::memory_order_relaxed))
    counters_.virtual_ns.store(end_ns, std::memory_order_relaxed);
}

/// The first moment from `ready` on at which there is nothing for `us`.
double Timeline::free_from(const std::vector<Span>& busy, double ready, double us) const {
  auto next =
      std::lower_bound(busy.begin(), busy.end(), ready, [](const Span& span, double at) { return span.end <= at; });
  double begin = ready;
  for (; next != busy.end() && next->begin < begin + us; ++next) begin = std::max(begin, next->end);
  return begin;
}

void Timeline::call(double us) const {
  if (model_.is_on) advance_virtual_time(virtual_time_us() + us);
}

double Timeline::end_of(StreamRef stream) {
  if (!model_.is_on) return 0;
  const std::lock_guard lock(mutex_);
  return std::max(ends_[stream.id], virtual_time_us());
}

void Timeline::hold(StreamRef stream, double us) {
  if (!model_.is_on) return;
  const std::lock_guard lock(mutex_);
  double& end = ends_[stream.id];
  end = std::max(end, us);
}

void Timeline::host_waits(StreamRef stream) {
  if (!model_.is_on) return;
  const std::lock_guard lock(mutex_);
  advance_virtual_time(ends_[stream.id]);
  settle();
}

void Timeline::host_waits() {
  if (!model_.is_on) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [stream, end] : ends_) advance_virtual_time(end);
  settle();
}

void Timeline::host_waits_until(double us) const {
  if (model_.is_on) advance_virtual_time(us);
}

/// Once the host is behind everything, nothing will be placed before it any more. Called with the lock held.
void Timeline::settle() {
  for (const std::vector<Span>& busy : busy_)
    if (!busy.empty() && busy.back().end > virtual_time_us()) return;
  add_spans(total_);
  for (std::vector<Span>& busy : busy_) busy.clear();
}

void Timeline::add_spans(DeviceActivity& total) const {
  for (const Span& span : busy_[kCompute]) total.kernel_us += span.end - span.begin;
  for (const Engine engine : {kCopyIn, kCopyOut, kCopyToPeer}) {
    auto kernel = busy_[kCompute].begin();
    for (const Span& copy : busy_[engine]) {
      total.copy_us += copy.end - copy.begin;
      while (kernel != busy_[kCompute].end() && kernel->end <= copy.begin) ++kernel;
      for (auto beside = kernel; beside != busy_[kCompute].end() && beside->begin < copy.end; ++beside)
        total.overlapped_us += std::min(copy.end, beside->end) - std::max(copy.begin, beside->begin);
    }
  }
}

DeviceActivity Timeline::activity() {
  const std::lock_guard lock(mutex_);
  DeviceActivity activity = total_;
  add_spans(activity);
  return activity;
}

void Timeline::reset_activity() {
  const std::lock_guard lock(mutex_);
  total_ = {};
  for (std::vector<Span>& busy : busy_)
    busy.erase(std::remove_if(busy.begin(), busy.end(), [](const Span& s) { return s.end <= virtual_time_us(); }),
               busy.end());
}

}  // namespace tenon::simulated
