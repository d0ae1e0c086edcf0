// What a driver and a backend do that say nothing themselves, and what drivers may declare besides.
#include <tenon/core/error.h>
#include <tenon/device/foreign_streams.h>
#include <tenon/device/no_data.h>
#include <tenon/device/vendor_libraries.h>

#include <gtest/gtest.h>

#include <device/fake_driver.h>
#include <support/message_of.h>

#include <string>

namespace tenon {
namespace {

class BareDriver : public DeviceDriver {
 public:
  DeviceProperties properties() const override { return {.name = "bare"}; }
  MemorySource& memory() override { return source_; }
  void copy(void*, const void*, std::size_t, CopyKind, StreamRef) override {}
  void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}

 private:
  AddressOnlySource source_;
};

TEST(DriverDefaults, AreOneStreamOnWhichAllIsDoneAtOnce) {
  BareDriver driver;
  EXPECT_EQ(test::message_of([&] { driver.create_stream(0); }), "bare has one stream only: it works synchronously");
  EXPECT_EQ(driver.create_event(true).id, 0U);
  EXPECT_TRUE(driver.query(EventRef{}));
  EXPECT_EQ(driver.elapsed_ms({}, {}), 0);
  int runs = 0;
  driver.enqueue({}, [&] { ++runs; });
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(driver.begin_kernel({}));
  EXPECT_EQ(driver.threads(), 1);
  driver.set_threads(8);
  EXPECT_EQ(driver.threads(), 1) << "there is no choice";
  EXPECT_EQ(driver.pinned_host_memory(), nullptr);
  EXPECT_FALSE(driver.share_memory_with(1));
}

TEST(DriverDefaults, AreNoGraphs) {
  BareDriver driver;
  EXPECT_EQ(test::message_of([&] { driver.begin_capture({}); }), "bare has no graphs to capture work in");
  EXPECT_EQ(test::message_of([&] { driver.end_capture({}); }), "bare has no graphs to capture work in");
  EXPECT_FALSE(driver.capturing({}));
  EXPECT_EQ(test::message_of([&] { driver.launch({}, {}); }), "bare has no graphs to run");
}

TEST(BackendDefaults, AreNoOptionsNoReasonAndNoKernelsOfOthers) {
  class Bare final : public Backend {
   public:
    std::string name() const override { return "bare"; }
    std::string summary() const override { return "for tests"; }
    int device_count() override { return 0; }
    DeviceDriver& device(int) override { throw Error("there is none"); }
    void shutdown() noexcept override {}
  };
  Bare backend;
  EXPECT_TRUE(backend.options().empty());
  EXPECT_EQ(backend.why_unavailable(), "");
  EXPECT_EQ(backend.kernels_like(), "");
  EXPECT_FALSE(backend.takes_host_memory(Options(backend.options())));
}

class ForeignDriver final : public BareDriver, public TakesForeignStreams {
 public:
  StreamRef foreign_stream(std::uint64_t handle) override { return {handle + 1}; }
};
class EmptyDriver final : public BareDriver, public HoldsNoData {};
class LibraryDriver final : public BareDriver, public UsesVendorLibraries {
 public:
  bool has_library(std::string_view name) override { return name == "cudnn"; }
};

TEST(Capabilities, AreTheDriversThatDeclareThem) {
  BareDriver bare;
  ForeignDriver foreign;
  EmptyDriver empty;
  LibraryDriver library;
  EXPECT_EQ(takes_foreign_streams(bare), nullptr);
  ASSERT_NE(takes_foreign_streams(foreign), nullptr);
  EXPECT_EQ(takes_foreign_streams(foreign)->foreign_stream(7).id, 8U);
  EXPECT_TRUE(holds_data(bare));
  EXPECT_FALSE(holds_data(empty));
  EXPECT_FALSE(has_vendor_library(bare, "cudnn"));
  EXPECT_TRUE(has_vendor_library(library, "cudnn"));
  EXPECT_FALSE(has_vendor_library(library, "cublasLt"));
}

}  // namespace
}  // namespace tenon
