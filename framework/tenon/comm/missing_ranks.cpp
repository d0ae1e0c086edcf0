// Chains of ranks that wait, followed to their end; what ranks brought along, side by side.
#include <tenon/comm/missing_ranks.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

namespace tenon {

namespace {

constexpr std::chrono::milliseconds kSlowAnswer{300};

/// All have come by now; but who answers so late had no processor until then.
void add_stopped(MissingRanks& missing, const std::vector<std::optional<RankPosition>>& positions,
                 const std::function<std::string(int)>& text_of) {
  for (std::size_t rank = 0; rank < positions.size(); ++rank) {
    if (!positions[rank] || positions[rank]->answered_after < kSlowAnswer) continue;
    missing.ranks.push_back(static_cast<int>(rank));
    missing.reasons.push_back(
        fmt::format("{} has come by now, and did not answer for {:.1f} s: it was stopped, or had no processor",
                    text_of(static_cast<int>(rank)), positions[rank]->answered_after.count()));
  }
}

}  // namespace

MissingRanks missing_ranks(const AwaitedOperation& late, int own_rank,
                           const std::vector<std::optional<RankPosition>>& positions,
                           const std::function<std::string(int)>& text_of) {
  struct Link {
    AwaitedOperation operation;
    int waiting;  ///< who waits for it; -1: the one who asks
  };
  MissingRanks missing, waiting;
  std::set<int> seen{own_rank};
  for (std::deque<Link> links{{late, -1}}; !links.empty(); links.pop_front()) {
    const Link link = links.front();
    const AwaitedOperation& operation = link.operation;
    for (const int rank : operation.ranks) {
      const auto& position = positions[static_cast<std::size_t>(rank)];
      if (!position) {
        if (!seen.insert(rank).second) continue;
        missing.ranks.push_back(rank);
        missing.reasons.push_back(text_of(rank) + " does not answer: it is stopped, cut off or dead");
        continue;
      }
      const auto found = position->came_to.find(operation.group);
      const bool has_come =
          operation.number > 0 && found != position->came_to.end() && found->second >= operation.number;
      if (has_come || !seen.insert(rank).second) continue;
      if (position->awaits) {
        waiting.ranks.push_back(rank);
        waiting.reasons.push_back(fmt::format("{} itself waits for {}", text_of(rank), position->awaits->text));
        links.push_back({*position->awaits, rank});
        continue;
      }
      missing.ranks.push_back(rank);
      missing.reasons.push_back(
          link.waiting < 0
              ? fmt::format("{} has not come to it and hangs elsewhere; its last was {}", text_of(rank), position->last)
              : fmt::format("{} has not come to {}, which rank {} waits for, and hangs elsewhere; its last was {}",
                            text_of(rank), operation.text, link.waiting, position->last));
    }
  }
  if (missing.ranks.empty() && waiting.ranks.empty()) add_stopped(missing, positions, text_of);
  if (!missing.ranks.empty() || waiting.ranks.empty()) return missing;
  waiting.reasons.back() += ": they wait for each other; every rank calls its operations in the same order";
  return waiting;
}

CollectiveSignature CollectiveSignature::of(const CommRequest& request) {
  const bool reduces = request.kind == CommKind::kAllReduce || request.kind == CommKind::kReduceScatter;
  return {.kind = request.kind,
          .dtype = request.dtype,
          .op = reduces ? request.op : ReduceOp::kSum,
          .root = request.kind == CommKind::kBroadcast ? request.peer : 0,
          .count = request.count};
}

std::string CollectiveSignature::text() const {
  std::string elements = fmt::format("{} of {} {}", name_of(kind), count, name_of(dtype));
  switch (kind) {
    case CommKind::kAllReduce:
      return fmt::format("{} ({})", elements, name_of(op));
    case CommKind::kReduceScatter:
      return fmt::format("{} ({}) for each rank", elements, name_of(op));
    case CommKind::kAllGather:
      return elements + " of each rank";
    case CommKind::kBroadcast:
      return fmt::format("{} from rank {}", elements, root);
    case CommKind::kBarrier:
      return std::string(name_of(kind));
    case CommKind::kSend:
    case CommKind::kReceive:
      break;
  }
  return elements;
}

RankCamps camps_of(const std::map<int, std::string>& by_rank) {
  std::vector<std::pair<std::string, std::vector<int>>> camps;
  for (const auto& [rank, what] : by_rank) {
    auto camp = std::ranges::find(camps, what, [](const auto& one) { return one.first; });
    if (camp == camps.end()) camp = camps.insert(camp, {what, {}});
    camp->second.push_back(rank);
  }
  std::size_t most = 0;
  for (const auto& [what, ranks] : camps) most = std::max(most, ranks.size());
  const auto has_most = [most](const auto& camp) { return camp.second.size() == most; };
  const bool is_majority_known = std::ranges::count_if(camps, has_most) == 1;
  RankCamps found{.text = {}, .fewer = {}, .count = camps.size()};
  for (const auto& camp : camps) {
    const auto& [what, ranks] = camp;
    found.text += fmt::format("{}{} {}: {}", found.text.empty() ? "" : "; ", ranks.size() == 1 ? "rank" : "ranks",
                              fmt::join(ranks, ", "), what);
    if (!is_majority_known || !has_most(camp)) found.fewer.insert(found.fewer.end(), ranks.begin(), ranks.end());
  }
  return found;
}

std::optional<DistributedError> disagreement(const std::string& what,
                                             const std::map<int, CollectiveSignature>& signatures) {
  std::map<int, std::string> words;
  for (const auto& [rank, signature] : signatures) words[rank] = signature.text();
  const RankCamps camps = camps_of(words);
  if (camps.count < 2) return std::nullopt;
  return DistributedError(
      fmt::format(
          "{} is not the same on all ranks: {}: call the same operations in the same order, with the same sizes "
          "and dtypes, on every rank",
          what, camps.text),
      camps.fewer);
}

}  // namespace tenon
