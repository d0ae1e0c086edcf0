// Meeting: where the ranks meet before NCCL can, and how they learn of each other's failures afterwards. Rank 0 listens
// at MASTER_ADDR:MASTER_PORT, the others connect; these connections stay, and a thread of each rank reads them.
//
//   rank 1 ──┐
//   rank 2 ──┼── rank 0: hands out NCCL's id, knows who is there, passes on why somebody cannot go on
//   rank 3 ──┘
//
// Note [Who is missing]: when an operation is late its rank tells rank 0, which asks all where they are. A rank whose
// program hangs still answers, from its thread, with the number of collectives that it came to; one that is stopped
// does not. Those that have not come are named. The end of a process closes its connection, which is seen at once.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/comm/lobby.h>
#include <tenon/comm/rank_environment.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::nccl {

using Clock = std::chrono::steady_clock;

struct Message {
  enum Kind : std::int32_t {
    kHello,    ///< `from`, and in text its process
    kId,       ///< of NCCL, in data
    kFail,     ///< text, code, blamed
    kBarrier,  ///< `from` has come to the barrier `number`
    kGo,       ///< all have
    kLate,     ///< the collective `number`, which is `text`, does not end; in data the ranks of its group
    kAsk,      ///< where are you?
    kTell,     ///< at `number`
    kBye,      ///< `from` has closed its communicator
  };
  std::int32_t kind = kHello;
  std::int32_t from = 0;
  std::int32_t code = 0;
  std::int32_t blamed_count = 0;
  std::int32_t said_by = 0;  ///< of kFail, which rank 0 passes on
  std::int64_t number = 0;
  std::int64_t group = 0;                 ///< whose number it is
  std::int32_t ranks = 0;                 ///< in that group
  std::array<std::int32_t, 32> blamed{};  ///< of kFail
  std::array<char, 128> data{};
  std::array<char, 1024> text{};

  void set_text(std::string_view words);
  /// A bit of `data` for each of the run's ranks. Of a run with more ranks than bits none are said.
  void set_group(const std::vector<int>& members, int all_ranks);
  std::vector<int> group_ranks() const;
};

class Meeting {
 public:
  /// A communicator of these ranks, or of some of them.
  struct Member {
    std::int64_t group = 0;                   ///< the same on its ranks; 0: of all
    const std::atomic<std::int64_t>* number;  ///< of collectives that this rank has come to
    std::function<void()> failed;             ///< failure() is there; called once, from the thread
    std::function<void()> look;               ///< called now and then, from the thread
  };
  /// Whose collective or barrier is meant.
  struct Group {
    std::int64_t id = 0;     ///< 0: all ranks
    std::vector<int> ranks;  ///< their numbers among all
    std::string text;        ///< " among ranks 0, 2"; empty: all
  };
  /// Meets the other ranks. Throws DistributedError that names those who did not come within `timeout`.
  Meeting(const RankEnvironment& ranks, std::chrono::milliseconds timeout);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// "rank 2 of 4".
  std::string own_text() const;

  /// Rank 0's `bytes`, on every rank.
  std::array<char, 128> share(const std::array<char, 128>& bytes);
  /// The first one begins to read what the others say.
  void add(const Member& member);
  /// None of its functions is called any more. The last one takes leave, unless something failed: waits until the
  /// others do so too, no longer than the timeout.
  void remove(std::int64_t group);

  /// Whether that rank has ended, or taken leave: of other ranks than 0 rank 0 alone knows.
  bool has_ended(int rank) const;
  /// After a failure, unless rank 0 is to blame.
  void wait_for_end_of_rank_0(std::chrono::milliseconds timeout) noexcept;

  std::optional<DistributedError> failure() const;
  /// This rank cannot go on; the others are told.
  void fail(const DistributedError& error);
  /// This rank has come to its next barrier in the group; the number of it.
  std::int64_t come_to_barrier(const Group& group);
  bool is_passed(std::int64_t group, std::int64_t barrier) const;
  /// Asks for who is missing at a collective, or (negative number) a barrier; ends in a failure.
  void report_late(const Group& group, std::int64_t number, const std::string& what, std::chrono::milliseconds timeout);

 private:
  struct Peer {
    int socket = -1;
    std::string process;
    bool has_left = false;
  };
  struct Inquiry {
    std::int64_t group = 0, number = 0;
    std::vector<int> ranks;  ///< that are to come to it
    std::string what;
    Clock::time_point until{};
    std::map<int, std::int64_t> answers;
  };
  void listen_for_all(const std::string& address, int port);
  void connect_to_first(const std::string& address, int port);
  void send(int to, const Message& message);
  void send_to_all(const Message& message, int but = -1);
  bool receive(int from, Message& message, std::chrono::milliseconds timeout);
  void run();
  void read_from(int peer);
  void read(const Message& message);
  void lost(int peer);
  void come(int rank, std::int64_t group, int ranks, std::int64_t barrier);
  void ask(std::int64_t group, std::vector<int> ranks, std::int64_t number, const std::string& what);
  std::int64_t came_to(std::int64_t group, bool is_barrier) const;
  void leave();
  void conclude_if_known();
  void set_failure(const DistributedError& error, int told_by = -1);
  std::string text_of(int rank) const;

  const int rank_, size_;
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<Lobby> lobby_;  ///< of this rank as long as the others may not have met
  std::vector<Peer> peers_;       ///< by rank; of other ranks than 0 the first alone is connected
  int wake_ = -1;                 ///< ends the thread's wait

  std::mutex members_mutex_;     ///< before mutex_, where both are taken
  std::vector<Member> members_;  // under members_mutex_

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<DistributedError> failure_;  // from here on under mutex_
  bool has_told_members_ = false;
  std::map<std::int64_t, const std::atomic<std::int64_t>*> numbers_;        ///< by group
  std::map<std::int64_t, std::int64_t> barriers_, passed_;                  ///< by group
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<int>> arrived_;  ///< rank 0's, by group and barrier
  std::optional<Inquiry> inquiry_;                                          ///< rank 0's
  std::optional<Clock::time_point> verdict_until_;  ///< others: when rank 0 has to have answered
  std::string late_what_;
  bool is_leaving_ = false;
  std::thread thread_;
};

}  // namespace tenon::nccl
