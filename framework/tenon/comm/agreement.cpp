// Note [The same before it begins] of agreement.h.
#include <tenon/comm/agreement.h>

#include <utility>

namespace tenon {
namespace {

constexpr int kFanout = 8;
constexpr std::size_t kKept = 64;  ///< for who asks what a collective was that is done here

}  // namespace

Agreement::Agreement(int rank, int size, Send send) : send_(std::move(send)) {
  for (std::int64_t step = 1; step < size; step *= kFanout)
    for (int times = 1; times < kFanout && times * step < size; ++times) {
      const auto places = static_cast<int>(times * step);
      turns_.push_back({(rank + size - places) % size, (rank + places) % size, times == 1});
    }
}

void Agreement::tell(std::size_t turn, const CollectiveSignature& own) const {
  do send_(turns_[turn].to, own);
  while (++turn < turns_.size() && !turns_[turn].begins_round);
}

void Agreement::announce(const CollectiveSignature& own) {
  ++announced_;
  own_.push_back(own);
  while (own_.size() > kKept && announced_ - static_cast<std::int64_t>(own_.size()) < agreed_) own_.pop_front();
  if (!turns_.empty()) tell(0, own);
}

std::optional<CollectiveSignature> Agreement::own(std::int64_t number) const {
  const std::int64_t before_first = announced_ - static_cast<std::int64_t>(own_.size());
  if (number <= before_first || number > announced_) return std::nullopt;
  return own_[static_cast<std::size_t>(number - before_first - 1)];
}

bool Agreement::advance() {
  if (other_) return false;
  while (agreed_ < announced_) {
    const CollectiveSignature mine = *own(agreed_ + 1);
    for (; turn_ < turns_.size(); ++turn_) {
      if (turn_ > 0 && turns_[turn_].begins_round && told_ <= turn_) {
        tell(turn_, mine);
        told_ = turn_ + 1;
      }
      auto& heard = heard_[turns_[turn_].from];
      if (heard.empty()) return true;
      if (heard.front() != mine) {
        other_.emplace(turns_[turn_].from, heard.front());
        return false;
      }
      heard.pop_front();
    }
    ++agreed_;
    turn_ = told_ = 0;
  }
  return true;
}

}  // namespace tenon
