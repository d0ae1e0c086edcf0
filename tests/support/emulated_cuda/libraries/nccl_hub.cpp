// A thread that answers when the last rank has come.
#include "support/emulated_cuda/libraries/nccl_hub.h"

#include "support/emulated_cuda/libraries/operands.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

namespace tenon::emulated_cuda::nccl {
namespace {

bool send_all(int socket, const void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t sent = ::send(socket, static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL);
    if (sent <= 0 && errno != EINTR) return false;
    done += sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::recv(socket, static_cast<char*>(data) + done, bytes - done, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return true;
}

void without_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

template <class T>
T combined(int reduction, T a, T b, int ranks, bool is_last) {
  switch (reduction) {
    case 1:
      return static_cast<T>(a * b);
    case 2:
      return std::max(a, b);
    case 3:
      return std::min(a, b);
    case 4: {
      const T sum = static_cast<T>(a + b);
      return is_last ? static_cast<T>(sum / static_cast<T>(ranks)) : sum;
    }
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
std::vector<unsigned char> reduced_as(int reduction, const std::vector<std::vector<unsigned char>>& of_ranks) {
  std::vector<unsigned char> result = of_ranks.front();
  const std::size_t count = result.size() / sizeof(T);
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    for (std::size_t i = 0; i < count; ++i) {
      T a, b;
      std::memcpy(&a, result.data() + i * sizeof(T), sizeof(T));
      std::memcpy(&b, of_ranks[rank].data() + i * sizeof(T), sizeof(T));
      a = combined<T>(reduction, a, b, static_cast<int>(of_ranks.size()), rank + 1 == of_ranks.size());
      std::memcpy(result.data() + i * sizeof(T), &a, sizeof(T));
    }
  }
  return result;
}

/// 16 bits: each sum rounds, as a ring's would.
std::vector<unsigned char> reduced_half(Element element, int reduction,
                                        const std::vector<std::vector<unsigned char>>& of_ranks) {
  std::vector<unsigned char> result = of_ranks.front();
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank)
    for (std::size_t at = 0; at < result.size(); at += 2)
      store(element, result.data() + at,
            combined<double>(reduction, load(element, result.data() + at), load(element, of_ranks[rank].data() + at),
                             static_cast<int>(of_ranks.size()), rank + 1 == of_ranks.size()));
  return result;
}

class Hub {
 public:
  explicit Hub(int listener) : listener_(listener) {}
  ~Hub() {
    for (const int socket : sockets_)
      if (socket >= 0) ::close(socket);
    if (listener_ >= 0) ::close(listener_);
  }

  void run() {
    if (!meet()) return;
    while (std::ranges::any_of(sockets_, [](int socket) { return socket >= 0; })) {
      std::vector<pollfd> ready;
      for (const int socket : sockets_) ready.push_back({.fd = socket, .events = POLLIN, .revents = 0});
      ::poll(ready.data(), ready.size(), -1);
      for (std::size_t rank = 0; rank < ready.size(); ++rank) {
        if (ready[rank].revents == 0 || sockets_[rank] < 0) continue;
        if (!take(rank)) ::close(std::exchange(sockets_[rank], -1));
      }
    }
  }

 private:
  struct Collective {
    std::map<std::size_t, Described> calls;
    std::vector<std::vector<unsigned char>> inputs;
  };

  bool meet() {
    for (std::size_t met = 0; sockets_.empty() || met < sockets_.size(); ++met) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) return false;
      without_delay(socket);
      Frame join;
      std::vector<unsigned char> none;
      if (!receive_frame(socket, join, none)) return false;
      if (sockets_.empty()) sockets_.assign(static_cast<std::size_t>(join.ranks), -1);
      if (static_cast<std::size_t>(join.ranks) != sockets_.size() || sockets_[static_cast<std::size_t>(join.from)] >= 0)
        return tell_all("ncclCommInitRankConfig: rank " + std::to_string(join.from) + " of " +
                        std::to_string(join.ranks) + " came to a communicator of " + std::to_string(sockets_.size()) +
                        " ranks, or came twice");
      sockets_[static_cast<std::size_t>(join.from)] = socket;
    }
    for (const int socket : sockets_) send_frame(socket, {.kind = Frame::kJoined}, nullptr);
    return true;
  }

  bool tell_all(const std::string& sentence) {
    for (const int socket : sockets_)
      if (socket >= 0) send_frame(socket, {.kind = Frame::kWrong, .bytes = sentence.size()}, sentence.data());
    return false;
  }

  bool take(std::size_t rank) {
    Frame frame;
    std::vector<unsigned char> bytes;
    if (!receive_frame(sockets_[rank], frame, bytes)) return false;
    if (frame.kind == Frame::kMessage) {
      send_frame(sockets_[static_cast<std::size_t>(frame.to)], frame, bytes.data());
      return true;
    }
    Collective& collective = collectives_[frame.number];
    for (const auto& [other, call] : collective.calls)
      if (call != frame.call)
        return tell_all("call " + std::to_string(frame.number) + " of the communicator is " + call.text() +
                        " on rank " + std::to_string(other) + ", and " + frame.call.text() + " on rank " +
                        std::to_string(rank));
    collective.calls[rank] = frame.call;
    collective.inputs.resize(sockets_.size());
    collective.inputs[rank] = std::move(bytes);
    if (collective.calls.size() == sockets_.size()) {
      answer(frame.number, collective);
      collectives_.erase(frame.number);
    }
    return true;
  }

  void answer(std::uint64_t number, const Collective& collective) {
    const Described& call = collective.calls.begin()->second;
    std::vector<unsigned char> whole;
    switch (call.kind) {
      case CallKind::kBroadcast:
        whole = collective.inputs[static_cast<std::size_t>(call.root)];
        break;
      case CallKind::kAllGather:
        for (const auto& input : collective.inputs) whole.insert(whole.end(), input.begin(), input.end());
        break;
      default:
        whole = reduced(call.type, call.reduction, collective.inputs);
    }
    const bool is_cut = call.kind == CallKind::kReduceScatter;
    const std::size_t part = is_cut ? whole.size() / sockets_.size() : whole.size();
    for (std::size_t rank = 0; rank < sockets_.size(); ++rank)
      if (sockets_[rank] >= 0)
        send_frame(sockets_[rank], {.kind = Frame::kResult, .number = number, .bytes = part},
                   whole.data() + (is_cut ? rank * part : 0));
  }

  int listener_;
  std::vector<int> sockets_;
  std::map<std::uint64_t, Collective> collectives_;
};

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

const char* name_of(CallKind kind) {
  static constexpr const char* kNames[] = {"ncclAllReduce",     "ncclBroadcast", "ncclAllGather",
                                           "ncclReduceScatter", "ncclSend",      "ncclRecv"};
  return kNames[static_cast<int>(kind)];
}

std::size_t bytes_of(int data_type) {
  static constexpr std::size_t kBytes[kDataTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[data_type];
}

const char* name_of_type(int data_type) {
  static constexpr const char* kNames[kDataTypes] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                                     "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                                     "ncclFloat64", "ncclBfloat16"};
  return kNames[data_type];
}

std::string Described::text() const {
  std::string words = std::string(name_of(kind)) + " of " + std::to_string(count) + " " + name_of_type(type);
  if (kind == CallKind::kBroadcast) words += " from root " + std::to_string(root);
  if (reduction != 0) words += " with reduction " + std::to_string(reduction);
  return words;
}

bool send_frame(int socket, const Frame& frame, const void* bytes) {
  return send_all(socket, &frame, sizeof frame) && send_all(socket, bytes, frame.bytes);
}

bool receive_frame(int socket, Frame& frame, std::vector<unsigned char>& bytes) {
  if (!receive_all(socket, &frame, sizeof frame)) return false;
  bytes.resize(frame.bytes);
  return receive_all(socket, bytes.data(), bytes.size());
}

int start_hub() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(listener, 64) != 0) return 0;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  std::thread([listener] { Hub(listener).run(); }).detach();
  return ntohs(address.sin_port);
}

int connect_to_hub(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    without_delay(socket);
    return socket;
  }
  ::close(socket);
  return -1;
}

std::vector<unsigned char> reduced(int type, int reduction, const std::vector<std::vector<unsigned char>>& of_ranks) {
  switch (type) {
    case 0:
      return reduced_as<std::int8_t>(reduction, of_ranks);
    case 1:
      return reduced_as<std::uint8_t>(reduction, of_ranks);
    case 2:
      return reduced_as<std::int32_t>(reduction, of_ranks);
    case 3:
      return reduced_as<std::uint32_t>(reduction, of_ranks);
    case 4:
      return reduced_as<std::int64_t>(reduction, of_ranks);
    case 5:
      return reduced_as<std::uint64_t>(reduction, of_ranks);
    case 6:
      return reduced_half(Element::kF16, reduction, of_ranks);
    case 7:
      return reduced_as<float>(reduction, of_ranks);
    case 8:
      return reduced_as<double>(reduction, of_ranks);
    default:
      return reduced_half(Element::kBF16, reduction, of_ranks);
  }
}

}  // namespace tenon::emulated_cuda::nccl
