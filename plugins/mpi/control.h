// Control: short messages between the ranks beside the operations, by which they learn of each other's failures.
#pragma once

#include <tenon/comm/missing_ranks.h>

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
    kTell,   ///< a RankPosition: `text` is the last collective; `signature` of the `number` that was asked for
    kLeave,  ///< the sender has closed its communicator of `group` after the collective `number`
    kBye,    ///< the sender has closed all, and goes
  };
  std::int32_t kind = kAsk;
  std::int32_t from = 0;
  std::int32_t code = 0;
  std::int32_t blamed_count = 0;
  std::array<std::int32_t, 32> blamed{};
  std::int64_t number = 0;
  std::int64_t group = 0;  ///< whose numbers are meant
  std::array<char, 2048> text{};
  // Of kTell.
  std::array<std::int64_t, 32> came_to{};  ///< groups and numbers in turn
  std::int32_t came_to_count = 0;          ///< of both together
  std::int32_t awaits = 0;                 ///< whether the program waits: for what follows, and `blamed`
  std::int64_t awaited_group = 0, awaited_number = 0;
  std::array<char, 256> awaited_text{};
  std::int32_t has_signature = 0;
  CollectiveSignature signature;

  void set_text(std::string_view words);
  void set_blamed(const std::vector<int>& ranks);
  std::vector<int> blamed_ranks() const;
  void set_position(const RankPosition& position);
  /// `all`: how many ranks there are.
  RankPosition position(int all) const;
};

/// What a rank comes to its next collective of a group with: Agreement::Send.
struct SignatureMessage {
  std::int64_t group = 0;
  std::int32_t from = 0;  ///< its number there
  CollectiveSignature signature;
};

/// By one thread.
class Control {
 public:
  Control(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

  void send(ControlMessage message, int to);
  void send_to_all(const ControlMessage& message);
  void send(const SignatureMessage& message, int to);
  /// One that has come.
  std::optional<ControlMessage> receive();
  std::optional<SignatureMessage> receive_signature();
  /// Whether all that was sent is on its way.
  bool is_flushed();

 private:
  template <class Message>
  struct Sent {
    Message message;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  template <class Message>
  void begin(std::list<Sent<Message>>& sent, const Message& message, int to, int tag);
  template <class Message>
  std::optional<Message> receive(int tag);
  template <class Message>
  static void forget_sent(std::list<Sent<Message>>& sent);

  MPI_Comm comm_;
  int rank_, size_;
  std::list<Sent<ControlMessage>> sent_;
  std::list<Sent<SignatureMessage>> signatures_;
};

}  // namespace tenon::mpi
