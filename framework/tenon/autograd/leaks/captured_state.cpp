// Words of the own memory, read where there may be none.
#include <tenon/autograd/leaks/captured_state.h>

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>

namespace tenon::autograd {

namespace {

using Word = std::uintptr_t;
constexpr std::size_t kWord = sizeof(Word);

bool read(Word address, void* to, std::size_t bytes) {
  const iovec local{.iov_base = to, .iov_len = bytes};
  const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

std::vector<Word> words_at(Word address, std::size_t bytes) {
  std::vector<Word> words(bytes / kWord);
  return !words.empty() && read(address, words.data(), words.size() * kWord) ? words : std::vector<Word>();
}

/// Of a block that begins there; 0 where none seems to.
std::size_t block_bytes(Word address) {
  constexpr Word kFlags = 7, kAlignment = 16, kLeast = 32, kMost = Word{1} << 20;
  Word size = 0;
  if (address < kMost || address % kAlignment != 0 || !read(address - kWord, &size, kWord)) return 0;
  size &= ~kFlags;
  return size < kLeast || size > kMost || size % kAlignment != 0 ? 0 : size - kWord;
}

std::vector<Word> block_at(Word address) { return words_at(address, block_bytes(address)); }

/// libstdc++'s and libc++'s control blocks: a pointer to functions, then the number of owners.
std::uint32_t owners_at(Word control) {
  std::uint32_t owners = 0;
  constexpr std::uint32_t kMost = 1U << 20;
  return block_bytes(control) != 0 && read(control + kWord, &owners, sizeof owners) && owners < kMost ? owners : 0;
}

/// What the function has in itself, or in the block that it has for what it captured.
std::vector<Word> captured_words(const TensorHook& hook) {
  std::vector<Word> words = words_at(reinterpret_cast<Word>(&hook), sizeof hook);
  if (words.empty()) return words;
  const std::vector<Word> block = block_at(words.front());
  words.insert(words.end(), block.begin(), block.end());
  return words;
}

}  // namespace

std::vector<CapturedState> captured_states(const TensorHook& hook) {
  const std::vector<Word> words = captured_words(hook);
  std::map<Word, CapturedState> found;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (const std::uint32_t owners = owners_at(words[i]); owners > 0)
      found[words[i]] = {.control = words[i], .object = words[i - 1], .owners = owners};
  if (found.empty()) return {};
  const TensorHook copy = hook;
  std::vector<CapturedState> states;
  for (const auto& [control, state] : found)
    if (owners_at(control) == state.owners + 1) states.push_back(state);
  return states;
}

void each_tensor_in(const CapturedState& state, const std::function<bool(std::uintptr_t)>& is_tensor,
                    const std::function<void(std::uintptr_t)>& found) {
  const auto search = [&](const std::vector<Word>& words) {
    for (const Word word : words)
      if (is_tensor(word)) found(word);
  };
  std::vector<Word> words = block_at(state.control);  // std::make_shared: the state lies in it
  if (state.object < state.control || state.object >= state.control + words.size() * kWord)
    words = block_at(state.object);
  search(words);
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    const Word begin = words[i], end = words[i + 1], room = words[i + 2];
    const bool is_vector =
        begin < end && end <= room && (end - begin) % kWord == 0 && room - begin <= block_bytes(begin);
    if (is_vector) search(words_at(begin, end - begin));
  }
}

}  // namespace tenon::autograd
