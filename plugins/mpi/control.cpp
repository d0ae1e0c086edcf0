// Messages of one size on a communicator of their own.
#include "control.h"

#include "check.h"

#include <algorithm>
#include <cstring>

namespace tenon::mpi {

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

void Control::send(ControlMessage message, int to) {
  message.from = rank_;
  Sent& sent = sent_.emplace_back(Sent{.message = message});
  check(MPI_Isend(&sent.message, sizeof(ControlMessage), MPI_BYTE, to, 0, comm_, &sent.request), "MPI_Isend");
}

void Control::send_to_all(const ControlMessage& message) {
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) send(message, rank);
}

std::optional<ControlMessage> Control::receive() {
  int has_come = 0;
  MPI_Message which{};
  MPI_Status status{};
  check(MPI_Improbe(MPI_ANY_SOURCE, 0, comm_, &has_come, &which, &status), "MPI_Improbe");
  if (!has_come) return std::nullopt;
  ControlMessage message;
  check(MPI_Mrecv(&message, sizeof(ControlMessage), MPI_BYTE, &which, &status), "MPI_Mrecv");
  message.text.back() = '\0';
  return message;
}

bool Control::is_flushed() {
  std::erase_if(sent_, [](Sent& sent) {
    int is_done = 0;
    check(MPI_Test(&sent.request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    return is_done != 0;
  });
  return sent_.empty();
}

}  // namespace tenon::mpi
