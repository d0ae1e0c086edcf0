// Processes on this machine are watched by descriptors of them (pidfd_open), which know the end of one at once.
#include "peers.h"

#include "check.h"
#include "operation.h"

#include <tenon/comm/missing_ranks.h>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <climits>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>

namespace tenon::mpi {
namespace {

struct Card {
  int process;
  char host[128];
  char machine[192];  ///< equal for processes that see each other
  char options[96];
};

/// The running kernel and its table of processes: containers of one machine do not see each other's.
std::string machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
  return boot + (length > 0 ? std::string(space.data(), static_cast<std::size_t>(length)) : std::string());
}

Card own_card(const std::string& options) {
  Card card{};
  std::strncpy(card.options, options.c_str(), sizeof card.options - 1);
  card.process = static_cast<int>(::getpid());
  ::gethostname(card.host, sizeof card.host - 1);
  const std::string machine = machine_id();
  std::strncpy(card.machine, machine.c_str(), sizeof card.machine - 1);
  return card;
}

bool is_readable(int descriptor, int milliseconds) {
  pollfd waiting{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, milliseconds) > 0;
}

}  // namespace

void check(int code, const char* what, const char* file, int line) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> words{};
  int length = 0;
  MPI_Error_string(code, words.data(), &length);
  throw DistributedError(fmt::format("{} failed: {} ({}:{})", what,
                                     std::string_view(words.data(), static_cast<std::size_t>(length)), file, line),
                         {});
}

void complete(MPI_Request& request, const Arrival& arrival, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (int is_done = 0;;) {
    check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done) return;
    arrival.look();
    if (Clock::now() > deadline) throw arrival.late("MPI has begun, and a message of not every rank has come", timeout);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Peers::Peers(MPI_Comm comm, const Arrival& arrival, std::chrono::milliseconds timeout, const std::string& options) {
  int size = 0;
  check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const Card own = own_card(options);
  std::vector<Card> cards(static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&own, sizeof(Card), MPI_BYTE, cards.data(), sizeof(Card), MPI_BYTE, comm, &request),
        "MPI_Iallgather");
  complete(request, arrival, timeout);
  std::map<int, std::string> by_rank;
  for (int rank = 0; rank < size; ++rank) by_rank[rank] = cards[static_cast<std::size_t>(rank)].options;
  if (const RankCamps camps = camps_of(by_rank); camps.count > 1)
    throw DistributedError(
        fmt::format("the communicator mpi is not the same on all ranks: {}: give every rank the same options",
                    camps.text),
        camps.fewer, ExitCode::kUsage);
  for (int rank = 0; rank < size; ++rank) {
    const Card& card = cards[static_cast<std::size_t>(rank)];
    Peer peer{.process = card.process, .host = card.host};
    if (rank != rank_ && std::strcmp(card.machine, own.machine) == 0)
      peer.descriptor = static_cast<int>(::syscall(SYS_pidfd_open, card.process, 0));  // Linux 5.3; else -1: unseen
    peers_.push_back(std::move(peer));
  }
}

Peers::~Peers() {
  for (const Peer& peer : peers_)
    if (peer.descriptor >= 0) ::close(peer.descriptor);
}

bool Peers::has_ended(int rank) const {
  const int descriptor = peers_[static_cast<std::size_t>(rank)].descriptor;
  return descriptor >= 0 && is_readable(descriptor, 0);
}

std::string Peers::text(int rank) const {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} (process {} on {})", rank, peer.process, peer.host);
}

std::string Peers::own_text() const { return fmt::format("rank {} of {}", rank_, size()); }

void Peers::wait_for_end(int rank, std::chrono::milliseconds timeout) const {
  const int descriptor = peers_[static_cast<std::size_t>(rank)].descriptor;
  if (descriptor >= 0) is_readable(descriptor, static_cast<int>(timeout.count()));
}

}  // namespace tenon::mpi
