// Collectives begun, compared and ended: Note [The same on all ranks] of worker.h.
#include "worker.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace tenon::mpi {
namespace {

constexpr std::size_t kSignaturesKept = 64;  ///< for who asks what a collective was that is done here

}  // namespace

void Worker::begin_collective(Group& group) {
  const std::shared_ptr<Operation>& operation = group.waiting.front();
  group.is_done = group.is_broken = false;
  group.begun = operation->number();
  group.signatures.push_back(CollectiveSignature::of(operation->request()));
  const auto first = [&] { return group.begun - static_cast<std::int64_t>(group.signatures.size()) + 1; };
  while (group.signatures.size() > kSignaturesKept && first() <= group.compared) group.signatures.pop_front();
  if (settings_.compares && group.size() > 1) {
    const int next = group.ranks[static_cast<std::size_t>((group.rank + 1) % group.size())];
    control_->send(SignatureMessage{group.id, group.begun, group.signatures.back()}, next);
  }
  group.collective.emplace(operation, group.comm, group.rank, group.size(), settings_.order);
  group.waiting.pop_front();
}

std::optional<CollectiveSignature> Worker::signature_of(const Group& group, std::int64_t number) {
  const std::int64_t first = group.begun - static_cast<std::int64_t>(group.signatures.size()) + 1;
  if (number < first || number > group.begun) return std::nullopt;
  return group.signatures[static_cast<std::size_t>(number - first)];
}

void Worker::compare(Group& group) {
  for (; group.compared < group.begun && !group.to_compare.empty(); ++group.compared) {
    const std::int64_t number = group.compared + 1;
    if (signature_of(group, number) != group.to_compare.front()) return dispute(group, number, {});
    group.to_compare.pop_front();
  }
}

/// A broadcast is done at its root when others have not begun it; else who has an end has heard of the rank before it,
/// which began before that.
bool Worker::end_collective(Group& group) {
  const bool is_disputed = inquiry_ && inquiry_->disputed != 0 && inquiry_->group == &group;
  if (group.is_broken || is_disputed) return false;
  if (!group.is_done) {
    try {
      group.is_done = group.collective->advance();
    } catch (const DistributedError& error) {
      if (group.size() == 1) throw;
      group.is_broken = true;
      dispute(group, group.begun, error);
    }
  }
  const std::shared_ptr<Operation>& operation = group.collective->operation();
  const bool needs_no_other =
      !settings_.compares || group.size() == 1 || operation->request().kind == CommKind::kBroadcast;
  if (!group.is_done || (!needs_no_other && group.compared < group.begun)) return false;
  if (operation->at_end) operation->at_end();
  operation->finish();
  group.collective.reset();
  return true;
}

/// All are asked what they came to it with.
void Worker::dispute(const Group& group, std::int64_t number, const std::optional<DistributedError>& problem) {
  if (inquiry_ && inquiry_->disputed != 0) return;
  inquire({.about = {}, .group = &group, .asked = Clock::now(), .disputed = number, .problem = problem});
}

void Worker::conclude_dispute() {
  const Group& group = *inquiry_->group;
  const std::int64_t number = inquiry_->disputed;
  std::map<int, CollectiveSignature> signatures;
  if (const auto own = signature_of(group, number)) signatures[peers_->rank()] = *own;
  if (number == group.compared + 1 && !group.to_compare.empty()) {
    const int before = (group.rank + group.size() - 1) % group.size();
    signatures[group.ranks[static_cast<std::size_t>(before)]] = group.to_compare.front();
  }
  for (const int rank : group.ranks)
    if (const auto& answer = answers_[static_cast<std::size_t>(rank)]; answer && answer->signature)
      signatures[rank] = *answer->signature;
  const std::string what = fmt::format("{} #{}{}", name_of(signatures.at(peers_->rank()).kind), number, group.text);
  if (const auto error = disagreement(what, signatures)) throw DistributedError(*error);
  if (inquiry_->problem) throw DistributedError(*inquiry_->problem);
  inquiry_.reset();
}

}  // namespace tenon::mpi
