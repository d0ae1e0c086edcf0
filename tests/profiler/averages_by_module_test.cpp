// Rows by module: what happens in a module and below it, whichever model it is of.
#include "profiler/small_model.h"

#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/parallel.h>

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using profiler::AverageList;
using profiler::GroupBy;
using profiler::Profile;

void record(Profile& profile, const std::function<void()>& program) {
  profile.start();
  program();
  profile.stop();
}

TEST(AveragesByModule, HoldWhatHappensInAModuleAndBelow) {
  SmallTraining training;
  training.step();
  Profile profile({.profile_memory = true});
  record(profile, [&] { training.step(); });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  const auto* root = rows.find("SmallNet");
  const auto* encoder = rows.find("encoder");
  const auto* head = rows.find("head");
  ASSERT_TRUE(root != nullptr && encoder != nullptr && head != nullptr);
  EXPECT_EQ(encoder->count, 1);
  EXPECT_GT(encoder->self_cpu_time_total, 0);
  EXPECT_NEAR(root->cpu_time_total,
              root->self_cpu_time_total + encoder->self_cpu_time_total + head->self_cpu_time_total, 1e-6);
}

/// A tree of two layers in a "main", which is called once; two types of them.
template <int kHidden>
struct TwoLayersImpl : nn::Module {
  TwoLayersImpl() { main = register_module("main", nn::Sequential(nn::Linear(8, kHidden), nn::Linear(kHidden, 8))); }
  Tensor forward(const Tensor& x) { return main->forward(x); }
  nn::Sequential main;
};
struct GeneratorImpl : TwoLayersImpl<4> {};
TENON_MODULE(Generator);
struct DiscriminatorImpl : TwoLayersImpl<16> {};
TENON_MODULE(Discriminator);

TEST(AveragesByModule, TellEqualPathsBelowSeveralRootsApart) {
  Generator generator;
  Discriminator discriminator;
  Profile profile({.profile_memory = true, .with_flops = true});
  record(profile, [&] {
    for (int i = 0; i < 3; ++i) generator(ones({2, 8}));
    discriminator(ones({2, 8})).sum().backward();
  });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  EXPECT_EQ(rows.find("main.0"), nullptr) << rows.table();
  for (const char* key : {"Generator", "Generator.main", "Generator.main.0", "Generator.main.1"}) {
    ASSERT_NE(rows.find(key), nullptr) << key << "\n" << rows.table();
    EXPECT_EQ(rows.find(key)->count, 3) << key;
  }
  for (const std::string root : {"Generator", "Discriminator"}) {
    double us = 0;
    std::int64_t bytes = 0;
    for (const char* below : {"", ".main", ".main.0", ".main.1"}) {
      const auto* row = rows.find(root + below);
      ASSERT_NE(row, nullptr) << root << below << "\n" << rows.table();
      us += row->self_cpu_time_total;
      bytes += row->self_cpu_memory_usage;
    }
    EXPECT_NEAR(rows.find(root)->cpu_time_total, us, 1e-6 * us) << root;
    EXPECT_EQ(rows.find(root)->cpu_memory_usage, bytes) << root;
  }
  EXPECT_EQ(rows.find("Discriminator")->count, 1);
  const profiler::EventAverage& layer = *rows.find("Discriminator.main.1");
  EXPECT_GT(layer.flops, 2 * 2 * 2 * 8 * 16) << "of both passes";
}

TEST(AveragesByModule, KnowModelsWhoseCallsNobodySaw) {
  Generator generator;
  Discriminator discriminator;
  Profile profile;
  record(profile, [&] {
    generator->forward(ones({2, 8}));
    discriminator->forward(ones({2, 8})).sum().backward();
  });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  for (const std::string root : {"Generator", "Discriminator"}) {
    ASSERT_NE(rows.find(root), nullptr) << rows.table();
    EXPECT_EQ(rows.find(root)->count, 0) << root;
    double us = 0;
    for (const char* below : {".main", ".main.0", ".main.1"}) {
      const auto* row = rows.find(root + below);
      ASSERT_NE(row, nullptr) << root << below << "\n" << rows.table();
      EXPECT_EQ(row->count, 1) << root << below;
      us += row->self_cpu_time_total;
    }
    EXPECT_NEAR(rows.find(root)->cpu_time_total, us, 1e-6 * us) << root;
  }
  EXPECT_EQ(rows.find("main.0"), nullptr) << rows.table();
}

/// A model with a name of its own, and one layer.
struct NamedImpl : nn::Module {
  NamedImpl(const std::string& name, const std::string& layer_name) : Module(name) {
    layer = register_module(layer_name, nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) { return layer(x); }
  nn::Linear layer{nullptr};
};

TEST(AveragesByModule, TellModelsOfOneTypeApartByTheirOwnNames) {
  NamedImpl teacher("teacher", "fc"), student("student", "fc");
  Profile profile;
  record(profile, [&] {
    teacher.forward(ones({2, 4}));
    student.forward(ones({2, 4}));
  });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  for (const char* key : {"teacher", "teacher.fc", "student", "student.fc"})
    EXPECT_NE(rows.find(key), nullptr) << key << "\n" << rows.table();
}

TEST(AveragesByModule, TellARootFromAPathOfItsName) {
  NamedImpl root("head", "head"), other("net", "head");
  Profile profile;
  record(profile, [&] {
    root.forward(ones({2, 4}));
    other.forward(ones({2, 4}));
  });
  std::set<std::string> keys;
  for (const profiler::EventAverage& row : profile.key_averages(GroupBy::kModule).rows())
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
  for (const char* key : {"head", "head.head", "net", "net.head"}) EXPECT_EQ(keys.count(key), 1U) << key;
}

TEST(AveragesByModule, HaveCallsOfModulesThatRunOnSeveralDevices) {
  Generator generator;
  Profile profile;
  record(profile, [&] { nn::parallel::data_parallel(generator, ones({2, 8}), std::vector<Device>{kCPU}); });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  ASSERT_NE(rows.find("Generator"), nullptr) << rows.table();
  EXPECT_EQ(rows.find("Generator")->count, 1);
}

TEST(AveragesByModule, LinkABackwardNodeToItsOwnThreadsOperator) {
  Profile profile;
  record(profile, [] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([] {
        Generator model;
        for (int step = 0; step < 60; ++step) model(ones({2, 8})).sum().backward();
      });
    for (std::thread& thread : threads) thread.join();
  });
  const auto& events = profile.recording().events;
  int links = 0;
  for (const profiler::Event& event : events) {
    if (event.kind != profiler::EventKind::kBackward || event.forward < 0) continue;
    const profiler::Event& forward = events[static_cast<std::size_t>(event.forward)];
    EXPECT_EQ(forward.thread, event.thread);
    EXPECT_LE(forward.start_ns, event.start_ns);
    ++links;
  }
  EXPECT_GE(links, 2 * 60 * 3);
}

TEST(AveragesByModule, NameTheRootWhereAPathIsSharedAlone) {
  Generator generator;
  SmallTraining training;
  nn::Linear lone(4, 4);
  Profile profile;
  record(profile, [&] {
    generator(ones({2, 8}));
    training.step();
    lone(ones({2, 4}));
  });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  for (const char* key : {"Generator", "main.0", "SmallNet", "encoder", "Linear"})
    ASSERT_NE(rows.find(key), nullptr) << key << "\n" << rows.table();
  const auto total = [&](const char* key) { return rows.find(key)->cpu_time_total; };
  const auto self = [&](const char* key) { return rows.find(key)->self_cpu_time_total; };
  EXPECT_NEAR(total("SmallNet"), self("SmallNet") + self("encoder") + self("head"), 1e-6 * total("SmallNet"));
  EXPECT_NEAR(total("Generator"), self("main.0") + self("main.1"), 1e-6 * total("Generator"));
  EXPECT_EQ(total("Linear"), self("Linear"));
}

/// A model of its own that is called inside of another, and is none of its modules.
struct CriticImpl : nn::Module {
  explicit CriticImpl(Discriminator critic) : critic(std::move(critic)) {}
  Tensor forward(const Tensor& x) { return critic(x).mean(); }
  Discriminator critic;
};
TENON_MODULE(Critic);

TEST(AveragesByModule, OfARootHoldTheRootsThatItCalls) {
  Discriminator discriminator;
  Critic critic(discriminator);
  Profile profile;
  record(profile, [&] {
    critic(ones({2, 8})).backward();
    discriminator(ones({2, 8}));
  });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  ASSERT_TRUE(rows.find("Critic") != nullptr && rows.find("Discriminator") != nullptr) << rows.table();
  EXPECT_GT(rows.find("Critic")->cpu_time_total, rows.find("Critic")->self_cpu_time_total);
  EXPECT_LT(rows.find("Critic")->cpu_time_total,
            rows.find("Critic")->self_cpu_time_total + rows.find("Discriminator")->cpu_time_total);
}

/// A module of a one-letter name, and a layer below it.
struct LetterImpl : nn::Module {
  LetterImpl() { a = register_module("a", nn::Sequential(nn::Linear(8, 8))); }
  Tensor forward(const Tensor& x) { return a->forward(x); }
  nn::Sequential a;
};
TENON_MODULE(Letter);

TEST(AveragesByModule, OfAModuleOfOneLetterHoldWhatIsBelowIt) {
  Letter model;
  Profile profile;
  record(profile, [&] { model(ones({2, 8})); });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  ASSERT_TRUE(rows.find("a") != nullptr && rows.find("a.0") != nullptr) << rows.table();
  EXPECT_GT(rows.find("a.0")->self_cpu_time_total, 0);
  EXPECT_NEAR(rows.find("a")->cpu_time_total,
              rows.find("a")->self_cpu_time_total + rows.find("a.0")->self_cpu_time_total, 1e-6);
}

TEST(AveragesByModule, HaveOperationsAsTotals) {
  SmallTraining training;
  Profile profile({.with_flops = true});
  record(profile, [&] { training.step(); });
  const AverageList rows = profile.key_averages(GroupBy::kModule);
  const double encoder = rows.find("encoder")->flops, head = rows.find("head")->flops;
  EXPECT_GT(encoder, 0);
  EXPECT_GE(rows.find("SmallNet")->flops, encoder + head);
}

}  // namespace
}  // namespace tenon::test
