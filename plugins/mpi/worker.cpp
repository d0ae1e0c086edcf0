// Operations in their order, messages of the others, and what is late.
#include "worker.h"

#include "check.h"
#include "lifetime.h"

#include <tenon/comm/group_id.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tenon::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kTellTime{500};       ///< for a failure to be on its way: mpirun kills a second after a death
constexpr microseconds kLongestPause{1000};  ///< between looks at operations under way
constexpr microseconds kIdlePause{5000};     ///< where there is none
constexpr int kBusyTurns = 100;              ///< that find nothing before the thread rests

bool is_message(CommKind kind) { return kind == CommKind::kSend || kind == CommKind::kReceive; }

/// Ranks that give one group other members get a communicator of all these together.
void check_members(const Group& of, const Group& made) {
  MPI_Group all = MPI_GROUP_NULL, own = MPI_GROUP_NULL;
  check(MPI_Comm_group(of.comm, &all), "MPI_Comm_group");
  check(MPI_Comm_group(made.comm, &own), "MPI_Comm_group");
  int size = 0;
  MPI_Group_size(own, &size);
  std::vector<int> numbers(static_cast<std::size_t>(size)), ranks(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const int code = MPI_Group_translate_ranks(own, size, numbers.data(), all, ranks.data());
  MPI_Group_free(&all);
  MPI_Group_free(&own);
  check(code, "MPI_Group_translate_ranks");
  for (int& rank : ranks) rank = of.ranks[static_cast<std::size_t>(rank)];
  if (ranks == made.ranks) return;
  std::vector<int> concerned = ranks;  // which of them is wrong they alone know
  concerned.insert(concerned.end(), made.ranks.begin(), made.ranks.end());
  std::ranges::sort(concerned);
  concerned.erase(std::unique(concerned.begin(), concerned.end()), concerned.end());
  throw DistributedError(
      fmt::format("a group of ranks {} was asked for, and others call it with other members: those who name each other "
                  "are {}; give every member the same list",
                  fmt::join(made.ranks, ", "), fmt::join(ranks, ", ")),
      concerned);
}

}  // namespace

Worker::Worker(const WorkerSettings& settings) : settings_(settings) {
  const Arrival arrival = begin_mpi(settings.timeout);
  auto all = std::make_shared<Group>();
  for (MPI_Comm* const comm : {&all->comm, &control_comm_}) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Comm_idup(MPI_COMM_WORLD, comm, &request), "MPI_Comm_idup");
    complete(request, arrival, settings.timeout);
  }
  MPI_Comm_set_errhandler(all->comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(control_comm_, MPI_ERRORS_RETURN);
  peers_ = std::make_unique<Peers>(
      all->comm, arrival, settings.timeout,
      fmt::format("order={}, check={}", settings.order == Order::kRank ? "rank" : "any", settings.compares));
  const auto size = static_cast<std::size_t>(peers_->size());
  control_ = std::make_unique<Control>(control_comm_, peers_->rank(), peers_->size());
  answers_.resize(size);
  has_gone_.resize(size);
  has_gone_[static_cast<std::size_t>(peers_->rank())] = true;
  all->rank = peers_->rank();
  for (int rank = 0; rank < peers_->size(); ++rank) all->ranks.push_back(rank);
  groups_.push_back(std::move(all));
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
  for (const auto& group : groups_) MPI_Comm_free(&group->comm);  // in the same order on the ranks of each
  MPI_Comm_free(&control_comm_);
}

std::shared_ptr<Work> Worker::submit(Group& group, const CommRequest& request, std::function<void()> at_end) {
  std::shared_ptr<Operation> operation;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) throw DistributedError(*failure_);
    const bool is_own = at_end != nullptr;  // a barrier that nobody called: it has no number that is shown
    const std::int64_t number = is_message(request.kind) ? 0 : ++group.number;
    if (number > 0 && !is_own) ++group.shown;
    operation =
        std::make_shared<Operation>(request, number, is_own ? 0 : group.shown,
                                    request.options.timeout.count() > 0 ? request.options.timeout : settings_.timeout,
                                    peers_->own_text(), group.text);
    operation->at_end = std::move(at_end);
    if (number > 0) last_collective_ = operation->text();
    group.inbox.push_back(operation);
  }
  changed_.notify_all();
  return operation;
}

// MPI_Comm_split blocks. It comes when every rank has come to a barrier, so that it does not wait for one.
Group* Worker::divide(Group& group, const std::vector<int>& members) {
  auto made = std::make_shared<Group>();
  for (const int member : members) made->ranks.push_back(group.ranks[static_cast<std::size_t>(member)]);
  const auto own = std::ranges::find(members, group.rank);
  const bool is_in = own != members.end();
  made->rank = static_cast<int>(own - members.begin());
  made->text = fmt::format(" among ranks {}", fmt::join(made->ranks, ", "));
  {
    const std::lock_guard lock(mutex_);
    made->id = id_of_group(group.id, ++group.groups_made, is_in ? made->ranks.front() : 0);
  }
  submit(group, {.kind = CommKind::kBarrier, .dtype = Dtype::kUInt8},
         [&group, made, color = is_in ? members.front() : MPI_UNDEFINED] {
           check(MPI_Comm_split(group.comm, color, made->rank, &made->comm), "MPI_Comm_split");
           if (made->comm == MPI_COMM_NULL) return;
           MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN);
           check_members(group, *made);
         })
      ->wait();
  if (!is_in) return nullptr;
  const std::lock_guard lock(mutex_);
  return groups_.emplace_back(std::move(made)).get();
}

void Worker::leave(Group& group) {
  const std::lock_guard lock(mutex_);
  group.has_left = true;
}

void Worker::abort(std::string_view reason, ExitCode code) {
  std::unique_lock lock(mutex_);
  if (!failure_ && !to_abort_)
    to_abort_.emplace(fmt::format("{}: {}", peers_->own_text(), reason), std::vector<int>{peers_->rank()}, code);
  changed_.notify_all();
  changed_.wait_for(lock, 2 * kTellTime, [this] { return has_told_; });
}

bool Worker::blames(int rank) {
  const std::lock_guard lock(mutex_);
  return failure_ && failure_->said_by() != rank &&
         std::ranges::find(failure_->ranks(), rank) != failure_->ranks().end();
}

void Worker::run() {
  while (!is_over()) {
    bool has_moved = false;
    try {
      take_inbox();
      if (!has_failed_) watch_peers();
      if (!has_failed_) read_messages();
      if (!has_failed_) tell_of_leaving();
      if (!has_failed_) has_moved = advance_operations();
      if (!has_failed_ && inquiry_) conclude();
      if (!has_failed_) static_cast<void>(control_->is_flushed());
    } catch (const DistributedError& error) {
      fail(DistributedError(fmt::format("{}: {}", peers_->own_text(), error.what()), error.ranks(), error.exit_code()),
           /*tell_others=*/true);
    } catch (const std::exception& error) {  // no memory for a message, say
      fail(DistributedError(fmt::format("{}: {}", peers_->own_text(), error.what()), {peers_->rank()}),
           /*tell_others=*/true);
    }
    rest(has_moved);
  }
}

/// After a failure at once, else when everybody has said that he leaves.
bool Worker::is_over() {
  {
    const std::lock_guard lock(mutex_);
    if (!is_leaving_ || (to_abort_ && !has_failed_)) return false;
    for (const auto& group : groups_)
      if (!group->inbox.empty() || group->has_work()) return false;
    see_groups_locked();  // whoever was left since the last turn is told of before the last word
  }
  const auto now = Clock::now();
  if (leaving_since_ == Clock::time_point{}) leaving_since_ = now;
  if (has_failed_) return true;
  try {
    if (!std::exchange(has_said_bye_, true)) {
      tell_of_leaving();
      control_->send_to_all({.kind = ControlMessage::kBye});
    }
    if (now <= leaving_since_ + settings_.timeout) {
      for (int rank = 0; rank < peers_->size(); ++rank)
        if (!has_gone_[static_cast<std::size_t>(rank)] && !peers_->has_ended(rank)) return false;
      return control_->is_flushed();
    }
  } catch (const std::exception&) {  // nobody waits here any more who could be told
  }
  has_failed_ = true;  // MPI_Finalize would wait for them too
  return true;
}

void Worker::see_groups_locked() {
  seen_groups_.clear();
  for (const auto& group : groups_) seen_groups_.push_back(group.get());
}

void Worker::take_inbox() {
  std::optional<DistributedError> to_abort;
  {
    const std::lock_guard lock(mutex_);
    if (to_abort_ && !has_failed_) to_abort = to_abort_;
    see_groups_locked();
    for (const auto& group : groups_) {
      begin_comparing(*group);
      for (; !group->inbox.empty(); group->inbox.pop_front()) group->waiting.push_back(std::move(group->inbox.front()));
    }
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
  for (Group* const group : seen_groups_)
    if (advance(*group)) has_moved = true;
  if (inquiry_ && inquiry_->disputed == 0 && inquiry_->about->is_completed()) inquiry_.reset();
  return has_moved;
}

bool Worker::advance(Group& group) {
  bool has_moved = false;
  for (auto next = group.waiting.begin();
       next != group.waiting.end();) {  // messages do not wait for collectives, nor they for them
    if (is_message((*next)->request().kind)) {
      group.messages.emplace_back(*next, group.comm, group.rank, group.size(), settings_.order);
      next = group.waiting.erase(next);
    } else {
      ++next;
    }
  }
  compare(group);
  if (begin_collective(group)) has_moved = true;
  if (end_collective(group)) has_moved = true;
  if (const Operation* const current = group.current()) look_after(group, *current);
  // One at a time: advance() may throw, and those that it leaves are told of it.
  for (auto message = group.messages.begin(); message != group.messages.end();) {
    if (message->advance()) {
      message->operation()->finish();
      message = group.messages.erase(message);
      has_moved = true;
    } else {
      ++message;
    }
  }
  for (const Execution& message : group.messages) look_after(group, *message.operation());
  return has_moved;
}

void Worker::tell_of_leaving() {
  for (Group* const group : seen_groups_) {
    ControlMessage message{.kind = ControlMessage::kLeave, .group = group->id};
    {
      const std::lock_guard lock(mutex_);
      if (!group->has_left || std::exchange(group->has_told, true)) continue;
      message.number = group->number;
    }
    control_->send_to_all(message);
  }
}

void Worker::read_messages() {
  while (const auto message = control_->receive_signature()) {
    const auto group = std::ranges::find(seen_groups_, message->group, [](const Group* one) { return one->id; });
    if (group == seen_groups_.end())
      early_[message->group].push_back(*message);
    else if ((*group)->agreement)
      (*group)->agreement->hear(message->from, message->signature);
  }
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
      if (!has_failed_) {
        DistributedError error(message.text.data(), message.blamed_ranks(), static_cast<ExitCode>(message.code));
        error.set_said_by(message.from);
        fail(error, /*tell_others=*/false);
      }
      return;
    case ControlMessage::kAsk: {
      ControlMessage answer{.kind = ControlMessage::kTell, .number = message.number, .group = message.group};
      answer.set_position(own_position());
      for (const Group* const group : seen_groups_) {
        const std::optional<CollectiveSignature> own =
            group->id == message.group && group->agreement ? group->agreement->own(message.number) : std::nullopt;
        if (!own) continue;
        answer.has_signature = 1;
        answer.signature = *own;
      }
      control_->send(answer, message.from);
      return;
    }
    case ControlMessage::kTell:
      if (inquiry_ && inquiry_->group->id == message.group && inquiry_->disputed == message.number)
        answers_[from] =
            Answer{.position = message.position(peers_->size()),
                   .signature = message.has_signature != 0 ? std::optional(message.signature) : std::nullopt,
                   .heard = Clock::now()};
      return;
    case ControlMessage::kLeave:
      left_[{message.group, message.from}] = {message.number, Clock::now()};
      return;
    case ControlMessage::kBye:
      has_gone_[from] = true;
      return;
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
  } catch (const std::exception&) {  // MPI itself is of no use any more, or there is no memory for a message
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
  for (Group* const group : seen_groups_) {
    if (group->collective) group->collective->operation()->fail(error);
    for (const Execution& message : group->messages) message.operation()->fail(error);
    for (const auto& operation : group->waiting) operation->fail(error);
    group->collective.reset();
    group->messages.clear();
    group->waiting.clear();
  }
}

/// Spins while something moves, then lets the program compute: it may have the same core.
void Worker::rest(bool has_moved) {
  if (has_moved) {
    idle_turns_ = 0;
    return;
  }
  std::unique_lock lock(mutex_);
  bool has_operations = false;
  for (const auto& group : groups_) {
    if (!group->inbox.empty()) return;
    has_operations = has_operations || group->has_work();
  }
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
