// Collectives compared, begun and ended: Note [The same on all ranks] of worker.h.
#include "worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace tenon::mpi {

/// Of a group that is new here: some of its ranks may have sent already.
void Worker::begin_comparing(Group& group) {
  if (!settings_.compares || group.size() == 1 || group.agreement) return;
  group.agreement =
      std::make_unique<Agreement>(group.rank, group.size(), [this, &group](int to, const CollectiveSignature& own) {
        const SignatureMessage message{.group = group.id, .from = group.rank, .signature = own};
        control_->send(message, group.ranks[static_cast<std::size_t>(to)]);
      });
  const auto early = early_.find(group.id);
  if (early == early_.end()) return;
  for (const SignatureMessage& message : early->second) group.agreement->hear(message.from, message.signature);
  early_.erase(early);
}

void Worker::compare(Group& group) {
  if (!group.agreement) return;
  for (const auto& operation : group.waiting)
    if (operation->number() > group.agreement->announced())
      group.agreement->announce(CollectiveSignature::of(operation->request()));
  const bool is_disputed = inquiry_ && inquiry_->disputed != 0;
  if (group.agreement->advance() || is_disputed) return;
  inquire({.about = {}, .group = &group, .asked = Clock::now(), .disputed = group.agreement->agreed() + 1});
}

/// Once all have come to it with the same.
bool Worker::begin_collective(Group& group) {
  if (group.collective || group.waiting.empty()) return false;
  const std::shared_ptr<Operation>& next = group.waiting.front();
  next->begun();
  if (group.agreement && group.agreement->agreed() < next->number()) return false;
  group.collective.emplace(next, group.comm, group.rank, group.size(), settings_.order);
  group.waiting.pop_front();
  return true;
}

bool Worker::end_collective(Group& group) {
  if (!group.collective || !group.collective->advance()) return false;
  const std::shared_ptr<Operation>& operation = group.collective->operation();
  if (operation->at_end) operation->at_end();
  operation->finish();
  group.collective.reset();
  return true;
}

void Worker::conclude_dispute() {
  const Group& group = *inquiry_->group;
  const std::int64_t number = inquiry_->disputed;
  std::map<int, CollectiveSignature> signatures;
  const auto add = [&](int member, const CollectiveSignature& signature) {
    signatures[group.ranks[static_cast<std::size_t>(member)]] = signature;
  };
  if (const auto own = group.agreement->own(number)) add(group.rank, *own);
  if (const auto& other = group.agreement->other()) add(other->first, other->second);
  for (const int rank : group.ranks)
    if (const auto& answer = answers_[static_cast<std::size_t>(rank)]; answer && answer->signature)
      signatures[rank] = *answer->signature;
  const auto disputed = std::ranges::find(group.waiting, number, [](const auto& one) { return one->number(); });
  const std::string what =
      (disputed == group.waiting.end() ? std::string("a collective") : (*disputed)->name()) + group.text;
  if (const auto error = disagreement(what, signatures)) throw DistributedError(*error);
  inquiry_.reset();
}

}  // namespace tenon::mpi
