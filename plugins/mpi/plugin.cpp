// The plugin mpi: processes that mpirun or srun launches compute together over MPI.
#include "communicator.h"

#include <tenon/plugin/communicator_plugin.h>

namespace tenon::mpi {
namespace {

void register_mpi(plugin::Host& host) {
  host.add_communicator({.name = "mpi",
                         .summary = "processes that mpirun launches, over Open MPI",
                         .options = MpiCommunicator::options(),
                         .create = [](const CommunicatorContext& context) -> std::unique_ptr<Communicator> {
                           return std::make_unique<MpiCommunicator>(context);
                         }});
}

}  // namespace
}  // namespace tenon::mpi

TENON_PLUGIN(mpi, "0.1", &tenon::mpi::register_mpi)
