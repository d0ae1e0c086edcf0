// Serving: caches that hold the same keys and values in three ways, and requests that come and go.
#include "train/experiment_fixture.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/device/memory_api.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/model.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

namespace tenon::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using train::CacheKind;
using Words = std::vector<std::string>;

constexpr CacheKind kKinds[] = {CacheKind::kContiguous, CacheKind::kGrowing, CacheKind::kPaged};
constexpr train::CacheShape kShape{.layers = 2, .heads = 3, .depth = 4, .positions = 20, .page_positions = 4};

train::KeysValues drawn(std::int64_t count) { return {randn({count, 3, 4}), randn({count, 3, 4})}; }

TEST(KvCaches, HoldWhatWasAddedToEachLayerInItsOrder) {
  for (const CacheKind kind : kKinds) {
    const auto cache = train::make_cache(kind, kShape);
    std::vector<Tensor> keys[2], values[2];
    for (const std::int64_t count : {5, 1, 1, 1, 9}) {
      for (const std::int64_t layer : {0, 1}) {
        const train::KeysValues more = drawn(count);
        keys[layer].push_back(more.keys);
        values[layer].push_back(more.values);
        const train::KeysValues all = cache->append(layer, more);
        EXPECT_TRUE(all.keys.equal(cat(keys[layer], 0))) << "layer " << layer;
        EXPECT_TRUE(all.values.equal(cat(values[layer], 0))) << "layer " << layer;
        EXPECT_TRUE(all.keys.is_contiguous());
      }
    }
  }
}

TEST(KvCaches, AttendToTheSameWhereverItIsKept) {
  NoGradGuard no_grad;
  const auto contiguous = train::make_cache(CacheKind::kContiguous, kShape),
             paged = train::make_cache(CacheKind::kPaged, kShape);
  for (const std::int64_t count : {7, 1, 1, 1}) {  // the prompt, then symbol after symbol
    const Tensor queries = randn({count, 6, 4});
    const train::KeysValues more = drawn(count);
    const Tensor expected = contiguous->attend(1, queries, more), found = paged->attend(1, queries, more);
    EXPECT_EQ(found.sizes(), (std::vector<std::int64_t>{count, 6, 4}));
    EXPECT_TRUE(found.allclose(expected, 1e-5, 1e-6));
  }
}

TEST(KvCaches, InPagesAreReadWhereTheyAre) {
  NoGradGuard no_grad;
  const auto cache = train::make_cache(CacheKind::kPaged, kShape);
  cache->append(0, drawn(17));
  const Tensor query = randn({1, 3, 4});
  const train::KeysValues more = drawn(1);
  const auto asked = [] {
    std::int64_t bytes = 0;
    for (const PurposeUsage& usage : memory_by_purpose())
      if (usage.purpose != Purpose::kWorkspace) bytes += usage.requested_bytes.allocated;
    return bytes;
  };
  const std::int64_t before = asked();
  cache->attend(0, query, more);
  EXPECT_EQ(asked() - before, 3 * 4 * 4) << "the result alone: a copy of 18 positions would take 1,728 bytes";
}

TEST(KvCaches, ForgetWhatCameAfterALength) {
  for (const CacheKind kind : kKinds) {
    const auto cache = train::make_cache(kind, kShape);
    const train::KeysValues first = drawn(6), wrong = drawn(3), right = drawn(1);
    cache->append(0, first);
    cache->append(0, wrong);
    cache->append(1, first);  // a step that ended between the layers
    cache->rewind(6);
    for (const std::int64_t layer : {0, 1})
      EXPECT_TRUE(cache->append(layer, right).keys.equal(cat({first.keys, right.keys}, 0)));
    cache->rewind(0);
    EXPECT_TRUE(cache->append(0, right).values.equal(right.values));
  }
}

TEST(KvCaches, ReserveAllAtOnceOrAsMuchAsThereIsOrWholePages) {
  const std::int64_t position = 2 * 2 * 3 * 4 * 4;
  EXPECT_EQ(kShape.position_bytes(), position);
  EXPECT_EQ(reserved_bytes(CacheKind::kContiguous, kShape, 5), 20 * position);
  EXPECT_EQ(reserved_bytes(CacheKind::kGrowing, kShape, 5), 5 * position);
  EXPECT_EQ(reserved_bytes(CacheKind::kPaged, kShape, 5), 8 * position);
  EXPECT_EQ(reserved_bytes(CacheKind::kPaged, kShape, 8), 8 * position);
}

train::Model made(const std::string& name, const Words& settings) {
  Options options(training_sections().front().options);
  options.set_text("name", name);
  options.set_text("hidden", "16");
  options.set_text("heads", "4");
  for (std::size_t i = 0; i + 1 < settings.size(); i += 2) options.set_text(settings[i], settings[i + 1]);
  manual_seed(3);
  train::Model model = train::make_model({.options = options, .data = {.vocabulary = 11, .context = 20}});
  model.module->eval();
  model.cache.positions = 20;
  model.cache.page_positions = 4;
  return model;
}

Tensor numbers(std::vector<std::int64_t> values) { return tensor(values, TensorOptions(kInt64)); }

// Two requests of 5 and 3 symbols, then one more symbol of each: the logits are those of the whole windows.
TEST(KvCaches, GiveTheLogitsThatTheWholeTextGives) {
  NoGradGuard no_grad;
  const std::vector<std::int64_t> one{1, 5, 2, 9, 4, 7}, other{3, 8, 10, 6};
  const Words grouped{"kv_heads", "2"};
  for (const auto& [name, settings] : std::map<std::string, Words>{{"gpt", {}}, {"llama", grouped}}) {
    train::Model model = made(name, settings);
    const auto last_of = [&](const std::vector<std::int64_t>& window) {
      return model.forward(numbers(window).unsqueeze(0)).select(1, -1);
    };
    for (const CacheKind kind : kKinds) {
      const auto a = train::make_cache(kind, model.cache), b = train::make_cache(kind, model.cache);
      const Tensor first = model.serve({.symbols = numbers({1, 5, 2, 9, 4, 3, 8, 10}),
                                        .positions = numbers({0, 1, 2, 3, 4, 0, 1, 2}),
                                        .last = numbers({4, 7}),
                                        .spans = {{a.get(), 0, 5}, {b.get(), 5, 3}}});
      const Tensor second = model.serve({.symbols = numbers({7, 6}),
                                         .positions = numbers({5, 3}),
                                         .last = numbers({0, 1}),
                                         .spans = {{a.get(), 0, 1}, {b.get(), 1, 1}}});
      EXPECT_TRUE(first.narrow(0, 0, 1).allclose(last_of({1, 5, 2, 9, 4}), 1e-4, 1e-6)) << name;
      EXPECT_TRUE(first.narrow(0, 1, 1).allclose(last_of({3, 8, 10}), 1e-4, 1e-6)) << name;
      EXPECT_TRUE(second.narrow(0, 0, 1).allclose(last_of(one), 1e-4, 1e-6)) << name;
      EXPECT_TRUE(second.narrow(0, 1, 1).allclose(last_of(other), 1e-4, 1e-6)) << name;
    }
  }
}

class Serving : public Experiment {
 protected:
  /// Thirty requests of a small model; `more` wins.
  ExperimentResult serve(Words more) {
    Words words{"model.name=\"gpt\"",  "model.hidden=16",    "model.layers=2",      "model.heads=4",
                "model.context=64",    "serve.requests=30",  "serve.arrivals=2.0",  "serve.prompt_min=4",
                "serve.prompt_max=24", "serve.output_min=4", "serve.output_max=24", "serve.page=4"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  std::string mistake(Words more) {
    try {
      serve(std::move(more));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  static double figure(const ExperimentResult& result, const std::string& wanted) {
    for (const auto& [name, value] : result.figures)
      if (name == wanted) return value;
    ADD_FAILURE() << "no figure " << wanted;
    return -1;
  }
};

TEST_F(Serving, GivesTheSameSymbolsUnderEveryCacheAndAllocator) {
  for (const char* model : {"gpt", "llama"}) {
    std::set<double> hashes;
    for (const char* cache : {"contiguous", "growing", "paged"}) {
      for (const char* allocator : {"direct", "caching", "expandable"}) {
        const ExperimentResult result =
            serve({fmt::format("model.name=\"{}\"", model), fmt::format("serve.cache=\"{}\"", cache),
                   fmt::format("allocator.name=\"{}\"", allocator)});
        EXPECT_EQ(figure(result, "served_requests"), 30);
        EXPECT_EQ(figure(result, "given_up"), 0);
        EXPECT_EQ(live_bytes, 0) << "the caches and the model are gone";
        hashes.insert(figure(result, "tokens_hash"));
      }
    }
    EXPECT_EQ(hashes.size(), 1u) << model;
  }
  EXPECT_NE(figure(serve({}), "tokens_hash"), figure(serve({"serve.seed=48"}), "tokens_hash"));
}

TEST_F(Serving, WastesWhatIsReservedAndUnused) {
  const auto waste = [&](const char* cache) { return figure(serve({cache}), "kv_waste"); };
  EXPECT_EQ(waste("serve.cache=\"growing\""), 0);
  EXPECT_GT(waste("serve.cache=\"contiguous\""), 0.5) << "most requests are far shorter than the context";
  EXPECT_GT(waste("serve.cache=\"paged\""), 0.02);
  EXPECT_LT(waste("serve.cache=\"paged\""), 0.2) << "half a page of four positions each";
}

TEST_F(Serving, FitsMoreRequestsIntoPagesThanIntoWholeContexts) {
  const std::int64_t context_bytes = 64 * 2 * 2 * 16 * 4;
  const std::string four = fmt::format("serve.kv_memory={}", 4 * context_bytes);
  const ExperimentResult whole = serve({four, "serve.cache=\"contiguous\""}),
                         paged = serve({four, "serve.cache=\"paged\""});
  EXPECT_EQ(figure(whole, "most_at_once"), 4);
  EXPECT_GT(figure(paged, "most_at_once"), 7);
  EXPECT_LT(paged.steps, whole.steps) << "nobody waits as long";
  for (const ExperimentResult* result : {&whole, &paged}) {
    EXPECT_EQ(figure(*result, "served_requests"), 30);
    EXPECT_LE(figure(*result, "kv_peak_bytes"), 4 * context_bytes);
  }
  EXPECT_EQ(figure(whole, "given_up"), 0);
  EXPECT_GT(figure(paged, "given_up"), 0) << "pages run out while requests grow";
}

TEST_F(Serving, MeasuresTheMemoryOfTheCachesApartFromAllOther) {
  const ExperimentResult result = serve({"serve.cache=\"paged\""});
  const auto measured =
      static_cast<double>(result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kKvCache)].peak);
  EXPECT_EQ(measured, figure(result, "kv_peak_bytes"));
}

TEST_F(Serving, GoesOnWithFewerRequestsWhereTheDeviceIsFull) {
  const Words device{"device.name=\"simulated:0\"", "allocator.name=\"direct\"", "serve.cache=\"paged\"",
                     "serve.arrivals=30.0",         "model.hidden=128",          "model.layers=4"};
  const auto with_capacity = [&](std::int64_t bytes) {
    Words words = device;
    words.push_back(fmt::format("device.simulated.capacity={}", bytes));
    return words;
  };
  const ExperimentResult ample = serve(with_capacity(1 << 30));
  EXPECT_EQ(figure(ample, "given_up"), 0);
  const ExperimentResult scarce = serve(with_capacity(ample.memory.reserved_bytes.peak * 2 / 3));
  EXPECT_GT(figure(scarce, "given_up"), 0);
  EXPECT_EQ(figure(scarce, "served_requests"), 30);
  EXPECT_LT(figure(scarce, "most_at_once"), figure(ample, "most_at_once"));
  EXPECT_THAT(mistake(with_capacity(2 << 20)), HasSubstr("needs"));
}

TEST_F(Serving, OnAddressesAloneAsksForWhatItAsksForInEarnest) {
  for (const char* cache : {"contiguous", "growing", "paged"}) {
    const std::string word = fmt::format("serve.cache=\"{}\"", cache);
    const ExperimentResult earnest = serve({word, "device.name=\"simulated:0\""});
    const ExperimentResult cheap =
        serve({word, "device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\""});
    EXPECT_EQ(earnest.steps, cheap.steps);
    EXPECT_EQ(earnest.memory.allocated_bytes.peak, cheap.memory.allocated_bytes.peak) << cache;
    EXPECT_EQ(earnest.memory.reserved_bytes.peak, cheap.memory.reserved_bytes.peak) << cache;
    EXPECT_EQ(figure(earnest, "kv_waste"), figure(cheap, "kv_waste"));
  }
}

TEST_F(Serving, MayHaveWeightsOfIntegers) {
  const auto parameters = [&](const char* scheme) {
    const ExperimentResult result = serve({std::string("train.quantize=\"") + scheme + "\""});
    return result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kParameter)].current;
  };
  const std::int64_t floats = parameters("none"), bytes = parameters("weight_only_int8");
  EXPECT_LT(bytes, floats * 2 / 3);
  EXPECT_LT(parameters("weight_only_int4"), bytes);
  const std::int64_t count = serve({}).parameters;
  for (const char* scheme : {"weight_only_int8", "weight_only_int4"})
    EXPECT_EQ(serve({std::string("train.quantize=\"") + scheme + "\""}).parameters, count) << scheme;
  EXPECT_THAT(mistake({"train.quantize=\"static\""}),
              HasSubstr("requests are served with weights of integers or none"));
  EXPECT_THAT(mistake({"train.resume=\"state\""}), HasSubstr("serving draws its parameters"));
}

TEST_F(Serving, OfWhatDoesNotFitIsRefusedWithTheNumbers) {
  EXPECT_THAT(mistake({"model.name=\"mlp\""}), HasSubstr("'mlp' serves no requests; gpt, gpt2, llama do"));
  EXPECT_THAT(mistake({"model.context=40"}),
              AllOf(HasSubstr("40 positions"), HasSubstr("prompt of 24 and 24 symbols")));
  EXPECT_THAT(mistake({"serve.output_max=3"}), HasSubstr("3 is less than serve.output_min = 4"));
  EXPECT_THAT(mistake({"serve.kv_memory=1000"}), AllOf(HasSubstr("1000 bytes"), HasSubstr("64 positions")));
}

}  // namespace
}  // namespace tenon::test
