// Autocast: the lists of operators beside PyTorch's, gradients through casts, casts that are kept, and where it ends.
#include "support/expect_error.h"

#include <tenon/autograd/autocast.h>
#include <tenon/autograd/checkpoint.h>
#include <tenon/device/memory_api.h>
#include <tenon/memory/purpose.h>
#include <tenon/tensor/generator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "autocast_calls.h"

namespace tenon::test {
namespace {

/// What PyTorch does: a letter for each kind of operands.
struct Recorded {
  std::string on_cpu, on_accelerators;
};

const std::map<std::string, Recorded> kRecorded = {
#define AUTOCAST_DTYPES(name, on_cpu, on_accelerators) {#name, {on_cpu, on_accelerators}},
#include "autocast_dtypes.inl"
};

/// PyTorch's cell is made of products in 16 bits and of sums with a state that may have 32; here it is one kernel,
/// which wants one dtype.
const std::set<std::string> kOfOneDtype = {"lstm_cell", "gru_cell"};

std::string letters_of(const AutocastCall& call, Dtype lower) {
  std::string letters;
  for (const auto& [first, other] :
       {std::pair(kFloat32, kFloat32), std::pair(lower, lower), std::pair(kFloat32, lower)}) {
    const AutocastOperands operands(first, other);
    const AutocastGuard guard(kCPU, lower);
    try {
      const Dtype dtype = call(operands).scalar_type();
      letters += dtype == kFloat32 ? 'F' : dtype == lower ? 'L' : 'o';
    } catch (const Error&) {
      letters += '-';
    }
  }
  return letters;
}

/// Equal, but that Tenon may compute what PyTorch has no kernel for.
void expect_same(const std::string& name, const std::string& found, const std::string& recorded, bool refusals_count) {
  ASSERT_EQ(recorded.size(), 3U) << name;
  for (std::size_t i = 0; i < 3; ++i) {
    if (recorded[i] == '-' && !refusals_count) continue;
    if (i == 2 && kOfOneDtype.contains(name)) continue;
    EXPECT_EQ(found[i], recorded[i]) << name << ", operands "
                                     << (i == 0   ? "in float32"
                                         : i == 1 ? "lower"
                                                  : "mixed")
                                     << ": " << found << " where PyTorch has " << recorded;
  }
}

/// The cpu goes by the lists of accelerators while it lives.
struct AcceleratorLists {
  AcceleratorLists() { autocast::set_accelerator_lists(kCPU, true); }
  ~AcceleratorLists() { autocast::set_accelerator_lists(kCPU, false); }
};

TEST(Autocast, ListsForTheCpuAreThoseOfPyTorch) {
  const auto calls = autocast_calls();
  EXPECT_EQ(calls.size(), kRecorded.size());
  for (const auto& [name, call] : calls) {
    ASSERT_TRUE(kRecorded.contains(name)) << name;
    expect_same(name, letters_of(call, kBFloat16), kRecorded.at(name).on_cpu, false);
  }
}

TEST(Autocast, ListsForAcceleratorsAreThoseOfPyTorch) {
  ASSERT_TRUE(autocast::has_accelerator_lists(kCUDA));
  ASSERT_TRUE(autocast::has_accelerator_lists(kSimulated));
  ASSERT_FALSE(autocast::has_accelerator_lists(kCPU));
  const AcceleratorLists lists;
  for (const auto& [name, call] : autocast_calls()) {
    expect_same(name, letters_of(call, kFloat16), kRecorded.at(name).on_accelerators, name == "binary_cross_entropy");
  }
}

Tensor parameter(std::initializer_list<std::int64_t> sizes) {
  return full(IntArrayRef(sizes), 0.5).set_requires_grad(true);
}

TEST(Autocast, GivesParametersGradientsOfTheirOwnDtype) {
  const Tensor weight = parameter({5, 4}), x = parameter({3, 4});
  Tensor y;
  {
    const AutocastGuard guard(kCPU);
    y = linear(x, weight);
    EXPECT_EQ(y.scalar_type(), kBFloat16);
  }
  y.sum().backward();
  EXPECT_EQ(weight.grad().scalar_type(), kFloat32);
  EXPECT_EQ(x.grad().scalar_type(), kFloat32);
  EXPECT_TRUE(weight.grad().equal(full({5, 4}, 1.5)));
  EXPECT_TRUE(x.grad().equal(full({3, 4}, 2.5)));
}

/// Elements that are cast while the call runs.
std::int64_t casts_in(const std::function<void()>& call) {
  const MemoryStats before = device_state(kCPU).allocator().stats();
  call();
  const MemoryStats after = device_state(kCPU).allocator().stats();
  const auto cast = static_cast<std::size_t>(Purpose::kCast);
  return after.requested_by_purpose[cast].current - before.requested_by_purpose[cast].current;
}

TEST(Autocast, SaysWhichMemoryItsCastsAreByPurposeElementsAndLabel) {
  const Tensor weight = parameter({4, 4}), x = full({4, 4}, 0.5);
  const auto labelled = [] {
    for (const LabelUsage& usage : memory_by_label())
      if (usage.label == "autocast") return usage.requested_bytes;
    return Stat();
  };
  const auto bytes = [](Purpose purpose, ElementKind kind) {
    return memory_by_purpose()[static_cast<std::size_t>(purpose)].by_element[static_cast<std::size_t>(kind)].current;
  };
  const Stat before = labelled();
  const std::int64_t casts = bytes(Purpose::kCast, ElementKind::kBFloat16),
                     activations = bytes(Purpose::kActivation, ElementKind::kBFloat16);
  {
    const AutocastGuard guard(kCPU);
    const Tensor y = mm(x, weight);
    EXPECT_EQ(bytes(Purpose::kCast, ElementKind::kBFloat16) - casts, 32) << "of the parameter";
    EXPECT_EQ(bytes(Purpose::kActivation, ElementKind::kBFloat16) - activations, 64) << "of x, and the product";
    EXPECT_EQ(labelled().current - before.current, 64) << "both casts";
    {
      const LabelGuard own("a product of mine");
      mm(full({4, 4}, 0.25), weight);
    }
    EXPECT_EQ(labelled().allocated - before.allocated, 64) << "what the program names keeps its name";
  }
  EXPECT_EQ(bytes(Purpose::kCast, ElementKind::kBFloat16), casts);
}

TEST(Autocast, KeepsTheCastOfAParameterUntilTheOutermostGuardEnds) {
  const Tensor weight = parameter({4, 4}), x = full({4, 4}, 0.5);
  std::int64_t kept = 0;
  {
    const AutocastGuard outer(kCPU);
    EXPECT_EQ(casts_in([&] { mm(x, weight); }), 32) << "a cast of 16 elements of 2 bytes, with a purpose of its own";
    EXPECT_EQ(casts_in([&] { mm(weight, weight); }), 0);
    {
      const AutocastGuard inner(kCPU);
      EXPECT_EQ(casts_in([&] { mm(x, weight); }), 0);
    }
    EXPECT_EQ(casts_in([&] { mm(x, weight); }), 0) << "the inner guard's end kept it";
    EXPECT_EQ(casts_in([&] { mm(x, x); }), 0) << "no leaf that requires a gradient";
    EXPECT_EQ(casts_in([&] { mm(x, weight.detach()); }), 0);
    EXPECT_EQ(casts_in([&] { mm(x, weight.narrow(0, 0, 4)); }), 0) << "a view";
    EXPECT_EQ(casts_in([] { autocast::clear_cache(); }), -32);
    kept = casts_in([&] { mm(x, weight); });
    EXPECT_EQ(kept, 32);
  }
  EXPECT_EQ(casts_in([&] {
              const AutocastGuard guard(kCPU);
              mm(x, weight);
            }),
            0);
  const AutocastGuard without(kCPU, kBFloat16, true, /*cache_enabled=*/false);
  EXPECT_FALSE(autocast::is_autocast_cache_enabled());
  EXPECT_EQ(casts_in([&] { mm(x, weight); }), 0);
}

TEST(Autocast, CastsAParameterAnewThatWasWrittenTo) {
  const Tensor weight = parameter({2, 2}), x = ones({2, 2});
  const AutocastGuard guard(kCPU);
  EXPECT_EQ(mm(x, weight).max().item<float>(), 1);
  {
    const NoGradGuard no_grad;
    weight.fill_(3);
  }
  EXPECT_EQ(mm(x, weight).max().item<float>(), 6);
}

TEST(Autocast, RecordsACastThatWasFirstKeptWithoutGradients) {
  const Tensor weight = parameter({2, 2}), x = ones({2, 2});
  const AutocastGuard guard(kCPU);
  {
    const NoGradGuard no_grad;
    EXPECT_FALSE(mm(x, weight).requires_grad());
  }
  EXPECT_TRUE(mm(x, weight).requires_grad());
}

TEST(Autocast, GuardsNestAndPutBackWhatTheyFound) {
  EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  EXPECT_EQ(autocast::get_autocast_dtype(kCPU), kBFloat16);
  EXPECT_EQ(autocast::get_autocast_dtype(kCUDA), kFloat16);
  const Tensor x = ones({2, 2});
  {
    const AutocastGuard outer("cpu", kFloat16);
    EXPECT_EQ(mm(x, x).scalar_type(), kFloat16);
    {
      const AutocastGuard off(kCPU, {}, /*enabled=*/false);
      EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
      EXPECT_EQ(mm(x, x).scalar_type(), kFloat32);
      const AutocastGuard inner(kCPU, kBFloat16);
      EXPECT_EQ(mm(x, x).scalar_type(), kBFloat16);
    }
    EXPECT_EQ(mm(x, x).scalar_type(), kFloat16);
    const AutocastGuard other(kCUDA);
    EXPECT_TRUE(autocast::is_autocast_enabled(kCUDA));
  }
  EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  EXPECT_FALSE(autocast::is_autocast_enabled(kCUDA));
  EXPECT_EQ(autocast::get_autocast_dtype(kCPU), kBFloat16);
  EXPECT_EQ(mm(x, x).scalar_type(), kFloat32);
}

TEST(Autocast, BelongsToItsThread) {
  const AutocastGuard guard(kCPU);
  Dtype there = kBFloat16;
  std::thread([&] { there = mm(ones({2, 2}), ones({2, 2})).scalar_type(); }).join();
  EXPECT_EQ(there, kFloat32);
}

TEST(Autocast, LeavesFloat64IntegersAndOtherDevicesAlone) {
  const AutocastGuard guard(kCUDA);
  EXPECT_EQ(mm(ones({2, 2}), ones({2, 2})).scalar_type(), kFloat32);
  const AutocastGuard here(kCPU);
  const Tensor wide = ones({2, 2}, TensorOptions(kFloat64));
  EXPECT_EQ(mm(wide, wide).scalar_type(), kFloat64);
  EXPECT_EQ(mse_loss(wide, wide).scalar_type(), kFloat64);
  EXPECT_EQ(cat({ones({2}, TensorOptions(kInt64)), ones({2}, TensorOptions(kInt64))}).scalar_type(), kInt64);
}

TEST(Autocast, RefusesOtherDtypesAndUnsafeOperators) {
  expect_error([] { AutocastGuard(kCPU, kFloat64); },
               "autocast on cpu computes in float16 or bfloat16, not in float64");
  EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  const AcceleratorLists lists;
  const AutocastGuard guard(kCPU);
  expect_error([] { binary_cross_entropy(full({2}, 0.5), ones({2})); }, "binary_cross_entropy is unsafe to autocast");
}

TEST(Autocast, IsTheSameWhenACheckpointIsComputedAgain) {
  for (const bool reentrant : {true, false}) {
    const Tensor weight = parameter({4, 4}), x = parameter({2, 4});
    std::vector<Dtype> dtypes;
    const auto part = [&](const Tensor& input) {
      const Tensor y = linear(input, weight);
      dtypes.push_back(y.scalar_type());
      return y.tanh();
    };
    Tensor y;
    {
      const AutocastGuard guard(kCPU);
      y = checkpoint([&](const autograd::variable_list& inputs) { return autograd::variable_list{part(inputs[0])}; },
                     autograd::variable_list{x}, {.use_reentrant = reentrant})[0];
    }
    y.sum().backward();
    EXPECT_EQ(dtypes, (std::vector<Dtype>{kBFloat16, kBFloat16})) << (reentrant ? "reentrant" : "by hooks");
    EXPECT_EQ(weight.grad().scalar_type(), kFloat32);
    EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  }
}

TEST(Autocast, BackwardFormulasComputeInTheDtypesOfTheForward) {
  const Tensor a = parameter({4}), b = parameter({4});
  const AutocastGuard guard(kCPU);
  const Tensor y = mv(a.reshape({2, 2}), b.narrow(0, 0, 2));  // in float32 on the cpu, and so is its gradient
  y.backward(full({2}, 1.0 + 1.0 / 1024));                    // which bfloat16 could not hold
  EXPECT_EQ(a.grad().select(0, 0).item<float>(), 0.5F * (1 + 1.0F / 1024));
}

TEST(Autocast, HalvesWhatProductsSave) {
  const Tensor x = full({64, 64}, 0.5), weight = parameter({64, 64});
  const auto saved_by = [&](bool enabled) {
    const AutocastGuard guard(kCPU, kBFloat16, enabled);
    const MemoryStats before = device_state(kCPU).allocator().stats();
    const Tensor y = linear(linear(x, weight).relu(), weight).relu();
    const MemoryStats after = device_state(kCPU).allocator().stats();
    const auto activation = static_cast<std::size_t>(Purpose::kActivation);
    return after.requested_by_purpose[activation].current - before.requested_by_purpose[activation].current;
  };
  // Two outputs of ReLU, and the cast of the input that the first product saves.
  EXPECT_EQ(saved_by(false), 2 * 64 * 64 * 4);
  EXPECT_EQ(saved_by(true), 3 * 64 * 64 * 2);
}

}  // namespace
}  // namespace tenon::test
