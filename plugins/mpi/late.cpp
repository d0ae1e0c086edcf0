// What is late: who is asked, and who is named (Note [Who is missing] of worker.h).
#include "worker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::mpi {
namespace {

constexpr std::chrono::milliseconds kAnswerTime{2000};  ///< for the others to say where they are
constexpr std::chrono::milliseconds kLeaveTime{20};     ///< for what a rank did before it left to come here

}  // namespace

void Worker::look_after(const Group& group, const Operation& operation) {
  if (group.id == 0) check_left(operation);
  if (!inquiry_ && Clock::now() >= operation.deadline()) inquire();
}

/// Whether a rank that has closed its communicator is still needed.
void Worker::check_left(const Operation& operation) {
  for (int rank = 0; rank < peers_->size(); ++rank) {
    const auto& left = left_[static_cast<std::size_t>(rank)];
    if (!left || rank == peers_->rank()) continue;
    const bool is_needed = operation.number() > 0
                               ? operation.number() > *left
                               : rank == operation.request().peer && operation.request().kind == CommKind::kReceive;
    if (is_needed && Clock::now() > operation.deadline() - operation.timeout() + kLeaveTime)
      throw DistributedError(
          fmt::format("{} has closed its communicator, and {} needs it", peers_->text(rank), operation.text()), {rank});
  }
}

std::pair<std::shared_ptr<Operation>, const Group*> Worker::oldest() const {
  std::pair<std::shared_ptr<Operation>, const Group*> found{};
  const auto look_at = [&](const Group* group, const Execution& one) {
    if (!found.first || one.operation()->deadline() < found.first->deadline()) found = {one.operation(), group};
  };
  for (const Group* const group : seen_groups_) {
    if (group->collective) look_at(group, *group->collective);
    for (const Execution& message : group->messages) look_at(group, message);
  }
  return found;
}

void Worker::inquire() {
  const auto [late, group] = oldest();
  inquiry_ = Inquiry{late, group, Clock::now()};
  for (auto& answer : answers_) answer.reset();
  control_->send_to_all({.kind = ControlMessage::kAsk, .group = group->id});
}

/// Note [Who is missing].
void Worker::conclude() {
  const Operation& late = *inquiry_->about;
  std::vector<int> blamed;
  std::vector<std::string> reasons;
  bool all_answered = true;
  for (int member = 0; member < inquiry_->group->size(); ++member) {
    const int rank = inquiry_->group->ranks[static_cast<std::size_t>(member)];
    if (rank == peers_->rank()) continue;
    const auto& answer = answers_[static_cast<std::size_t>(rank)];
    const bool is_asked_for = late.number() > 0 || member == late.request().peer;
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

}  // namespace tenon::mpi
