// What is late, and who has gone: who is asked, and who is named (Note [Who is missing] of comm/missing_ranks.h).
#include "worker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tenon::mpi {
namespace {

constexpr std::chrono::milliseconds kAnswerTime{2000};  ///< for the others to say where they are
constexpr std::chrono::milliseconds kAskAgain{10};
constexpr std::chrono::milliseconds kWatchEvery{20};
constexpr double kStoppedSeconds = 2;                ///< between two looks
constexpr std::chrono::milliseconds kLeaveTime{20};  ///< for what a rank did before it left to come here

}  // namespace

void Worker::look_after(const Group& group, const Operation& operation) {
  check_left(group, operation);
  if (inquiry_ || Clock::now() < operation.deadline()) return;
  const auto [late, its_group] = oldest();
  inquire({.about = late, .group = its_group, .asked = Clock::now(), .disputed = 0});
}

/// Whether a rank that has closed its communicator is still needed.
void Worker::check_left(const Group& group, const Operation& operation) {
  for (int member = 0; member < group.size(); ++member) {
    const int rank = group.ranks[static_cast<std::size_t>(member)];
    const auto left = left_.find({group.id, rank});
    if (left == left_.end() || rank == peers_->rank()) continue;
    const bool is_needed = operation.number() > 0
                               ? operation.number() > left->second.number
                               : member == operation.request().peer && operation.request().kind == CommKind::kReceive;
    const auto since = std::max(left->second.heard, operation.deadline() - operation.timeout());
    if (is_needed && Clock::now() > since + kLeaveTime)
      throw DistributedError(
          fmt::format("{} has closed its communicator, and {} needs it", peers_->text(rank), operation.text()), {rank});
  }
}

const Operation* Group::current() const {
  if (collective) return collective->operation().get();
  return waiting.empty() ? nullptr : waiting.front().get();
}

std::pair<std::shared_ptr<Operation>, const Group*> Worker::oldest() const {
  std::pair<std::shared_ptr<Operation>, const Group*> found{};
  const auto look_at = [&](const Group* group, const std::shared_ptr<Operation>& one) {
    if (!found.first || one->deadline() < found.first->deadline()) found = {one, group};
  };
  for (const Group* const group : seen_groups_) {
    if (group->collective)
      look_at(group, group->collective->operation());
    else if (!group->waiting.empty())
      look_at(group, group->waiting.front());
    for (const Execution& message : group->messages) look_at(group, message.operation());
  }
  return found;
}

void Worker::inquire(Inquiry inquiry) {
  inquiry_ = std::move(inquiry);
  for (auto& answer : answers_) answer.reset();
  control_->send_to_all({.kind = ControlMessage::kAsk, .number = inquiry_->disputed, .group = inquiry_->group->id});
}

AwaitedOperation Worker::awaited(const Group& group, const Operation& operation) const {
  AwaitedOperation awaited{.group = group.id, .number = operation.number(), .ranks = {}, .text = operation.text()};
  if (operation.number() > 0)
    awaited.ranks = group.ranks;
  else
    awaited.ranks = {group.ranks[static_cast<std::size_t>(operation.request().peer)]};
  return awaited;
}

/// A collective that the program waits for may stand behind the one that is under way.
RankPosition Worker::own_position() {
  RankPosition position;
  const auto is_awaited = [](const auto& operation) { return operation->is_awaited(); };
  for (const Group* const group : seen_groups_) {
    const Operation* operation = nullptr;
    for (const Execution& message : group->messages)
      if (message.operation()->is_awaited()) operation = message.operation().get();
    if ((group->collective && is_awaited(group->collective->operation())) ||
        std::ranges::any_of(group->waiting, is_awaited))
      operation = group->current();
    if (operation != nullptr) position.awaits = awaited(*group, *operation);
  }
  const std::lock_guard lock(mutex_);
  position.last = last_collective_;
  for (const auto& group : groups_) position.came_to[group->id] = group->number;
  return position;
}

/// Who has not come to what is disputed is asked again.
bool Worker::has_heard_all() {
  bool has_all = true;
  for (int rank = 0; rank < peers_->size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (rank == peers_->rank() || has_gone_[index]) continue;
    const bool is_concerned = inquiry_->disputed == 0 || std::ranges::count(inquiry_->group->ranks, rank) != 0;
    auto& answer = answers_[index];
    if (!is_concerned || (answer && (inquiry_->disputed == 0 || answer->signature))) continue;
    has_all = false;
    if (!answer || Clock::now() < answer->heard + kAskAgain) continue;
    answer.reset();
    control_->send({.kind = ControlMessage::kAsk, .number = inquiry_->disputed, .group = inquiry_->group->id}, rank);
  }
  return has_all;
}

/// When all have said where they are, or had time to.
void Worker::conclude() {
  if (!has_heard_all() && Clock::now() < inquiry_->asked + kAnswerTime) return;
  if (inquiry_->disputed != 0) return conclude_dispute();
  const Operation& late = *inquiry_->about;
  std::vector<std::optional<RankPosition>> positions;
  for (const auto& answer : answers_) {
    auto& position = positions.emplace_back();
    if (!answer) continue;
    position = answer->position;
    position->answered_after = answer->heard - inquiry_->asked;
  }
  const MissingRanks missing = missing_ranks(awaited(*inquiry_->group, late), peers_->rank(), positions,
                                             [this](int rank) { return peers_->text(rank); });
  const std::string who = missing.reasons.empty()
                              ? "every rank has come to it: the network is slow or broken; raise timeout"
                              : fmt::format("{}", fmt::join(missing.reasons, "; "));
  const double seconds = std::chrono::duration<double>(late.timeout()).count();
  throw DistributedError(fmt::format("{} is not done after {:.1f} s (timeout): {}", late.text(), seconds, who),
                         missing.ranks);
}

void Worker::watch_peers() {
  const auto now = Clock::now();
  if (now < watched_ + kWatchEvery) return;
  const bool was_stopped = watched_ != Clock::time_point{} && now > watched_ + settings_.timeout;
  const double seconds = std::chrono::duration<double>(now - watched_).count();
  watched_ = now;
  for (int rank = 0; rank < peers_->size(); ++rank) {
    if (has_gone_[static_cast<std::size_t>(rank)] || !peers_->has_ended(rank) || has_said_bye_) continue;
    // The others have given this rank up. MPI would read from their processes, and say that it cannot.
    if (was_stopped)
      throw DistributedError(
          fmt::format("this process was stopped, or had no processor, for {:.0f} s, and {} has ended "
                      "meanwhile",
                      seconds, peers_->text(rank)),
          {peers_->rank(), rank});
    read_messages();  // its last words may say why
    if (has_failed_ || has_gone_[static_cast<std::size_t>(rank)]) return;
    const std::shared_ptr<Operation> waited = oldest().first;
    throw DistributedError(
        fmt::format("{} has ended{}: what it said itself, or the log of its machine, says why", peers_->text(rank),
                    waited ? " while " + waited->text() + " waits for it" : " before the others"),
        {rank});
  }
}

}  // namespace tenon::mpi
