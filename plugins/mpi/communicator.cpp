// What MPI's communicator does besides handing requests to its worker.
#include "communicator.h"

#include "lifetime.h"

#include <tenon/comm/rank_environment.h>

#include <fmt/format.h>

#include <atomic>

namespace tenon::mpi {
namespace {

// mpirun ends what is left a second after a rank has ended badly. Rank 0 writes the results: it goes first.
constexpr std::chrono::milliseconds kTimeOfRank0{30'000};

/// One worker at a time: two would need an MPI that any number of threads may call at once.
std::atomic<bool>& is_taken() {
  static std::atomic<bool> value = false;
  return value;
}

}  // namespace

OptionSchema MpiCommunicator::options() {
  return {
      OptionSpec::real("timeout", 600.0,
                       "seconds after which an operation fails that not every rank has come to, and names them")
          .range(0.1, 1e6),
      OptionSpec::boolean("check", true,
                          "that all ranks come to a collective with the same size and dtype, before it begins: some "
                          "3 microseconds each; without it MPI may write beyond a smaller buffer"),
      OptionSpec::text("order", "any",
                       "of a reduction: any (MPI's algorithm), rank (rank 0 + rank 1 + …, the same bits always)")
          .one_of({"any", "rank"})};
}

MpiCommunicator::MpiCommunicator(const CommunicatorContext& context) {
  if (is_taken().exchange(true))
    throw DistributedError("this process has a communicator over MPI already: close it before another one is made", {});
  const double seconds = context.options.real("timeout");
  try {
    worker_ = {new Worker({.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds)),
                           .order = context.options.text("order") == "rank" ? Order::kRank : Order::kAny,
                           .compares = context.options.boolean("check")}),
               [](Worker* worker) {
                 delete worker;
                 is_taken() = false;
               }};
  } catch (...) {
    is_taken() = false;
    leave_mpi_open();
    throw;
  }
  group_ = &worker_->all();
  if (context.ranks.size != size())
    throw DistributedError(
        fmt::format("{} says that this is rank {} of {}, and MPI knows {} process{}: launch it with mpirun, or under "
                    "Slurm with srun --mpi=pmix",
                    context.ranks.launcher.empty() ? "the environment" : context.ranks.launcher, context.ranks.rank,
                    context.ranks.size, size(), size() == 1 ? "" : "es"),
        {});
}

MpiCommunicator::~MpiCommunicator() { worker_->leave(*group_); }

int MpiCommunicator::rank() const { return group_->rank; }
int MpiCommunicator::size() const { return group_->size(); }

std::shared_ptr<Communicator> MpiCommunicator::make_group(const std::vector<int>& members) {
  Group* const group = worker_->divide(*group_, members);
  return group == nullptr ? nullptr : std::shared_ptr<Communicator>(new MpiCommunicator(worker_, *group));
}

std::shared_ptr<Work> MpiCommunicator::start(const CommRequest& request) {
  const bool is_whole = request.kind == CommKind::kAllGather || request.kind == CommKind::kReduceScatter;
  const std::size_t most = is_whole ? kMostElements / static_cast<std::size_t>(size()) : kMostElements;
  if (request.count > most)
    throw Error(fmt::format("{}: {} of {} elements: MPI counts no more than {} in one call; divide them",
                            worker_->peers().own_text(), name_of(request.kind), request.count, most));
  const bool is_message = request.kind == CommKind::kSend || request.kind == CommKind::kReceive;
  if (is_message && request.tag > kMostTag)
    throw Error(fmt::format("{}: {}: the tag {} is above {}, the largest one over MPI", worker_->peers().own_text(),
                            name_of(request.kind), request.tag, kMostTag));
  return worker_->submit(*group_, request);
}

void MpiCommunicator::monitored_barrier(std::chrono::milliseconds timeout) { barrier({.timeout = timeout})->wait(); }

bool MpiCommunicator::has_ended(int rank) const {
  return worker_->peers().has_ended(group_->ranks[static_cast<std::size_t>(rank)]);
}

void MpiCommunicator::abort(std::string_view reason, ExitCode code) noexcept {
  try {
    worker_->abort(reason, code);
    if (worker_->peers().rank() != 0 && !worker_->blames(0)) worker_->peers().wait_for_end(0, kTimeOfRank0);
  } catch (const std::exception&) {  // no memory for a message: mpirun ends the others
  }
}

}  // namespace tenon::mpi
