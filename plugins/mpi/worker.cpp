// Operations in their order, messages of the others, and what is late.
#include "worker.h"

#include "check.h"
#include "lifetime.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace tenon::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kAnswerTime{2000};  ///< for the others to say where they are
constexpr milliseconds kTellTime{500};     ///< for a failure to be on its way: mpirun kills a second after a death
constexpr milliseconds kWatchEvery{20};
constexpr microseconds kLongestPause{1000};  ///< between looks at operations under way
constexpr microseconds kIdlePause{5000};     ///< where there is none
constexpr int kBusyTurns = 100;              ///< that find nothing before the thread rests

bool is_message(CommKind kind) { return kind == CommKind::kSend || kind == CommKind::kReceive; }

}  // namespace

Worker::Worker(const WorkerSettings& settings) : settings_(settings) {
  begin_mpi(settings.timeout);
  for (MPI_Comm* const comm : {&comm_, &control_comm_}) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Comm_idup(MPI_COMM_WORLD, comm, &request), "MPI_Comm_idup");
    complete(request, settings.timeout, "the ranks meet");
  }
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(control_comm_, MPI_ERRORS_RETURN);
  peers_ = std::make_unique<Peers>(comm_, settings.timeout);
  const auto size = static_cast<std::size_t>(peers_->size());
  control_ = std::make_unique<Control>(control_comm_, peers_->rank(), peers_->size());
  answers_.resize(size);
  left_.resize(size);
  left_[static_cast<std::size_t>(peers_->rank())] = 0;
  last_ = "none";
  thread_ = std::thread([this] { run(); });
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    is_leaving_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (has_failed_) {
    leave_mpi_open();
    return;
  }
  MPI_Comm_free(&comm_);
  MPI_Comm_free(&control_comm_);
}

std::shared_ptr<Work> Worker::submit(const CommRequest& request) {
  std::shared_ptr<Operation> operation;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) throw DistributedError(*failure_);
    const std::int64_t number = is_message(request.kind) ? 0 : ++number_;
    operation = std::make_shared<Operation>(
        request, number, request.options.timeout.count() > 0 ? request.options.timeout : settings_.timeout,
        peers_->own_text());
    if (number > 0) last_ = operation->text();
    inbox_.push_back(operation);
  }
  changed_.notify_all();
  return operation;
}

void Worker::abort(std::string_view reason, ExitCode code) {
  std::unique_lock lock(mutex_);
  if (!failure_ && !to_abort_)
    to_abort_.emplace(fmt::format("{}: {}", peers_->own_text(), reason), std::vector<int>{peers_->rank()}, code);
  changed_.notify_all();
  changed_.wait_for(lock, 2 * kTellTime, [this] { return has_told_; });
}

void Worker::run() {
  while (!is_over()) {
    bool has_moved = false;
    try {
      take_inbox();
      if (!has_failed_) read_messages();
      if (!has_failed_) has_moved = advance_operations();
      if (!has_failed_) watch_peers();
      if (!has_failed_ && inquiry_) conclude();
      if (!has_failed_) static_cast<void>(control_->is_flushed());
    } catch (const DistributedError& error) {
      fail(DistributedError(fmt::format("{}: {}", peers_->own_text(), error.what()), error.ranks(), error.exit_code()),
           /*tell_others=*/true);
    }
    rest(has_moved);
  }
}

/// After a failure at once, else when everybody has said that he leaves.
bool Worker::is_over() {
  {
    const std::lock_guard lock(mutex_);
    if (!is_leaving_ || !inbox_.empty() || (to_abort_ && !has_failed_)) return false;
  }
  if (collective_ || !messages_.empty() || !waiting_.empty()) return false;
  const auto now = Clock::now();
  if (leaving_since_ == Clock::time_point{}) leaving_since_ = now;
  if (has_failed_) return true;
  if (!std::exchange(has_said_bye_, true)) {
    ControlMessage bye{.kind = ControlMessage::kBye};
    const std::lock_guard lock(mutex_);
    bye.number = number_;
    control_->send_to_all(bye);
  }
  if (now > leaving_since_ + settings_.timeout) {
    has_failed_ = true;  // MPI_Finalize would wait for them too
    return true;
  }
  for (int rank = 0; rank < peers_->size(); ++rank)
    if (!left_[static_cast<std::size_t>(rank)] && !peers_->has_ended(rank)) return false;
  return control_->is_flushed();
}

void Worker::take_inbox() {
  std::optional<DistributedError> to_abort;
  {
    const std::lock_guard lock(mutex_);
    if (to_abort_ && !has_failed_) to_abort = to_abort_;
    for (; !inbox_.empty(); inbox_.pop_front()) waiting_.push_back(std::move(inbox_.front()));
  }
  if (to_abort) fail(*to_abort, /*tell_others=*/true);
  if (!has_failed_) return;
  const DistributedError failure = [this] {
    const std::lock_guard lock(mutex_);
    return *failure_;
  }();
  fail_everything(failure);
}

bool Worker::advance_operations() {
  bool has_moved = false;
  for (auto next = waiting_.begin();
       next != waiting_.end();) {  // messages do not wait for collectives, nor they for them
    if (is_message((*next)->request().kind)) {
      messages_.emplace_back(*next, comm_, peers_->rank(), peers_->size(), settings_.order);
      next = waiting_.erase(next);
    } else {
      ++next;
    }
  }
  if (!collective_ && !waiting_.empty()) {
    collective_.emplace(waiting_.front(), comm_, peers_->rank(), peers_->size(), settings_.order);
    waiting_.pop_front();
    has_moved = true;
  }
  if (collective_) {
    if (collective_->advance()) {
      collective_->operation()->finish();
      collective_.reset();
      has_moved = true;
    } else {
      look_after(*collective_->operation());
    }
  }
  std::erase_if(messages_, [&](Execution& message) {
    if (!message.advance()) return false;
    message.operation()->finish();
    return has_moved = true;
  });
  for (const Execution& message : messages_) look_after(*message.operation());
  if (inquiry_ && inquiry_->about->is_completed()) inquiry_.reset();
  return has_moved;
}

void Worker::look_after(const Operation& operation) {
  check_left(operation);
  if (inquiry_ || Clock::now() < operation.deadline()) return;
  inquire(oldest());
}

/// Whether a rank that has closed its communicator is still needed.
void Worker::check_left(const Operation& operation) {
  for (int rank = 0; rank < peers_->size(); ++rank) {
    const auto& left = left_[static_cast<std::size_t>(rank)];
    if (!left || rank == peers_->rank()) continue;
    const bool is_needed = operation.number() > 0
                               ? operation.number() > *left
                               : rank == operation.request().peer && operation.request().kind == CommKind::kReceive;
    if (is_needed && Clock::now() > operation.deadline() - operation.timeout() + kWatchEvery)
      throw DistributedError(
          fmt::format("{} has closed its communicator, and {} needs it", peers_->text(rank), operation.text()), {rank});
  }
}

std::shared_ptr<Operation> Worker::oldest() const {
  std::shared_ptr<Operation> found;
  if (collective_) found = collective_->operation();
  for (const Execution& message : messages_)
    if (!found || message.operation()->deadline() < found->deadline()) found = message.operation();
  return found;
}

void Worker::inquire(const std::shared_ptr<Operation>& late) {
  inquiry_ = Inquiry{late, Clock::now()};
  for (auto& answer : answers_) answer.reset();
  control_->send_to_all({.kind = ControlMessage::kAsk});
}

/// Note [Who is missing].
void Worker::conclude() {
  const Operation& late = *inquiry_->about;
  std::vector<int> blamed;
  std::vector<std::string> reasons;
  bool all_answered = true;
  for (int rank = 0; rank < peers_->size(); ++rank) {
    if (rank == peers_->rank()) continue;
    const auto& answer = answers_[static_cast<std::size_t>(rank)];
    const bool is_asked_for = late.number() > 0 || rank == late.request().peer;
    if (!is_asked_for) continue;
    if (!answer) {
      all_answered = false;
      blamed.push_back(rank);
      reasons.push_back(fmt::format("{} does not answer: it is stopped, cut off or dead", peers_->text(rank)));
    } else if (late.number() == 0 || answer->number < late.number()) {
      blamed.push_back(rank);
      reasons.push_back(
          fmt::format("{} has not come to it and hangs elsewhere; its last was {}", peers_->text(rank), answer->last));
    }
  }
  if (!all_answered && Clock::now() < inquiry_->asked + kAnswerTime) return;
  const std::string who = reasons.empty() ? "every rank has come to it: the network is slow or broken; raise timeout"
                                          : fmt::format("{}", fmt::join(reasons, "; "));
  const double seconds = std::chrono::duration<double>(late.timeout()).count();
  throw DistributedError(fmt::format("{} is not done after {:.1f} s (timeout): {}", late.text(), seconds, who), blamed);
}

void Worker::read_messages() {
  while (!has_failed_) {
    const std::optional<ControlMessage> message = control_->receive();
    if (!message) return;
    read(*message);
  }
}

void Worker::read(const ControlMessage& message) {
  const auto from = static_cast<std::size_t>(message.from);
  switch (message.kind) {
    case ControlMessage::kAbort:
      if (!has_failed_)
        fail(DistributedError(message.text.data(), message.blamed_ranks(), static_cast<ExitCode>(message.code)),
             /*tell_others=*/false);
      return;
    case ControlMessage::kAsk: {
      ControlMessage answer{.kind = ControlMessage::kTell};
      {
        const std::lock_guard lock(mutex_);
        answer.number = number_;
        answer.set_text(last_);
      }
      control_->send(answer, message.from);
      return;
    }
    case ControlMessage::kTell:
      answers_[from] = Answer{message.number, message.text.data()};
      return;
    case ControlMessage::kBye:
      left_[from] = message.number;
      return;
  }
}

void Worker::watch_peers() {
  const auto now = Clock::now();
  if (now < watched_ + kWatchEvery) return;
  watched_ = now;
  for (int rank = 0; rank < peers_->size(); ++rank) {
    if (left_[static_cast<std::size_t>(rank)] || !peers_->has_ended(rank) || has_said_bye_) continue;
    read_messages();  // its last words may say why
    if (has_failed_ || left_[static_cast<std::size_t>(rank)]) return;
    const std::shared_ptr<Operation> waited = oldest();
    throw DistributedError(fmt::format("{} has ended{}", peers_->text(rank),
                                       waited ? " while " + waited->text() + " waits for it" : " before the others"),
                           {rank});
  }
}

// MPI is not called any more once the program is told: it would go on writing to buffers that the program then frees.
void Worker::fail(const DistributedError& error, bool tell_others) {
  has_failed_ = true;
  try {
    if (tell_others) {
      ControlMessage message{.kind = ControlMessage::kAbort, .code = static_cast<std::int32_t>(error.exit_code())};
      message.set_text(error.what());
      message.set_blamed(error.ranks());
      for (int rank = 0; rank < peers_->size(); ++rank)
        if (rank != peers_->rank() && !peers_->has_ended(rank)) control_->send(message, rank);
    }
    const auto deadline = Clock::now() + kTellTime;
    while (!control_->is_flushed() && Clock::now() < deadline) std::this_thread::sleep_for(microseconds(100));
  } catch (const DistributedError&) {  // MPI itself is of no use any more
  }
  {
    const std::lock_guard lock(mutex_);
    failure_.emplace(error);
    has_told_ = true;
  }
  changed_.notify_all();
  fail_everything(error);
}

void Worker::fail_everything(const DistributedError& error) {
  inquiry_.reset();
  if (collective_) collective_->operation()->fail(error);
  for (const Execution& message : messages_) message.operation()->fail(error);
  for (const auto& operation : waiting_) operation->fail(error);
  collective_.reset();
  messages_.clear();
  waiting_.clear();
}

/// Spins while something moves, then lets the program compute: it may have the same core.
void Worker::rest(bool has_moved) {
  if (has_moved) {
    idle_turns_ = 0;
    return;
  }
  std::unique_lock lock(mutex_);
  if (!inbox_.empty()) return;
  const bool has_operations = collective_ || !messages_.empty() || !waiting_.empty();
  if (has_operations && ++idle_turns_ < kBusyTurns) {
    lock.unlock();
    std::this_thread::yield();
    return;
  }
  // Who has waited long, for a rank that tests or writes, may be told a little later.
  const microseconds pause = has_operations ? std::min(microseconds(50 + idle_turns_ / 20), kLongestPause) : kIdlePause;
  changed_.wait_for(lock, pause);
}

}  // namespace tenon::mpi
