// The ranks of this program: torch.distributed's init_process_group, over a communicator that a plugin supplies.
//
//   auto ranks = tenon::distributed::init_process_group("mpi:timeout=60");    // under mpirun -n 4
//   nn::parallel::DistributedDataParallel model(net, ranks);
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/runtime/config/experiment.h>

#include <memory>
#include <string_view>
#include <vector>

namespace tenon::distributed {

/// Meets the other ranks that the launcher started; every one of them calls it. `spec` is a communicator's name, with
/// its options behind a colon as of an allocator. Throws ConfigError for an unknown name or option, PluginError where
/// its plugin would not load, DistributedError where the others do not come.
TENON_API std::shared_ptr<Communicator> init_process_group(std::string_view spec);
/// The same with options that were validated.
TENON_API std::shared_ptr<Communicator> init_process_group(std::string_view name, const Options& options);

/// The device of this process: where the experiment names a kind alone, that of its number among the ranks of its
/// machine, one after the other and again from the first where there are more ranks. After install().
TENON_API Device device_of_rank(const ExperimentConfig& config);
/// The devices of this process where the experiment names several: on a machine that has as many for each of its ranks
/// the next ones for each rank, else the same.
TENON_API std::vector<Device> devices_of_rank(const ExperimentConfig& config);

}  // namespace tenon::distributed
