// Digests first; where they differ, each of the texts once.
#include <tenon/comm/compared_text.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace tenon {
namespace {

using Digest = std::array<std::uint64_t, 2>;

Digest digest_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a of 64 bits
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return {hash, text.size()};
}

}  // namespace

std::vector<std::string> differing_texts(Communicator& ranks, const std::string& own) {
  if (ranks.size() == 1) return {};
  Digest mine = digest_of(own);
  std::vector<Digest> all(static_cast<std::size_t>(ranks.size()), mine);  // planned ranks write nothing
  ranks
      .all_gather({.data = all.data(), .count = sizeof(Digest) * all.size(), .dtype = Dtype::kUInt8},
                  {.data = mine.data(), .count = sizeof(Digest), .dtype = Dtype::kUInt8})
      ->wait();
  std::map<Digest, std::string> texts;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto [text, is_new] = texts.try_emplace(all[static_cast<std::size_t>(rank)]);
    if (!is_new) continue;
    if (rank == 0 && std::ranges::count(all, all[0]) == ranks.size()) return {};
    text->second = rank == ranks.rank() ? own : std::string(text->first[1], '\0');
    if (text->second.empty()) continue;
    ranks.broadcast({.data = text->second.data(), .count = text->second.size(), .dtype = Dtype::kUInt8}, rank)->wait();
  }
  std::vector<std::string> found;
  for (const Digest& digest : all) found.push_back(texts[digest]);
  return found;
}

}  // namespace tenon
