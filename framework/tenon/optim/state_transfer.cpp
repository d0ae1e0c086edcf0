// As an archive, behind its length.
#include <tenon/optim/state_transfer.h>

#include <tenon/nn/serialize/archive.h>

#include <cstdint>
#include <sstream>
#include <string>

namespace tenon::optim {

void send_state(Communicator& ranks, const OptimizerParamState* state, int to) {
  std::string bytes;
  if (state != nullptr) {
    OutputArchive archive;
    state->serialize(archive);
    std::ostringstream stream;
    archive.save_to(stream);
    bytes = std::move(stream).str();
  }
  auto size = static_cast<std::int64_t>(bytes.size());
  ranks.send({.data = &size, .count = 1, .dtype = kInt64}, to)->wait();
  if (size > 0) ranks.send({.data = bytes.data(), .count = bytes.size(), .dtype = kUInt8}, to)->wait();
}

std::unique_ptr<OptimizerParamState> receive_state(Communicator& ranks, const Optimizer& optimizer, int from) {
  std::int64_t size = 0;
  ranks.receive({.data = &size, .count = 1, .dtype = kInt64}, from)->wait();
  if (size == 0) return nullptr;
  std::string bytes(static_cast<std::size_t>(size), '\0');
  ranks.receive({.data = bytes.data(), .count = bytes.size(), .dtype = kUInt8}, from)->wait();
  InputArchive archive;
  archive.load_from(bytes.data(), bytes.size(), Device(kCPU));
  return optimizer.read_state(archive);
}

}  // namespace tenon::optim
