// Work: chosen by the order of the machine, run one by one.
#include "support/emulated_cuda/work.h"

#include "support/emulated_cuda/misuse.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::emulated_cuda {

namespace {

thread_local bool g_in_host_function = false;
thread_local bool g_in_work = false;

}  // namespace

bool in_host_function() { return g_in_host_function; }
bool in_work() { return g_in_work; }

WorkQueue::WorkQueue(std::mutex& mutex, const Settings& settings)
    : order(settings.finds_unordered_use), mutex_(mutex), order_(settings.order), random_(settings.seed) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (host_thread_.joinable()) host_thread_.join();
}

bool WorkQueue::may_run(const Work& work) const {
  return !work.running &&
         std::all_of(work.after.begin(), work.after.end(), [](const WorkRef& one) { return one->done; });
}

void WorkQueue::finish(const WorkRef& work) {
  work->done = true;
  work->running = false;
  work->run = nullptr;
  work->after.clear();
  work->finished_ms = ++clock_ms_;
  queued_.remove(work);
  changed_.notify_all();
}

void WorkQueue::start(const WorkRef& work) {
  work->running = true;
  if (!work->host) {
    g_in_work = true;
    running_ = work->moment;
    const Tool& tool = emulated_cuda::tool();
    if (tool.began != nullptr) tool.began();
    work->run();
    if (tool.ended != nullptr) tool.ended(work->told);
    g_in_work = false;
    finish(work);
    return;
  }
  host_functions_.push_back(work);
  if (!host_thread_.joinable()) host_thread_ = std::thread([this] { call_host_functions(); });
  changed_.notify_all();
}

void WorkQueue::call_host_functions() {
  g_in_host_function = true;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !host_functions_.empty(); });
    if (host_functions_.empty()) return;
    const WorkRef work = host_functions_.front();
    host_functions_.pop_front();
    lock.unlock();
    work->run();
    lock.lock();
    finish(work);
    if (order_ == Order::kEager) {
      while (run_one()) {
      }
    }
  }
}

WorkRef WorkQueue::needed_by(const WorkRef& target) const {
  std::unordered_set<const Work*> seen;
  std::vector<WorkRef> open{target};
  while (!open.empty()) {
    const WorkRef work = open.back();
    open.pop_back();
    if (work->done || !seen.insert(work.get()).second) continue;
    if (may_run(*work)) return work;
    for (const WorkRef& before : work->after) open.push_back(before);
  }
  return nullptr;
}

WorkRef WorkQueue::any_that_may_run() {
  std::vector<WorkRef> ready;
  for (const WorkRef& work : queued_) {
    if (!may_run(*work)) continue;
    if (order_ != Order::kSeeded) return work;
    ready.push_back(work);
    if (ready.size() == 64) break;
  }
  if (ready.empty()) return nullptr;
  return ready[std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(random_)];
}

bool WorkQueue::run_one() {
  const WorkRef work = any_that_may_run();
  if (work == nullptr) return false;
  start(work);
  return true;
}

void WorkQueue::use_by_running(const std::string& what, Address address, std::size_t bytes, bool writes) {
  order.use(running_, what, address, bytes, writes);
}

void WorkQueue::host_has_seen(const WorkRef& work) {
  if (work != nullptr) order.host_waited_for(work->moment);
}

void WorkQueue::add(const WorkRef& work) {
  std::vector<MomentRef> after;
  for (const WorkRef& one : work->after) {
    if (one != nullptr) after.push_back(one->moment);
  }
  work->moment = order.next(work->device, after);
  for (const Work::Range& range : work->touches) {
    if (range.use != Work::Use::kSomehow)
      order.use(work->moment, work->what, range.address, range.bytes, range.use == Work::Use::kWrites);
  }
  std::erase_if(work->after, [](const WorkRef& one) { return one == nullptr || one->done; });
  queued_.push_back(work);
  if (order_ == Order::kEager) {
    while (run_one()) {
    }
  }
}

void WorkQueue::complete(const std::vector<WorkRef>& targets) {
  for (const WorkRef& target : targets) {
    while (target != nullptr && !target->done) {
      const WorkRef next = order_ == Order::kLastMoment ? needed_by(target) : any_that_may_run();
      if (next != nullptr) {
        start(next);
        continue;
      }
      const bool at_work = std::any_of(queued_.begin(), queued_.end(), [](const WorkRef& one) { return one->running; });
      if (!at_work) misuse(target->what + " waits for work that can never run");
      std::unique_lock lock(mutex_, std::adopt_lock);
      changed_.wait(lock);
      lock.release();
    }
    host_has_seen(target);
  }
}

void WorkQueue::between_calls() {
  if (order_ == Order::kSeeded && random_() % 2 == 0) run_one();
}

void WorkQueue::nudge(const WorkRef& target) {
  if (order_ != Order::kLastMoment) {
    run_one();
  } else if (const WorkRef next = needed_by(target)) {
    start(next);
  }
}

void WorkQueue::drop(int device) {
  const std::vector<WorkRef> all(queued_.begin(), queued_.end());
  for (const WorkRef& work : all) {
    if (work->device == device && !work->running) finish(work);
  }
}

}  // namespace tenon::emulated_cuda
