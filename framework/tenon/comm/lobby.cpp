// Datagrams between processes of one user.
#include <tenon/comm/lobby.h>

#include <tenon/comm/communicator.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace tenon {
namespace {

constexpr std::size_t kMostText = 4000;
constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::chrono::milliseconds kCountEvery{200};
constexpr std::chrono::milliseconds kSure{100};
constexpr std::chrono::milliseconds kSureOfOneNeverSeen{2000};  ///< a launcher may still be starting it

struct Datagram {
  std::int32_t rank = 0, code = 0, missing_count = 0;
  std::int32_t missing[64] = {};
  char text[kMostText + 1] = {};
};

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

/// In the abstract namespace, where a name begins with '\0': no file is left.
std::optional<Address> address_of(const RankEnvironment& ranks, int rank) {
  if (ranks.launch.empty()) return std::nullopt;
  const std::string name = fmt::format("tenon-lobby-{}-{}-{}", ::getuid(), ranks.launch, rank);
  Address address;
  address.name.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.name.sun_path) return std::nullopt;
  std::memcpy(address.name.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

/// A socket whose other end is where that rank waits; -1: it does not, here.
int connected(const RankEnvironment& ranks, int rank) {
  const auto address = address_of(ranks, rank);
  if (!address) return -1;
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket >= 0 && ::connect(socket, reinterpret_cast<const sockaddr*>(&address->name), address->length) == 0)
    return socket;
  if (socket >= 0) ::close(socket);
  return -1;
}

/// The other ranks that wait on this machine.
std::set<int> waiting_ranks(const RankEnvironment& own) {
  std::set<int> ranks;
  for (int rank = 0; rank < own.size; ++rank) {
    const int socket = rank == own.rank ? -1 : connected(own, rank);
    if (socket < 0) continue;
    ::close(socket);
    ranks.insert(rank);
  }
  return ranks;
}

/// Whether the kernel says that it was a process of this user.
bool is_own_users(msghdr& message) {
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(one), sizeof sender);
    return sender.uid == ::getuid();
  }
  return false;
}

}  // namespace

Lobby::Lobby(RankEnvironment own, std::function<std::set<int>(const RankEnvironment&)> processes)
    : own_(std::move(own)), processes_(std::move(processes)) {
  const auto address = address_of(own_, own_.rank);
  if (!address) return;
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(socket_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<const sockaddr*>(&address->name), address->length) == 0) return;
  ::close(socket_);
  socket_ = -1;
}

Lobby::~Lobby() {
  if (socket_ >= 0) ::close(socket_);
}

std::optional<LobbyWords> Lobby::heard() const {
  if (socket_ < 0) return std::nullopt;
  Datagram datagram;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec part{.iov_base = &datagram, .iov_len = sizeof datagram};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = ::recvmsg(socket_, &message, 0);
  if (length != static_cast<ssize_t>(sizeof datagram) || !is_own_users(message)) return std::nullopt;
  datagram.text[kMostText] = '\0';
  const auto count = std::clamp<std::ptrdiff_t>(datagram.missing_count, 0, std::ssize(datagram.missing));
  return LobbyWords{.rank = datagram.rank,
                    .code = static_cast<ExitCode>(datagram.code),
                    .text = datagram.text,
                    .missing = {datagram.missing, datagram.missing + count}};
}

bool Lobby::tell(const RankEnvironment& own, int to, const LobbyWords& words) {
  const int socket = connected(own, to);
  if (socket < 0) return false;
  Datagram datagram{.rank = words.rank, .code = static_cast<std::int32_t>(words.code)};
  std::memcpy(datagram.text, words.text.data(), std::min(words.text.size(), kMostText));
  for (const int missing : words.missing)
    if (datagram.missing_count < std::ssize(datagram.missing)) datagram.missing[datagram.missing_count++] = missing;
  const bool is_sent = ::send(socket, &datagram, sizeof datagram, MSG_NOSIGNAL) == sizeof datagram;
  ::close(socket);
  return is_sent;
}

std::optional<LobbyWords> Lobby::lost_of(int rank, bool was_here, Clock::time_point now) {
  const auto since = gone_since_.try_emplace(rank, now).first->second;
  const bool was_seen = was_here || started_.contains(rank);
  if (now < since + (was_seen ? kSure : kSureOfOneNeverSeen)) return std::nullopt;
  const char* const what = was_here ? "while the ranks met: what it printed, or the log of its machine, says why"
                                    : "before the ranks had met, and has said nothing: is it another program, or does "
                                      "its command differ from that of the others?";
  return LobbyWords{.rank = rank, .text = fmt::format("rank {} of {} has ended {}", rank, own_.size, what)};
}

// One that was here and is not has ended: nobody leaves before all have met. Of one that was never here that is known
// where every rank is of this machine, and its process would be seen.
std::optional<LobbyWords> Lobby::lost(Clock::time_point now) {
  if (socket_ < 0 || now < looked_ + kLookEvery) return std::nullopt;
  looked_ = now;
  if (now >= counted_ + kCountEvery) {
    counted_ = now;
    alive_ = own_.size == own_.local_size ? processes_(own_) : std::set<int>();
    started_.insert(alive_.begin(), alive_.end());
  }
  const std::set<int> here = waiting_ranks(own_);
  for (int rank = 0; rank < own_.size; ++rank) {
    const bool is_known = seen_.contains(rank) || (!alive_.empty() && !alive_.contains(rank));
    if (rank == own_.rank || here.contains(rank) || !is_known) {
      gone_since_.erase(rank);
      if (here.contains(rank)) seen_.insert(rank);
    } else if (auto words = lost_of(rank, seen_.contains(rank), now)) {
      return words;
    }
  }
  return std::nullopt;
}

/// Of a rank that said of itself that it cannot come, or of others that have not.
static DistributedError error_of(const LobbyWords& words) {
  if (!words.missing.empty()) return {words.text, words.missing, words.code};
  DistributedError error(words.text, {words.rank}, words.code);
  error.set_said_by(words.rank);
  return error;
}

void Lobby::look() {
  if (const auto words = heard()) throw error_of(*words);
  if (const auto words = lost()) throw DistributedError(words->text, {words->rank}, words->code);
}

std::vector<int> Lobby::missing_ranks() const {
  std::vector<int> missing;
  if (socket_ < 0 || own_.size != own_.local_size) return missing;
  const std::set<int> here = waiting_ranks(own_);
  for (int rank = 0; rank < own_.size; ++rank)
    if (rank != own_.rank && !here.contains(rank)) missing.push_back(rank);
  return missing;
}

std::string Lobby::missing() const {
  const std::set<int> waiting = waiting_ranks(own_);
  std::vector<int> here, others;
  for (int rank = 0; rank < own_.size; ++rank)
    (rank == own_.rank || waiting.contains(rank) ? here : others).push_back(rank);
  const std::string they = fmt::format("rank{} {}", others.size() == 1 ? "" : "s", fmt::join(others, ", "));
  const bool are_all_here = own_.size == own_.local_size;
  if (socket_ < 0) return "one of them hangs before it, or was not started";
  if (others.empty()) return "all of them have come to it, and one hangs in it: it is stopped, or the network is slow";
  if (are_all_here)
    return fmt::format("{} {} not come to it: {} before it, or {} not started", they,
                       others.size() == 1 ? "has" : "have", others.size() == 1 ? "it hangs" : "they hang",
                       others.size() == 1 ? "was" : "were");
  const auto away = own_.local_size - static_cast<int>(here.size());
  if (away > 0)
    return fmt::format(
        "{} of the {} ranks of this machine {} not come to it, one or more of {}: they hang before it, or "
        "were not started",
        away, own_.local_size, away == 1 ? "has" : "have", they);
  return fmt::format("all ranks of this machine have come to it: look at the machines of {}", they);
}

}  // namespace tenon
