// The turn is handed from thread to thread; whoever has it may touch the schedule.
#include <support/schedule.h>
#include <support/unseen.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <latch>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace tenon::test {
namespace {

constexpr int kMostSteps = 1'000'000;

/// Not a std::binary_semaphore, which spins and yields before it sleeps: a thread here waits for long, as a rule.
class Turn {
 public:
  void give() {
    {
      const std::lock_guard lock(mutex_);
      given_ = true;
    }
    changed_.notify_one();
  }
  void take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return given_; });
    given_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool given_ = false;
};

struct Participant {
  Turn turn;
  const void* waits_at = nullptr;
  bool has_left = false;
};

class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : seed_(seed), random_(seed) {
    // Some schedules change threads at nearly every step, some let one run for long: an error may need either.
    constexpr int kMeanTurns[] = {2, 3, 8, 40, 300, 3000};
    mean_turn_ = kMeanTurns[random_() % std::size(kMeanTurns)];
  }

  int add() {
    all_.emplace_back();
    return static_cast<int>(all_.size()) - 1;
  }
  void begin() { pass_on(-1); }
  void enter(int me) { all_[static_cast<std::size_t>(me)].turn.take(); }
  void point(int me) {
    if (++steps_ > kMostSteps) fail("nobody gets anywhere");
    if (random_() % static_cast<std::uint64_t>(mean_turn_) == 0) pass_on(me);
  }
  void give_way(int me) {
    if (++steps_ > kMostSteps) fail("nobody gets anywhere");
    pass_on(me);
  }
  void wait_at(int me, const void* place) {
    all_[static_cast<std::size_t>(me)].waits_at = place;
    pass_on(me);
  }
  void wake(const void* place, bool every_one) {
    std::vector<Participant*> waiting;
    for (Participant& one : all_) {
      if (one.waits_at == place) waiting.push_back(&one);
    }
    if (waiting.empty()) return;
    if (!every_one) waiting = {waiting[random_() % waiting.size()]};
    for (Participant* one : waiting) one->waits_at = nullptr;
  }
  bool has_left(int number) const { return all_[static_cast<std::size_t>(number)].has_left; }
  const void* end_of(int number) const { return &all_[static_cast<std::size_t>(number)]; }
  void leave(int me) {
    all_[static_cast<std::size_t>(me)].has_left = true;
    wake(end_of(me), true);
    if (std::all_of(all_.begin(), all_.end(), [](const Participant& one) { return one.has_left; })) {
      over_.give();
    } else {
      pass_on(me);
    }
  }
  void wait_until_over() { over_.take(); }

 private:
  void pass_on(int me) {
    std::vector<int> able;
    for (int i = 0; i < static_cast<int>(all_.size()); ++i) {
      const Participant& one = all_[static_cast<std::size_t>(i)];
      if (!one.has_left && one.waits_at == nullptr) able.push_back(i);
    }
    if (able.empty()) fail("every thread waits for another one");
    const int next = able[random_() % able.size()];
    if (next == me) return;
    // From here on the schedule is the other one's; after the end of a thread it may be gone.
    Participant* const own = me >= 0 ? &all_[static_cast<std::size_t>(me)] : nullptr;
    const bool comes_back = own != nullptr && !own->has_left;
    all_[static_cast<std::size_t>(next)].turn.give();
    if (comes_back) own->turn.take();
  }
  [[noreturn]] void fail(const char* what) const {
    std::fprintf(stderr, "schedule of seed %llu: %s\n", static_cast<unsigned long long>(seed_), what);
    std::abort();
  }

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  int mean_turn_ = 1;
  int steps_ = 0;
  std::deque<Participant> all_;  // grows without moving them
  Turn over_;
};

Schedule* current = nullptr;
thread_local int own_number = -1;

}  // namespace

bool is_scheduled() { return own_number >= 0; }

void schedule_point() {
  const Unseen here;
  if (is_scheduled()) current->point(own_number);
}
void give_way() {
  const Unseen here;
  if (is_scheduled()) current->give_way(own_number);
}
void wait_at(const void* place) {
  const Unseen here;
  if (is_scheduled()) current->wait_at(own_number, place);
}
void wake(const void* place, bool all) {
  const Unseen here;
  if (is_scheduled()) current->wake(place, all);
}
int expect_thread() {
  const Unseen here;
  return is_scheduled() ? current->add() : -1;
}
void enter_thread(int number) {
  const Unseen here;
  if (number < 0) return;
  current->enter(number);
  own_number = number;
}
void leave_thread() {
  const Unseen here;
  if (!is_scheduled()) return;
  const int me = std::exchange(own_number, -1);
  current->leave(me);
}
void wait_for_thread(int number) {
  const Unseen here;
  if (!is_scheduled() || number < 0) return;
  while (!current->has_left(number)) wait_at(current->end_of(number));
}

void run_scheduled(std::uint64_t seed, const std::vector<std::function<void()>>& bodies) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Schedule schedule(seed);
  current = &schedule;
  std::latch all_have_left(1);  // until then no thread ends: what runs when it does is in no order
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < bodies.size(); ++i) schedule.add();  // all, before one of them looks for its place
  for (int number = 0; const auto& body : bodies) {
    threads.emplace_back([&body, &all_have_left, number] {
      enter_thread(number);
      body();
      leave_thread();
      all_have_left.wait();
    });
    ++number;
  }
  {
    const Unseen here;
    schedule.begin();
    schedule.wait_until_over();
  }
  all_have_left.count_down();
  threads.clear();
  current = nullptr;
}

}  // namespace tenon::test
