// How the ranks find each other, over TCP. Declared in meeting.h.
#include "meeting.h"

#include <tenon/core/error.h>
#include <tenon/core/process/host_name.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace tenon::nccl {
namespace {

constexpr int kUsualPort = 29500;  // PyTorch's, where nobody says one
constexpr std::chrono::milliseconds kPause{20};

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

std::string own_process() { return fmt::format("process {} on {}", ::getpid(), host_name()); }

void without_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Of both families, or of IPv4 alone on a machine that has no other; -1 with errno.
int listener_at(int port) {
  const int on = 1, off = 0;
  if (const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0); socket >= 0) {
    ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in6 here{};
    here.sin6_family = AF_INET6;
    here.sin6_port = htons(static_cast<std::uint16_t>(port));
    here.sin6_addr = in6addr_any;
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0) return socket;
    const int why = errno;
    ::close(socket);
    errno = why;
    if (why != EADDRNOTAVAIL && why != EAFNOSUPPORT) return -1;
  }
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(static_cast<std::uint16_t>(port));
  here.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0) return socket;
  const int why = errno;
  ::close(socket);
  errno = why;
  return -1;
}

}  // namespace

Meeting::Meeting(const RankEnvironment& ranks, std::chrono::milliseconds timeout)
    : rank_(ranks.rank), size_(ranks.size), timeout_(timeout), peers_(static_cast<std::size_t>(ranks.size)) {
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (size_ == 1) return;
  if (ranks.master_address.empty() && ranks.size != ranks.local_size)
    throw DistributedError(
        fmt::format("{}: the ranks are on several machines, and MASTER_ADDR does not say where rank 0 "
                    "is: set it, and MASTER_PORT, to an address that all of them reach",
                    own_text()),
        {});
  const std::string address = ranks.master_address.empty() ? "127.0.0.1" : ranks.master_address;
  const int port = ranks.master_port > 0 ? ranks.master_port : kUsualPort;
  try {
    lobby_ = std::make_unique<Lobby>(ranks);
    if (rank_ == 0)
      listen_for_all(address, port);
    else
      connect_to_first(address, port);
  } catch (...) {
    static_cast<void>(lobby_.release());  // others, which give up a little later, see that this rank had come
    for (const Peer& peer : peers_)
      if (peer.socket >= 0) ::close(peer.socket);
    ::close(wake_);
    throw;
  }
}

void Meeting::listen_for_all(const std::string& address, int port) {
  const int listener = listener_at(port);
  if (listener < 0 || ::listen(listener, size_) != 0) {
    const std::string why = std::strerror(errno);
    ::close(listener);
    throw DistributedError(
        fmt::format("{} cannot listen at {}:{}, where MASTER_ADDR and MASTER_PORT say that the ranks meet: {}; set "
                    "MASTER_PORT to a free port, the same for all ranks",
                    own_text(), address, port, why),
        {0});
  }
  const auto until = Clock::now() + timeout_;
  for (int met = 1; met < size_;) {
    pollfd waiting{.fd = listener, .events = POLLIN, .revents = 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    try {
      lobby_->look();
    } catch (...) {
      ::close(listener);
      throw;
    }
    if (left > 0) {
      ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 100)));  // again where a signal came
    } else {
      ::close(listener);
      std::vector<int> missing;
      for (int rank = 1; rank < size_; ++rank)
        if (peers_[static_cast<std::size_t>(rank)].socket < 0) missing.push_back(rank);
      throw DistributedError(
          fmt::format(
              "{}: rank{} {} did not come to {}:{} within {:.1f} s: start all ranks with the same MASTER_ADDR and "
              "MASTER_PORT, or raise timeout",
              own_text(), missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), address, port,
              std::chrono::duration<double>(timeout_).count()),
          missing);
    }
    if (waiting.revents == 0) continue;
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    without_delay(socket);
    Message hello;
    Peer stranger{.socket = socket, .process = {}};
    std::swap(peers_[0], stranger);
    const bool is_heard = receive(0, hello, std::chrono::seconds(5));
    std::swap(peers_[0], stranger);
    const bool is_rank = is_heard && hello.kind == Message::kHello && hello.from > 0 && hello.from < size_ &&
                         peers_[static_cast<std::size_t>(hello.from)].socket < 0;
    if (!is_rank) {  // somebody else's connection
      ::close(socket);
      continue;
    }
    Peer& peer = peers_[static_cast<std::size_t>(hello.from)];
    peer.socket = socket;
    peer.process = hello.text.data();
    ++met;
  }
  ::close(listener);
}

void Meeting::connect_to_first(const std::string& address, int port) {
  const auto until = Clock::now() + timeout_;
  std::string why = "no address";
  for (;;) {
    Addresses found;
    const addrinfo wanted{.ai_flags = 0,
                          .ai_family = AF_UNSPEC,
                          .ai_socktype = SOCK_STREAM,
                          .ai_protocol = 0,
                          .ai_addrlen = 0,
                          .ai_addr = nullptr,
                          .ai_canonname = nullptr,
                          .ai_next = nullptr};
    const int problem = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found.first);
    if (problem != 0) why = ::gai_strerror(problem);
    for (const addrinfo* one = found.first; one != nullptr; one = one->ai_next) {
      const int socket = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::connect(socket, one->ai_addr, one->ai_addrlen) == 0) {
        without_delay(socket);
        peers_[0].socket = socket;
        peers_[0].process = fmt::format("at {}:{}", address, port);
        Message hello{.kind = Message::kHello, .from = rank_};
        hello.set_text(own_process());
        return send(0, hello);
      }
      why = std::strerror(errno);
      ::close(socket);
    }
    lobby_->look();
    if (Clock::now() > until)
      throw DistributedError(
          fmt::format(
              "{}: rank 0 does not answer at {}:{} (MASTER_ADDR, MASTER_PORT) within {:.1f} s: {}; is it started, "
              "and is this its address?",
              own_text(), address, port, std::chrono::duration<double>(timeout_).count(), why),
          {0});
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace tenon::nccl
