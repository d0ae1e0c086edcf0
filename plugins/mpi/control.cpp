// Messages of one size on a communicator of their own.
#include "control.h"

#include "check.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tenon::mpi {
namespace {

constexpr int kControlTag = 0, kSignatureTag = 1;

}  // namespace

void ControlMessage::set_text(std::string_view words) {
  const std::size_t length = std::min(words.size(), text.size() - 1);
  std::memcpy(text.data(), words.data(), length);
  text[length] = '\0';
}

void ControlMessage::set_blamed(const std::vector<int>& ranks) {
  blamed_count = static_cast<std::int32_t>(std::min(ranks.size(), blamed.size()));
  std::copy_n(ranks.begin(), blamed_count, blamed.begin());
}

std::vector<int> ControlMessage::blamed_ranks() const {
  return {blamed.begin(),
          blamed.begin() + std::min<std::size_t>(static_cast<std::size_t>(blamed_count), blamed.size())};
}

// What does not fit is left out: a rank in more groups, one that waits for more ranks than there is place for.
void ControlMessage::set_position(const RankPosition& position) {
  set_text(position.last);
  for (const auto& [of_group, its_number] : position.came_to) {
    if (static_cast<std::size_t>(came_to_count) + 2 > came_to.size()) break;
    came_to[static_cast<std::size_t>(came_to_count++)] = of_group;
    came_to[static_cast<std::size_t>(came_to_count++)] = its_number;
  }
  awaits = position.awaits ? 1 : 0;
  if (!position.awaits) return;
  awaited_group = position.awaits->group;
  awaited_number = position.awaits->number;
  const std::size_t length = std::min(position.awaits->text.size(), awaited_text.size() - 1);
  std::memcpy(awaited_text.data(), position.awaits->text.data(), length);
  set_blamed(position.awaits->ranks);
}

RankPosition ControlMessage::position(int all) const {
  RankPosition position{.came_to = {}, .last = text.data(), .awaits = {}};
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(came_to_count); i += 2)
    position.came_to[came_to[i]] = came_to[i + 1];
  if (awaits == 0) return position;
  position.awaits = AwaitedOperation{.group = awaited_group,
                                     .number = awaited_number,
                                     .ranks = blamed_ranks(),
                                     .text = std::string(awaited_text.data())};
  const bool is_of_all = awaited_group == 0 && awaited_number > 0;
  if (is_of_all) {
    position.awaits->ranks.resize(static_cast<std::size_t>(all));
    std::iota(position.awaits->ranks.begin(), position.awaits->ranks.end(), 0);
  }
  return position;
}

template <class Message>
void Control::begin(std::list<Sent<Message>>& sent, const Message& message, int to, int tag) {
  Sent<Message>& one = sent.emplace_back(Sent<Message>{.message = message});
  check(MPI_Isend(&one.message, sizeof(Message), MPI_BYTE, to, tag, comm_, &one.request), "MPI_Isend");
}

template <class Message>
std::optional<Message> Control::receive(int tag) {
  int has_come = 0;
  MPI_Message which{};
  MPI_Status status{};
  check(MPI_Improbe(MPI_ANY_SOURCE, tag, comm_, &has_come, &which, &status), "MPI_Improbe");
  if (!has_come) return std::nullopt;
  Message message;
  check(MPI_Mrecv(&message, sizeof(Message), MPI_BYTE, &which, &status), "MPI_Mrecv");
  return message;
}

template <class Message>
void Control::forget_sent(std::list<Sent<Message>>& sent) {
  std::erase_if(sent, [](Sent<Message>& one) {
    int is_done = 0;
    check(MPI_Test(&one.request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    return is_done != 0;
  });
}

void Control::send(ControlMessage message, int to) {
  message.from = rank_;
  begin(sent_, message, to, kControlTag);
}

void Control::send(const SignatureMessage& message, int to) { begin(signatures_, message, to, kSignatureTag); }

void Control::send_to_all(const ControlMessage& message) {
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) send(message, rank);
}

std::optional<ControlMessage> Control::receive() {
  auto message = receive<ControlMessage>(kControlTag);
  if (message) message->text.back() = message->awaited_text.back() = '\0';
  return message;
}

std::optional<SignatureMessage> Control::receive_signature() { return receive<SignatureMessage>(kSignatureTag); }

bool Control::is_flushed() {
  forget_sent(sent_);
  forget_sent(signatures_);
  return sent_.empty() && signatures_.empty();
}

}  // namespace tenon::mpi
