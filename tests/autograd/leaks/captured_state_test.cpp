// What is found in a hook: states that it owns a share of, and of a state the words in it and in its vectors.
#include <tenon/autograd/leaks/captured_state.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their heaps have other blocks

namespace tenon {
namespace {

using namespace autograd;
using ::testing::UnorderedElementsAre;

class CapturedStates : public ::testing::Test {
 protected:
  void SetUp() override {
    int word = 0, copy = 0;
    const iovec from{.iov_base = &word, .iov_len = sizeof word}, to{.iov_base = &copy, .iov_len = sizeof copy};
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) < 0)
      GTEST_SKIP() << "this machine's rules forbid a process to read its own memory through the kernel";
  }
};

template <class Shared>
std::uintptr_t address(const Shared& shared) {
  return reinterpret_cast<std::uintptr_t>(shared.get());
}

std::vector<std::pair<std::uintptr_t, std::uint32_t>> objects_of(const TensorHook& hook) {
  std::vector<std::pair<std::uintptr_t, std::uint32_t>> objects;
  for (const CapturedState& state : captured_states(hook)) objects.emplace_back(state.object, state.owners);
  return objects;
}

TEST_F(CapturedStates, AreThoseOfSharedPointersThatAHookHoldsByValueWithTheirOwners) {
  const auto made = std::make_shared<std::array<double, 3>>();
  const std::shared_ptr<std::array<double, 9>> given(new std::array<double, 9>());
  const auto again = given;
  const double number = 2;
  const TensorHook one = [made](const Tensor& gradient) { return gradient * (*made)[0]; };
  EXPECT_THAT(objects_of(one), UnorderedElementsAre(std::pair(address(made), 2U)));
  const TensorHook both = [number, made, given](const Tensor& gradient) {
    return gradient * number * (*made)[0] * (*given)[0];
  };
  EXPECT_THAT(objects_of(both), UnorderedElementsAre(std::pair(address(made), 3U), std::pair(address(given), 3U)));
  EXPECT_THAT(objects_of(one), UnorderedElementsAre(std::pair(address(made), 3U))) << "of each hook its own";
}

TEST_F(CapturedStates, AreNotWhatIsWatchedOrReferredToOrHeldAlone) {
  const auto shared = std::make_shared<std::array<double, 3>>();
  const std::weak_ptr<std::array<double, 3>> weak = shared;
  const TensorHook watching = [weak](const Tensor& gradient) { return gradient * (*weak.lock())[0]; };
  EXPECT_THAT(objects_of(watching), UnorderedElementsAre());
  const TensorHook by_reference = [&shared](const Tensor& gradient) { return gradient * (*shared)[0]; };
  EXPECT_THAT(objects_of(by_reference), UnorderedElementsAre());
  const auto* bare = shared.get();
  const TensorHook by_pointer = [bare, three = std::array<std::uintptr_t, 3>{}](const Tensor& gradient) {
    return gradient * (*bare)[0] * static_cast<double>(three[0]);
  };
  EXPECT_THAT(objects_of(by_pointer), UnorderedElementsAre());
  const Tensor tensor = ones({2});
  const TensorHook of_tensor = [tensor](const Tensor& gradient) { return gradient * tensor; };
  std::set<std::uintptr_t> controls;
  for (const CapturedState& state : captured_states(of_tensor)) controls.insert(state.control);
  controls.erase(reinterpret_cast<std::uintptr_t>(&tensor.impl()));  // it counts its references, too
  EXPECT_TRUE(controls.empty());
  EXPECT_THAT(objects_of(TensorHook()), UnorderedElementsAre());
}

/// What has the form of a control block, and counts copies of whoever points at it as that does.
struct Counter {
  void* functions = nullptr;
  std::uint32_t owners = 1;
};
struct CountingPointer {
  Counter* object;
  Counter* control;
  explicit CountingPointer(Counter* counter) : object(counter), control(counter) {}
  CountingPointer(const CountingPointer& other) : object(other.object), control(other.control) { ++control->owners; }
  CountingPointer& operator=(const CountingPointer&) = delete;
  ~CountingPointer() { --control->owners; }
};

TEST_F(CapturedStates, LieInBlocksOfTheHeap) {
  static Counter outside;
  outside = {};  // also when the test is repeated
  const CountingPointer elsewhere(&outside);
  const TensorHook hook = [elsewhere](const Tensor& gradient) { return gradient * elsewhere.object->owners; };
  EXPECT_EQ(outside.owners, 2U);
  EXPECT_THAT(objects_of(hook), UnorderedElementsAre());
  const auto inside = std::make_unique<Counter>();
  const CountingPointer here(inside.get());
  const TensorHook same = [here](const Tensor& gradient) { return gradient * here.object->owners; };
  EXPECT_THAT(objects_of(same), UnorderedElementsAre(std::pair(address(inside), 2U)));
}

TEST_F(CapturedStates, AreLookedForInBlocksOfUpToAMebibyte) {
  const auto found = [](auto shared) {
    const TensorHook hook = [shared](const Tensor& gradient) { return gradient * (*shared)[0]; };
    return objects_of(hook).size();
  };
  EXPECT_EQ(found(std::make_shared<std::array<char, 1>>()), 1U);
  EXPECT_EQ(found(std::make_shared<std::array<char, 100'000>>()), 1U);
  EXPECT_EQ(found(std::make_shared<std::array<char, 1'000'000>>()), 1U);
  EXPECT_EQ(found(std::make_shared<std::array<char, 1'100'000>>()), 0U) << "its control block is the same block";
}

/// Words that nothing else has.
std::uintptr_t fresh_word() {
  static std::uintptr_t last = 0xa5c3'0000'0000'0000;
  return last += 0x1001;
}

struct State {
  std::uintptr_t first = fresh_word();
  std::vector<std::uintptr_t> list;
  std::uintptr_t last = fresh_word();
};

/// Of the words those that are found in the only state of a hook that owns `shared`.
std::set<std::uintptr_t> found_of(const std::shared_ptr<State>& shared, const std::set<std::uintptr_t>& words) {
  const TensorHook hook = [shared](const Tensor& gradient) { return gradient * static_cast<double>(shared->first); };
  const auto states = captured_states(hook);
  EXPECT_EQ(states.size(), 1U);
  std::set<std::uintptr_t> found;
  for (const CapturedState& state : states)
    each_tensor_in(
        state, [&](std::uintptr_t word) { return words.contains(word); },
        [&](std::uintptr_t word) { found.insert(word); });
  return found;
}

TEST_F(CapturedStates, AreSearchedThemselvesAndInTheirVectorsAndNoFurther) {
  for (const bool is_made_with_its_block : {true, false}) {
    const auto shared = is_made_with_its_block ? std::make_shared<State>() : std::shared_ptr<State>(new State());
    EXPECT_EQ(found_of(shared, {shared->first, shared->last, fresh_word()}),
              (std::set<std::uintptr_t>{shared->first, shared->last}));
    std::set<std::uintptr_t> words;
    shared->list.reserve(7);
    for (int i = 0; i < 5; ++i) {
      shared->list.push_back(fresh_word());
      words.insert(shared->list.back());
      EXPECT_EQ(found_of(shared, words), words) << "each word of it, the first and the last too";
    }
    EXPECT_EQ(found_of(shared, {shared->list[0]}), std::set<std::uintptr_t>{shared->list[0]});
    const std::uintptr_t gone = shared->list.back();
    shared->list.pop_back();
    words.erase(gone);
    std::set<std::uintptr_t> asked = words;
    asked.insert(gone);
    EXPECT_EQ(found_of(shared, asked), words) << "what is beyond its end is not in it";
    shared->list = std::vector<std::uintptr_t>(3, fresh_word());  // no room left over
    EXPECT_EQ(found_of(shared, {shared->list[2]}), std::set<std::uintptr_t>{shared->list[2]});
  }
}

TEST_F(CapturedStates, ThatAreVectorsThemselvesAreSearched) {
  const std::shared_ptr<std::vector<std::uintptr_t>> list(new std::vector<std::uintptr_t>{fresh_word(), fresh_word()});
  const TensorHook hook = [list](const Tensor& gradient) { return gradient * static_cast<double>((*list)[0]); };
  std::set<std::uintptr_t> found;
  for (const CapturedState& state : captured_states(hook))
    each_tensor_in(
        state, [&](std::uintptr_t word) { return word == (*list)[0] || word == (*list)[1]; },
        [&](std::uintptr_t word) { found.insert(word); });
  EXPECT_EQ(found, std::set<std::uintptr_t>(list->begin(), list->end()));
}

}  // namespace
}  // namespace tenon

#endif
