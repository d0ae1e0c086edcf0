// Agreement: whether all ranks come to a collective with the same sizes, known before any of them begins it. For
// communicators over libraries that take it on trust: Open MPI copies a large message into a smaller buffer.
//
// Note [The same before it begins]: each rank tells 7 others what it comes with, those that follow it by 1 to 7 places;
// one that has heard the same of the 7 before it tells those 8, 16, … 56 places on, and so on: up to 8 ranks once, up
// to 64 twice. Who has heard of all its turns knows that everybody has the same as itself. One that has not does not
// begin, so that two that have begun have the same, whoever else has something else.
#pragma once

#include <tenon/comm/missing_ranks.h>
#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tenon {

/// Of one group of ranks, seen from one of them, collective by collective. Ranks are numbers in the group.
class TENON_EXPORT Agreement {
 public:
  using Send = std::function<void(int to, const CollectiveSignature& signature)>;

  /// `send` brings a signature to another rank's hear(), in order.
  Agreement(int rank, int size, Send send);

  /// This rank comes to its next collective; any number of them before the first is begun.
  void announce(const CollectiveSignature& own);
  /// What another rank has sent.
  void hear(int from, const CollectiveSignature& signature) { heard_[from].push_back(signature); }
  /// Goes on with what was heard; false where a rank comes to the next one, agreed() + 1, with something else: nothing
  /// goes on then.
  bool advance();

  /// The number, from 1, of the last collective that all ranks have come to with the same.
  std::int64_t agreed() const { return agreed_; }
  /// Of the last one that this rank has come to.
  std::int64_t announced() const { return announced_; }
  /// What this rank came to that one with; empty where it has not, or long ago.
  std::optional<CollectiveSignature> own(std::int64_t number) const;
  /// Where advance() is false: who comes with something else, and with what.
  const std::optional<std::pair<int, CollectiveSignature>>& other() const { return other_; }

 private:
  struct Turn {
    int from, to;
    bool begins_round;  ///< then the turns from here to the next such are told
  };
  void tell(std::size_t turn, const CollectiveSignature& own) const;

  Send send_;
  std::vector<Turn> turns_;
  std::map<int, std::deque<CollectiveSignature>> heard_;
  std::deque<CollectiveSignature> own_;  ///< of the last collectives, up to `announced_`
  std::int64_t announced_ = 0, agreed_ = 0;
  std::size_t turn_ = 0, told_ = 0;  ///< of the collective that follows `agreed_`: heard so far, told so far
  std::optional<std::pair<int, CollectiveSignature>> other_;
};

}  // namespace tenon
