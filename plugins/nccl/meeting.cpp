// What is said over the connections.
#include "meeting.h"

#include <tenon/core/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

namespace tenon::nccl {
namespace {

constexpr std::chrono::milliseconds kAnswerTime{2'000}, kTick{20};

DistributedError error_of(const Message& message) {
  std::vector<int> blamed(message.blamed.begin(), message.blamed.begin() + message.blamed_count);
  DistributedError error(message.text.data(), std::move(blamed), static_cast<ExitCode>(message.code));
  error.set_said_by(message.said_by);
  return error;
}

Message message_of(const DistributedError& error, int from) {
  Message message{.kind = Message::kFail, .from = from, .code = static_cast<std::int32_t>(error.exit_code())};
  message.said_by = error.said_by() < 0 ? from : error.said_by();
  message.set_text(error.what());
  for (const int rank : error.ranks())
    if (message.blamed_count < static_cast<int>(message.blamed.size()))
      message.blamed[static_cast<std::size_t>(message.blamed_count++)] = rank;
  return message;
}

}  // namespace

void Message::set_text(std::string_view words) {
  const std::size_t count = std::min(words.size(), text.size() - 1);
  std::copy_n(words.begin(), count, text.begin());
  text[count] = '\0';
}

void Message::set_group(const std::vector<int>& members, int all_ranks) {
  if (static_cast<std::size_t>(all_ranks) > 8 * data.size()) return;
  for (const int rank : members) data[static_cast<std::size_t>(rank / 8)] |= static_cast<char>(1 << rank % 8);
}

std::vector<int> Message::group_ranks() const {
  std::vector<int> members;
  for (int rank = 0; rank < 8 * static_cast<int>(data.size()); ++rank)
    if ((data[static_cast<std::size_t>(rank / 8)] >> rank % 8 & 1) != 0) members.push_back(rank);
  return members;
}

void Meeting::leave() {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    if (!failure_) {
      const Message bye{.kind = Message::kBye, .from = rank_};
      if (rank_ != 0) send(0, bye);
      changed_.wait_for(lock, timeout_, [&] {  // of other ranks than 0 that one alone
        return failure_.has_value() ||
               std::ranges::all_of(peers_, [&](const Peer& peer) { return peer.socket < 0 || peer.has_left; });
      });
      if (rank_ == 0) send_to_all(bye);
    }
    is_leaving_ = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
  thread_.join();
}

Meeting::~Meeting() {
  leave();
  for (const Peer& peer : peers_)
    if (peer.socket >= 0) ::close(peer.socket);
  ::close(wake_);
}

std::string Meeting::own_text() const { return fmt::format("rank {} of {}", rank_, size_); }

std::string Meeting::text_of(int rank) const {
  const std::string& process = peers_[static_cast<std::size_t>(rank)].process;
  return process.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, process);
}

/// What cannot be sent is of a rank that is gone: whoever reads from it says so.
void Meeting::send(int to, const Message& message) {
  const auto* data = reinterpret_cast<const char*>(&message);
  for (std::size_t done = 0; done < sizeof message;) {
    const ssize_t sent =
        ::send(peers_[static_cast<std::size_t>(to)].socket, data + done, sizeof message - done, MSG_NOSIGNAL);
    if (sent <= 0 && errno != EINTR) return;
    done += sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
}

void Meeting::send_to_all(const Message& message, int but) {
  for (int rank = 0; rank < size_; ++rank)
    if (rank != but && peers_[static_cast<std::size_t>(rank)].socket >= 0) send(rank, message);
}

/// False: the connection has ended, or nothing came in time.
bool Meeting::receive(int from, Message& message, std::chrono::milliseconds timeout) {
  auto* data = reinterpret_cast<char*>(&message);
  const int socket = peers_[static_cast<std::size_t>(from)].socket;
  for (std::size_t done = 0; done < sizeof message;) {
    pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(timeout.count())) == 0) return false;
    const ssize_t got = ::recv(socket, data + done, sizeof message - done, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return true;
}

std::array<char, 128> Meeting::share(const std::array<char, 128>& bytes) {
  Message message{.kind = Message::kId, .from = rank_, .data = bytes};
  if (rank_ == 0) {
    send_to_all(message);
  } else if (!receive(0, message, timeout_) || message.kind != Message::kId) {
    throw DistributedError(
        fmt::format("{}: rank 0 has left before it gave NCCL's id: what it said itself says why", own_text()), {0});
  }
  return message.data;
}

void Meeting::add(const Member& member) {
  {
    const std::lock_guard members_lock(members_mutex_);
    members_.push_back(member);
    const std::lock_guard lock(mutex_);
    numbers_[member.group] = member.number;
    has_told_members_ = has_told_members_ && !failure_;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void Meeting::remove(std::int64_t group) {
  bool is_last = false;
  {
    const std::lock_guard members_lock(members_mutex_);
    std::erase_if(members_, [&](const Member& member) { return member.group == group; });
    is_last = members_.empty();
    const std::lock_guard lock(mutex_);
    numbers_.erase(group);
  }
  if (is_last) leave();
}

void Meeting::run() {
  for (;;) {
    std::vector<pollfd> sockets = {{.fd = wake_, .events = POLLIN, .revents = 0}};
    std::vector<int> ranks = {-1};
    bool tells = false;
    {
      const std::lock_guard lock(mutex_);
      if (is_leaving_) return;
      for (int rank = 0; rank < size_; ++rank) {
        const Peer& peer = peers_[static_cast<std::size_t>(rank)];
        if (peer.socket < 0 || peer.has_left) continue;
        sockets.push_back({.fd = peer.socket, .events = POLLIN, .revents = 0});
        ranks.push_back(rank);
      }
      tells = failure_ && !std::exchange(has_told_members_, failure_.has_value());
    }
    if (tells) {
      const std::lock_guard members_lock(members_mutex_);
      for (const Member& member : members_) member.failed();
    }
    ::poll(sockets.data(), sockets.size(), static_cast<int>(kTick.count()));
    for (std::size_t i = 1; i < sockets.size(); ++i)
      if (sockets[i].revents != 0) read_from(ranks[i]);
    {
      const std::lock_guard members_lock(members_mutex_);
      for (const Member& member : members_) member.look();
    }
    const std::lock_guard lock(mutex_);
    conclude_if_known();
  }
}

void Meeting::read_from(int peer) {
  Message message;
  const bool is_there = receive(peer, message, std::chrono::seconds(5));
  const std::lock_guard lock(mutex_);
  if (is_there)
    read(message);
  else
    lost(peer);
  changed_.notify_all();
}

void Meeting::read(const Message& message) {
  switch (message.kind) {
    case Message::kFail:
      return set_failure(error_of(message), message.from);
    case Message::kBarrier:
      return come(message.from, message.group, message.ranks, message.number);
    case Message::kGo:
      passed_[message.group] = std::max(passed_[message.group], message.number);
      return;
    case Message::kLate:
      return ask(message.group, message.group_ranks(), message.number, message.text.data());
    case Message::kAsk:
      return send(0, {.kind = Message::kTell, .from = rank_, .number = came_to(message.group, message.number < 0)});
    case Message::kTell:
      if (inquiry_) inquiry_->answers[message.from] = message.number;
      return;
    case Message::kBye:
      peers_[static_cast<std::size_t>(message.from)].has_left = true;
      return;
    default:
      return;
  }
}

void Meeting::lost(int peer) {
  peers_[static_cast<std::size_t>(peer)].has_left = true;
  set_failure(DistributedError(fmt::format("{}: {} has ended: what it said itself, or the log of its machine, says why",
                                           own_text(), text_of(peer)),
                               {peer}));
}

/// Collectives of the group that this rank has come to, or its barriers.
std::int64_t Meeting::came_to(std::int64_t group, bool is_barrier) const {
  if (is_barrier) {
    const auto found = barriers_.find(group);
    return found == barriers_.end() ? 0 : found->second;
  }
  const auto found = numbers_.find(group);
  return found == numbers_.end() ? 0 : found->second->load();
}

/// Rank 0's book of barriers.
void Meeting::come(int rank, std::int64_t group, int ranks, std::int64_t barrier) {
  std::set<int>& there = arrived_[{group, barrier}];
  there.insert(rank);
  if (static_cast<int>(there.size()) < ranks) return;
  arrived_.erase({group, barrier});
  passed_[group] = std::max(passed_[group], barrier);
  send_to_all({.kind = Message::kGo, .from = rank_, .number = barrier, .group = group});
  changed_.notify_all();
}

std::int64_t Meeting::come_to_barrier(const Group& group) {
  const std::lock_guard lock(mutex_);
  const std::int64_t barrier = ++barriers_[group.id];
  const auto ranks = static_cast<std::int32_t>(group.ranks.size());
  if (rank_ == 0)
    come(0, group.id, ranks, barrier);
  else
    send(0, {.kind = Message::kBarrier, .from = rank_, .number = barrier, .group = group.id, .ranks = ranks});
  return barrier;
}

bool Meeting::is_passed(std::int64_t group, std::int64_t barrier) const {
  const std::lock_guard lock(mutex_);
  const auto found = passed_.find(group);
  return found != passed_.end() && found->second >= barrier;
}

void Meeting::report_late(const Group& group, std::int64_t number, const std::string& what,
                          std::chrono::milliseconds timeout) {
  const std::string text =
      fmt::format("{} is not done after {:.1f} s", what, std::chrono::duration<double>(timeout).count());
  const std::lock_guard lock(mutex_);
  if (failure_ || verdict_until_) return;
  if (rank_ == 0) return ask(group.id, group.ranks, number, text);
  verdict_until_ = Clock::now() + 2 * kAnswerTime;
  late_what_ = text;
  Message late{.kind = Message::kLate, .from = rank_, .number = number, .group = group.id};
  late.set_text(fmt::format("{}: {}", own_text(), text));
  late.set_group(group.ranks, size_);
  send(0, late);
}

/// Rank 0 asks all where they are.
void Meeting::ask(std::int64_t group, std::vector<int> ranks, std::int64_t number, const std::string& what) {
  if (inquiry_ || failure_) return;
  if (group == 0 || ranks.empty()) {  // of a group that was not said all are asked for
    ranks.resize(static_cast<std::size_t>(size_));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  inquiry_ = Inquiry{.group = group,
                     .number = number,
                     .ranks = std::move(ranks),
                     .what = what,
                     .until = Clock::now() + kAnswerTime,
                     .answers = {}};
  inquiry_->answers[0] = came_to(group, number < 0);
  send_to_all({.kind = Message::kAsk, .from = 0, .number = number, .group = group});
}

/// See Note [Who is missing].
void Meeting::conclude_if_known() {
  if (failure_) return;
  if (verdict_until_ && Clock::now() > *verdict_until_)
    return set_failure(DistributedError(fmt::format("{}: {}, and rank 0 does not say who is missing: it is stopped, or "
                                                    "cannot be reached; look at its process and its network",
                                                    own_text(), late_what_),
                                        {0}));
  if (!inquiry_) return;
  const bool has_all = static_cast<int>(inquiry_->answers.size()) == size_;
  if (!has_all && Clock::now() < inquiry_->until) return;
  std::vector<int> blamed;
  std::vector<std::string> words;
  for (const int rank : inquiry_->ranks) {
    const auto answer = inquiry_->answers.find(rank);
    const bool is_silent = answer == inquiry_->answers.end();
    if (!is_silent && answer->second >= std::abs(inquiry_->number)) continue;
    blamed.push_back(rank);
    words.push_back(fmt::format("{} {}", text_of(rank), is_silent ? "does not answer" : "has not come to it"));
  }
  const std::string who =
      words.empty()
          ? "all ranks have come to it, and it does not end: NCCL_DEBUG=INFO says which network is used; raise "
            "timeout where it is only slow"
          : fmt::format("{}", fmt::join(words, "; "));
  set_failure(DistributedError(fmt::format("{}: {}", inquiry_->what, who), blamed));
}

void Meeting::fail(const DistributedError& error) {
  const std::lock_guard lock(mutex_);
  set_failure(error);
}

void Meeting::set_failure(const DistributedError& error, int told_by) {
  if (failure_) return;
  failure_ = error;
  const Message message = message_of(error, rank_);
  if (rank_ == 0)
    send_to_all(message, told_by);
  else if (told_by != 0)
    send(0, message);
  changed_.notify_all();
}

bool Meeting::has_ended(int rank) const {
  const std::lock_guard lock(mutex_);
  return peers_[static_cast<std::size_t>(rank)].has_left;
}

void Meeting::wait_for_end_of_rank_0(std::chrono::milliseconds timeout) noexcept {
  std::unique_lock lock(mutex_);
  const bool is_blamed =
      failure_ && failure_->said_by() != 0 && std::ranges::find(failure_->ranks(), 0) != failure_->ranks().end();
  if (rank_ == 0 || is_blamed || !thread_.joinable()) return;
  changed_.wait_for(lock, timeout, [this] { return peers_[0].has_left; });
}

std::optional<DistributedError> Meeting::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace tenon::nccl
