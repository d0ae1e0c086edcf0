// Communicator: what a plugin implements so that several processes, the ranks of a run, compute together. Mechanism
// only: it moves and reduces values; which ones and when is decided above (nn/distributed).
//
//   auto ranks = distributed::init_process_group("mpi");            // runtime/process_group.h
//   auto work = ranks->all_reduce({.data = p, .count = n, .dtype = kFloat32}, ReduceOp::kSum);
//   …                                                                // the memory stays alive and untouched
//   work->wait();                                                    // now the values are there
//
// Note [Ranks end together]: nobody waits for ever. An operation that is not done after its timeout fails and names the
// ranks that did not come. A rank that cannot go on calls abort(), which makes what the others wait for fail at once,
// with its reason. After a failure every further operation of the communicator fails with the same error.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/durations.h>
#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/memory/stream_ref.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct RankEnvironment;  // rank_environment.h

/// Something went wrong between the ranks: one left, hangs, failed or does not agree with the others. The message names
/// the rank that says it, the operation and the ranks concerned.
class TENON_EXPORT DistributedError : public Error {
 public:
  DistributedError(const std::string& message, std::vector<int> ranks, ExitCode code = ExitCode::kFailed);
  ~DistributedError() override;
  /// What the rank that failed first ends with, so that a run that is launched as a whole ends with it too.
  ExitCode exit_code() const noexcept override;
  /// The ranks that are to blame, as far as they are known; sorted. Numbers of the run's ranks, whichever group of them
  /// the operation was of.
  const std::vector<int>& ranks() const noexcept { return ranks_; }
  /// The rank whose words they are, where another one heard them; -1: this one's own.
  int said_by() const noexcept { return said_by_; }
  void set_said_by(int rank) noexcept { said_by_ = rank; }

 private:
  std::vector<int> ranks_;
  ExitCode code_;
  int said_by_ = -1;
};

/// How values of all ranks become one. On booleans sum and max are "or", product and min are "and".
enum class ReduceOp : std::uint8_t { kSum, kProduct, kMin, kMax };
/// "sum", "product", "min", "max".
TENON_API std::string_view name_of(ReduceOp op);

enum class CommKind : std::uint8_t { kAllReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kReceive, kBarrier };
inline constexpr int kCommKindCount = 7;
/// "all_reduce", "broadcast", … .
TENON_API std::string_view name_of(CommKind kind);

/// Elements one behind the other.
struct CommBuffer {
  void* data = nullptr;
  std::size_t count = 0;  ///< elements
  Dtype dtype = Dtype::kFloat32;
};

struct CommOptions {
  std::chrono::milliseconds timeout{0};  ///< 0: the communicator's own
  StreamRef stream{};                    ///< of the buffers' device, where the communicator works on one
};

/// One operation as an implementation gets it: the arguments are checked by then.
struct CommRequest {
  CommKind kind = CommKind::kBarrier;
  void* output = nullptr;       ///< where the result goes; may be the input
  const void* input = nullptr;  ///< what this rank brings along
  std::size_t count = 0;        ///< of all_gather the input's elements, of reduce_scatter the output's
  Dtype dtype = Dtype::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int peer = 0;  ///< broadcast: whose values; send, receive: the other rank
  int tag = 0;   ///< send, receive
  CommOptions options;
};

/// An operation under way, which goes on beside the program: torch.distributed's with async_op=True. Until it is done
/// or has failed its buffers stay alive, what it reads is not written, and what it writes is neither read nor written:
/// before wait() has returned, an output may hold the old values, the new ones, or some of both. So every Work is
/// waited for, in any order; one that is dropped goes on, and what goes wrong with it is said by the next operation.
class TENON_EXPORT Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work();

  /// Whether it is done or has failed; asks only.
  virtual bool is_completed() = 0;
  /// Waits until it is done, no longer than `timeout` (0: than the operation's own, CommOptions::timeout, or else that
  /// of the communicator). When it returns the output has its values: for the host, and for what is queued on
  /// CommOptions::stream from then on. Throws DistributedError that names the ranks to blame where it failed, and one
  /// without where it is not done by then: it is still under way, and wait() may be called again, from any thread.
  virtual void wait(std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) = 0;
  /// How long it took from its turn to its end; 0 before.
  virtual double seconds() const;
};

/// What went through a communicator: counted here, for every implementation.
struct CommStats {
  std::int64_t calls[kCommKindCount] = {};  ///< by CommKind
  std::int64_t bytes[kCommKindCount] = {};  ///< of this rank's input, of receive the output
  std::int64_t calls_of(CommKind kind) const { return calls[static_cast<int>(kind)]; }
  std::int64_t bytes_of(CommKind kind) const { return bytes[static_cast<int>(kind)]; }
};

/// The ranks of a run, seen from one of them. Operations of all ranks (all_reduce, broadcast, all_gather,
/// reduce_scatter, barrier) are called by every rank in the same order, with the same sizes and dtypes. Each begins the
/// operation and returns at once: its result is there once wait() of the Work has returned. One thread at a time.
class TENON_EXPORT Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator();

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The kind of device whose memory it takes; empty: memory that the host can reach.
  virtual std::string device_kind() const;

  /// Every rank's `buffer` becomes the reduction of all of them. Throws Error for a null pointer with elements behind
  /// it.
  [[nodiscard]] TENON_API std::shared_ptr<Work> all_reduce(const CommBuffer& buffer, ReduceOp op,
                                                           const CommOptions& options = {});
  /// Every rank's `buffer` becomes that of `root`. Throws Error for a root that is none of the ranks.
  [[nodiscard]] TENON_API std::shared_ptr<Work> broadcast(const CommBuffer& buffer, int root,
                                                          const CommOptions& options = {});
  /// The inputs of all ranks, in the order of ranks. Throws Error unless `output` has size() times as many elements, of
  /// the same dtype.
  [[nodiscard]] TENON_API std::shared_ptr<Work> all_gather(const CommBuffer& output, const CommBuffer& input,
                                                           const CommOptions& options = {});
  /// This rank's part, in the order of ranks, of the reduction of all inputs. Throws Error unless `input` has size()
  /// times as many elements, of the same dtype.
  [[nodiscard]] TENON_API std::shared_ptr<Work> reduce_scatter(const CommBuffer& output, const CommBuffer& input,
                                                               ReduceOp op, const CommOptions& options = {});
  /// To one rank, which receives it with the same tag (from 0). Throws Error for a rank that is none, or is this one.
  [[nodiscard]] TENON_API std::shared_ptr<Work> send(const CommBuffer& buffer, int to, int tag = 0,
                                                     const CommOptions& options = {});
  /// As many elements as the rank `from` sends with that tag. Throws Error as send() does.
  [[nodiscard]] TENON_API std::shared_ptr<Work> receive(const CommBuffer& buffer, int from, int tag = 0,
                                                        const CommOptions& options = {});
  /// Done once every rank has come to it.
  [[nodiscard]] TENON_API std::shared_ptr<Work> barrier(const CommOptions& options = {});

  /// The ranks that give the same `color`, as a communicator of their own: in the order of their keys, where these are
  /// equal of their ranks (MPI_Comm_split, ncclCommSplit). Every rank calls it, as an operation of all ranks; one that
  /// gives a negative color gets null. Both may be used side by side, each in the same order on its ranks. What fails
  /// in one fails in all: Note [Ranks end together].
  [[nodiscard]] TENON_API std::shared_ptr<Communicator> split(int color, int key = 0);
  /// The same where every rank knows its group: `members` are ranks of this one in their new order, this one among
  /// them, or none, which gives null. Every rank calls it, members of a group with the same list. Throws Error for
  /// numbers that are no ranks, twice the same, and a list without this one.
  [[nodiscard]] TENON_API std::shared_ptr<Communicator> new_group(const std::vector<int>& members);

  /// A barrier that says who is missing: waits, and throws DistributedError with the ranks that have not come to it
  /// within `timeout`. On every rank that came, so that all end.
  virtual void monitored_barrier(std::chrono::milliseconds timeout) = 0;
  /// This rank cannot go on: what other ranks wait for fails with `reason` and `code`, see Note [Ranks end together].
  /// Returns within a bounded time, whether or not they could be told: a launcher ends all ranks when this one ends, so
  /// that it waits half a minute for rank 0, which writes the results, unless that one is to blame. Nothing happens the
  /// second time.
  virtual void abort(std::string_view reason, ExitCode code = ExitCode::kFailed) noexcept = 0;

  /// Whether that rank's process is known to have ended; false of one that cannot be seen from here.
  virtual bool has_ended(int rank) const;

  /// Since the beginning.
  const CommStats& stats() const noexcept { return stats_; }

 protected:
  /// Begins the operation and returns at once. Throws DistributedError after a failure.
  virtual std::shared_ptr<Work> start(const CommRequest& request) = 0;
  /// A communicator of these ranks, which have been checked; null where there are none. Throws Error where it cannot be
  /// divided, which is what this one does.
  virtual std::shared_ptr<Communicator> make_group(const std::vector<int>& members);

 private:
  std::shared_ptr<Work> counted(const CommRequest& request, std::size_t elements);
  [[noreturn]] void refuse(std::string_view what, const std::string& why) const;
  std::string no_rank(int rank) const;
  void check_buffer(CommKind kind, const CommBuffer& buffer) const;
  void check_shares(CommKind kind, const CommBuffer& whole, const CommBuffer& share) const;
  void check_peer(CommKind kind, int peer, int tag) const;

  CommStats stats_;
};

struct CommunicatorContext {
  const RankEnvironment& ranks;  ///< what the launcher says
  const Options& options;        ///< validated against the schema; valid during the call
};

/// One communicator that a plugin supplies.
struct CommunicatorInfo {
  std::string name;     ///< as in TOML: lower case, digits, '_'
  std::string summary;  ///< one line
  OptionSchema options;
  /// Meets the other ranks: every rank of the run calls it.
  std::function<std::unique_ptr<Communicator>(const CommunicatorContext&)> create;
  bool needs_device = false;  ///< it moves values on a device alone: ranks cannot meet where there is none
};

}  // namespace tenon
