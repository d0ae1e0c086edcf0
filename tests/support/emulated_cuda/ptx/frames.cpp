// Which word of a frame is which register, when. PTX has a register for every value that there ever was; those that are
// never needed at once share a word, so that the frames of a block stay in a cache of the host.
#include "support/emulated_cuda/ptx/module.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace tenon::emulated_cuda::ptx {

namespace {

bool is_register(const Operand& operand) { return operand.kind == Operand::Kind::kRegister; }
std::uint32_t word_of(const Operand& operand) { return static_cast<std::uint32_t>(operand.value); }

/// Registers, a bit each.
class Set {
 public:
  explicit Set(std::size_t count) : words_((count + 63) / 64) {}
  void add(std::uint64_t one) { words_[one / 64] |= std::uint64_t{1} << (one % 64); }
  void remove(std::uint64_t one) { words_[one / 64] &= ~(std::uint64_t{1} << (one % 64)); }
  void add(const Set& others) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
  }
  bool operator==(const Set&) const = default;
  template <class F>
  void each(const F& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t left = words_[i]; left != 0; left &= left - 1)
        visit(64 * i + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// `live`: what is needed after the instruction; then what is needed before it.
void step_back(const Instruction& instruction, Set& live) {
  if (instruction.guard.kind == Operand::Kind::kNone) {  // else it may leave them as they are
    for (const Operand& out : instruction.out) live.remove(out.value);
  }
  for (const Operand& in : instruction.in) {
    if (is_register(in)) live.add(in.value);
  }
  if (is_register(instruction.guard)) live.add(instruction.guard.value);
}

bool ends_run(const Instruction& instruction) {
  return instruction.kind == Kind::kBranch || instruction.kind == Kind::kReturn || instruction.kind == Kind::kExit;
}

/// Instructions that run one after the other.
struct Run {
  std::size_t begin, end;
  Set live;  ///< before the first
};

std::vector<Run> runs_of(const Function& function) {
  std::vector<bool> begins(function.code.size() + 1);
  begins[0] = true;
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    if (!ends_run(function.code[i])) continue;
    begins[i + 1] = true;
    if (function.code[i].kind == Kind::kBranch) begins[function.code[i].target] = true;
  }
  std::vector<Run> runs;
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    if (begins[i]) runs.push_back({i, i, Set(function.registers)});
    runs.back().end = i + 1;
  }
  return runs;
}

/// What is needed after the last instruction of a run.
Set live_after(const Function& function, const std::vector<Run>& runs, std::size_t at) {
  Set live(function.registers);
  const Instruction& last = function.code[runs[at].end - 1];
  const auto goes_to = [&](std::size_t instruction) {
    const auto run = std::lower_bound(runs.begin(), runs.end(), instruction,
                                      [](const Run& one, std::size_t begin) { return one.begin < begin; });
    if (run != runs.end()) live.add(run->live);
  };
  if (last.kind == Kind::kBranch) goes_to(last.target);
  if (!ends_run(last) || last.guard.kind != Operand::Kind::kNone) goes_to(runs[at].end);
  return live;
}

/// Where a register is needed, at the latest and the earliest: 2 i before instruction i, 2 i + 1 after it.
struct Span {
  std::size_t first = ~std::size_t{0}, last = 0;
  std::uint64_t of = 0;
  bool any() const { return first <= last; }
  void cover(std::size_t at) { first = std::min(first, at), last = std::max(last, at); }
};

std::vector<Span> spans_of(const Function& function, std::vector<Run>& runs) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t at = runs.size(); at-- > 0;) {
      Set live = live_after(function, runs, at);
      for (std::size_t i = runs[at].end; i-- > runs[at].begin;) step_back(function.code[i], live);
      if (live == runs[at].live) continue;
      runs[at].live = std::move(live);
      changed = true;
    }
  }
  std::vector<Span> spans(function.registers);
  for (std::size_t i = 0; i < spans.size(); ++i) spans[i].of = i;
  for (std::size_t at = 0; at < runs.size(); ++at) {
    Set live = live_after(function, runs, at);
    live.each([&](std::size_t one) { spans[one].cover(2 * runs[at].end - 1); });
    for (std::size_t i = runs[at].end; i-- > runs[at].begin;) {
      const Instruction& instruction = function.code[i];
      for (const Operand& out : instruction.out) spans[out.value].cover(2 * i + 1);
      for (const Operand& in : instruction.in) {
        if (is_register(in)) spans[in.value].cover(2 * i);
      }
      if (is_register(instruction.guard)) spans[instruction.guard.value].cover(2 * i);
    }
    runs[at].live.each([&](std::size_t one) { spans[one].cover(2 * runs[at].begin); });
  }
  return spans;
}

/// By linear scan (Poletto and Sarkar, 1999), with as many words as are needed.
void place_registers(Function& function) {
  std::vector<Run> runs = runs_of(function);
  if (runs.empty()) return;
  std::vector<Span> spans = spans_of(function, runs);
  std::erase_if(spans, [](const Span& span) { return !span.any(); });
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  std::vector<std::uint64_t> word_of(function.registers);
  std::vector<std::uint64_t> free;
  std::multimap<std::size_t, std::uint64_t> taken;  // by their last
  std::uint64_t words = 0;
  for (const Span& span : spans) {
    for (; !taken.empty() && taken.begin()->first < span.first; taken.erase(taken.begin()))
      free.push_back(taken.begin()->second);
    if (free.empty()) free.push_back(words++);
    word_of[span.of] = free.back();
    free.pop_back();
    taken.emplace(span.last, word_of[span.of]);
  }
  runs[0].live.each([&](std::size_t one) { function.poisoned.push_back(static_cast<std::uint32_t>(word_of[one])); });
  const auto place = [&](Operand& operand) {
    if (is_register(operand)) operand.value = word_of[operand.value];
  };
  for (Instruction& instruction : function.code) {
    for (Operand& out : instruction.out) place(out);
    for (Operand& in : instruction.in) place(in);
    place(instruction.guard);
  }
  function.registers = words;
}

/// An operand that keeps its value as long as its thread runs becomes a word of the frame, as registers are.
void place_constants(Function& function) {
  std::map<std::pair<Operand::Kind, std::uint64_t>, std::uint64_t> words;
  for (Instruction& instruction : function.code) {
    for (Operand& operand : instruction.in) {
      if (is_register(operand) || operand.kind == Operand::Kind::kNone) continue;
      const auto [word, added] =
          words.try_emplace({operand.kind, operand.value}, function.registers + function.constants.size());
      if (added) function.constants.push_back({operand.kind, operand.value});
      operand.kind = Operand::Kind::kRegister;
      operand.value = word->second;
    }
  }
}

Step step_of(const Instruction& instruction) {
  Step step{.guard = word_of(instruction.guard),
            .target = static_cast<std::uint32_t>(instruction.target),
            .guarded = instruction.guard.kind != Operand::Kind::kNone,
            .guard_negated = instruction.guard_negated};
  if (instruction.kind == Kind::kBranch) step.what = Step::What::kBranch;
  if (instruction.kind != Kind::kPlain || !std::all_of(instruction.in.begin(), instruction.in.end(), is_register))
    return step;
  step.what = Step::What::kArithmetic;
  step.compute = instruction.operation.compute;
  step.out = word_of(instruction.out[0]);
  for (std::size_t i = 0; i < instruction.in.size(); ++i) step.in[i] = word_of(instruction.in[i]);
  return step;
}

}  // namespace

void lay_out(Function& function) {
  place_registers(function);
  place_constants(function);
  for (Instruction& instruction : function.code) {
    const bool access = instruction.kind == Kind::kLoad || instruction.kind == Kind::kStore;
    const auto parameter = function.params.find(instruction.name);
    if (access && parameter != function.params.end()) instruction.slot = parameter->second;
    function.steps.push_back(step_of(instruction));
  }
  function.steps.push_back({.what = Step::What::kEnd});
}

}  // namespace tenon::emulated_cuda::ptx
