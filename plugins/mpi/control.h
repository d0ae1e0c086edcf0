// Control: short messages between the ranks beside the operations, by which they learn of each other's failures.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::mpi {

struct ControlMessage {
  enum Kind : std::int32_t {
    kAbort,  ///< the sender cannot go on: text, blamed, code
    kAsk,    ///< where are you?
    kTell,   ///< at the collective `number`, which is `text`
    kBye,    ///< the sender has closed its communicator after the collective `number`
  };
  std::int32_t kind = kAsk;
  std::int32_t from = 0;
  std::int32_t code = 0;
  std::int32_t blamed_count = 0;
  std::array<std::int32_t, 32> blamed{};
  std::int64_t number = 0;
  std::int64_t group = 0;  ///< of kAsk and kTell: whose numbers are meant
  std::array<char, 2048> text{};

  void set_text(std::string_view words);
  void set_blamed(const std::vector<int>& ranks);
  std::vector<int> blamed_ranks() const;
};

/// By one thread.
class Control {
 public:
  Control(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

  void send(ControlMessage message, int to);
  void send_to_all(const ControlMessage& message);
  /// One that has come.
  std::optional<ControlMessage> receive();
  /// Whether all that was sent is on its way.
  bool is_flushed();

 private:
  struct Sent {
    ControlMessage message;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MPI_Comm comm_;
  int rank_, size_;
  std::list<Sent> sent_;
};

}  // namespace tenon::mpi
