// Worker: the thread that makes all MPI calls, so that operations go on while the program computes, and that sees to it
// that nobody waits for ever (Note [Ranks end together] of communicator.h).
//
//   submit() ─▶ inbox ─▶ collectives, one at a time, in order ─▶ done
//                    └─▶ sends and receives, all at once       ─▶ done
//
// Groups of ranks share the thread: each has such queues, and a communicator of MPI, of its own.
//
// When an operation is late the worker asks the others where they are. A rank whose program hangs still answers, from
// its worker; one that is stopped or dead does not. Who is to blame: Note [Who is missing] of comm/missing_ranks.h.
// Processes on this machine are watched besides: their end is seen at once.
//
// Note [The same on all ranks]: MPI does not notice that ranks come to a collective with different sizes or dtypes: it
// waits, says that something was truncated, or copies a large message beyond the end of a smaller buffer. So no rank
// begins a collective before it knows that all come to it with the same: Note [The same before it begins] of
// comm/agreement.h. That is sent when the program calls the operation, so that it is known when the one before is done,
// and takes some microseconds where there is none (bench/results/overlap.md). Where two differ all are asked what they
// have, and the error has it. What is received is measured before it is taken.
#pragma once

#include "control.h"
#include "execution.h"
#include "operation.h"
#include "peers.h"

#include <tenon/comm/agreement.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::mpi {

struct WorkerSettings {
  std::chrono::milliseconds timeout{600'000};
  Order order = Order::kAny;
  bool compares = true;  ///< Note [The same on all ranks]
};

/// Ranks that operations are of: all, or those of a communicator that was divided.
struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<int> ranks;  ///< their numbers among all, in the group's order
  int rank = 0;            ///< this one's number in it
  std::int64_t id = 0;     ///< the same on its ranks; 0: all
  std::string text;        ///< " among ranks 0, 2"; empty: all

  std::int64_t number = 0;  // under the worker's mutex: collectives that this rank came to
  bool has_left = false;    ///< this rank has closed its communicator of it
  bool has_told = false;    ///< the others of that
  std::deque<std::shared_ptr<Operation>> inbox;
  int groups_made = 0;
  std::int64_t shown = 0;  ///< collectives that the program called: their numbers in messages

  std::deque<std::shared_ptr<Operation>> waiting;  // of the worker's thread alone
  std::optional<Execution> collective;
  std::vector<Execution> messages;
  std::unique_ptr<Agreement> agreement;  ///< of collectives that wait; null: nothing is compared

  int size() const { return static_cast<int>(ranks.size()); }
  /// The collective that is under way, or the next one; null: there is none.
  const Operation* current() const;
  bool has_work() const { return collective || !messages.empty() || !waiting.empty(); }
};

class Worker {
 public:
  /// Meets the other ranks. Throws DistributedError.
  explicit Worker(const WorkerSettings& settings);
  /// Takes leave of the others, unless something failed: waits until they do so too, at most for the timeout.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const Peers& peers() const { return *peers_; }
  Group& all() { return *groups_.front(); }
  /// Throws DistributedError where something has failed before.
  std::shared_ptr<Work> submit(Group& group, const CommRequest& request, std::function<void()> at_end = {});
  /// Of members of a group, by their numbers there; every rank of it calls it. Null where there are none. Lives as long
  /// as this.
  Group* divide(Group& group, const std::vector<int>& members);
  /// No operation of the group comes from this rank any more.
  void leave(Group& group);
  void abort(std::string_view reason, ExitCode code);
  /// Whether something has failed for which that rank is to blame, as others say.
  bool blames(int rank);

 private:
  struct Answer {
    RankPosition position;
    std::optional<CollectiveSignature> signature;
    Clock::time_point heard;
  };
  struct Inquiry {
    std::shared_ptr<Operation> about;
    const Group* group = nullptr;
    Clock::time_point asked;
    std::int64_t disputed = 0;  ///< the collective that ranks came to with different things; 0: one is late
  };
  struct Leave {
    std::int64_t number = 0;  ///< the collective after which it left
    Clock::time_point heard;
  };

  void run();
  bool is_over();
  /// The groups that there are by now; under mutex_.
  void see_groups_locked();
  void take_inbox();
  bool advance_operations();
  bool advance(Group& group);
  void read_messages();
  void read(const ControlMessage& message);
  void tell_of_leaving();
  void begin_comparing(Group& group);
  void compare(Group& group);
  bool begin_collective(Group& group);
  bool end_collective(Group& group);
  void look_after(const Group& group, const Operation& operation);
  void watch_peers();
  void inquire(Inquiry inquiry);
  void conclude();
  bool has_heard_all();
  void conclude_dispute();
  RankPosition own_position();
  AwaitedOperation awaited(const Group& group, const Operation& operation) const;
  void check_left(const Group& group, const Operation& operation);
  void fail(const DistributedError& error, bool tell_others);
  void fail_everything(const DistributedError& error);
  std::pair<std::shared_ptr<Operation>, const Group*> oldest() const;
  void rest(bool has_moved);

  const WorkerSettings settings_;
  MPI_Comm control_comm_ = MPI_COMM_NULL;
  std::unique_ptr<Peers> peers_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Group>> groups_;  // from here on under mutex_; the first one is of all ranks
  std::optional<DistributedError> failure_;
  std::optional<DistributedError> to_abort_;
  bool is_leaving_ = false;
  bool has_told_ = false;  ///< a failure is on its way to the others
  std::string last_collective_ = "none";

  // Of the worker's thread alone.
  std::unique_ptr<Control> control_;
  std::vector<Group*> seen_groups_;
  std::optional<Inquiry> inquiry_;
  std::vector<std::optional<Answer>> answers_;
  std::vector<bool> has_gone_;                                   ///< by rank: it has said so
  std::map<std::pair<std::int64_t, int>, Leave> left_;           ///< by group and rank
  std::map<std::int64_t, std::vector<SignatureMessage>> early_;  ///< of groups that are not seen yet
  bool has_failed_ = false, has_said_bye_ = false;
  Clock::time_point leaving_since_{}, watched_{};
  int idle_turns_ = 0;
  std::thread thread_;
};

}  // namespace tenon::mpi
