// What the launcher of several processes tells each of them: the one place that reads its variables.
#pragma once

#include <tenon/core/export.h>

#include <functional>
#include <string>
#include <string_view>

namespace tenon {

/// Which of how many processes this one is.
struct RankEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among those of this machine: which of its devices is this process's
  int local_size = 1;
  std::string master_address;   ///< of rank 0's machine, where the launcher says it
  int master_port = 0;          ///< where ranks may meet there; 0: not said
  std::string launch;           ///< a name that the ranks of this launch have, and those of others do not; empty: none
  std::string_view launcher{};  ///< "torchrun", "Open MPI", "Slurm"; empty: this process was started alone
};

/// A variable's value; null where it is not set.
using EnvironmentReader = std::function<const char*(const char* name)>;

/// The first of these whose variables are set decides:
///   torchrun  RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
///   Open MPI  OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK, …_LOCAL_SIZE
///   Slurm     SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, in a job step (srun): a batch script is one process
/// and MASTER_ADDR and MASTER_PORT go with each; where torchrun's own store listens at that port
/// (TORCHELASTIC_USE_AGENT_STORE is "True") it is the next one. A launch is named by torchrun's TORCHELASTIC_RUN_ID, or
/// the port, Open MPI's PMIX_NAMESPACE, or Slurm's SLURM_JOB_ID with the step. Throws ConfigError that names the
/// variable: not a number, a rank that is none of so many, one variable of a pair without the other.
TENON_API RankEnvironment rank_environment(const EnvironmentReader& read);
/// The same of this process's environment.
TENON_API RankEnvironment rank_environment();

/// `command` as it is started again on as many ranks: "mpirun -n 4 tenon run …". As it is for a process started alone.
TENON_API std::string relaunched(const RankEnvironment& ranks, const std::string& command);

}  // namespace tenon
