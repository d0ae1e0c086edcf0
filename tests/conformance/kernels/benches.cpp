// Loads the backend plugin and runs its kernels: in place where the host reaches the device's memory, else on copies
// of the operands in its memory.
#include "harness.h"
#include "target.h"

#include <tenon/core/error.h>
#include <tenon/plugin/backend_plugin.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

namespace tenon::conformance {
namespace {

class Collector final : public plugin::Host {
 public:
  void add_allocator(AllocatorInfo) override {}
  void add_backend(std::unique_ptr<Backend> backend) override { backend_ = std::move(backend); }
  void add_kernel(DeviceType, std::string_view name, Kernel kernel) override { kernels_[std::string(name)] = kernel; }
  void log(plugin::LogLevel, std::string_view) override {}
  void add_communicator(const CommunicatorInfo&) override {}

  std::unique_ptr<Backend> backend_;
  std::map<std::string, Kernel, std::less<>> kernels_;
};

constexpr std::size_t kGuardBytes = 64;
constexpr char kUntouched = static_cast<char>(0xA5);
constexpr std::size_t kAddresses = std::size_t{1} << 36;  // more than any operand has bytes
constexpr std::string_view kRehearsed = ".workspace";

/// Bytes that a kernel uses. `host` is what they are to begin with, and, after take_back, what has become of them.
class DeviceBytes {
 public:
  DeviceBytes(DeviceDriver& driver, std::span<char> host) : driver_(driver), host_(host) {
    bytes_ = std::max<std::size_t>(host.size(), 1);
    data_ = static_cast<char*>(driver.memory().acquire(bytes_));
    if (data_ == nullptr) throw Error("the device has no " + std::to_string(bytes_) + " bytes");
    if (!host.empty()) driver.copy(data_, host.data(), host.size(), CopyKind::kHostToDevice, {});
  }
  ~DeviceBytes() { driver_.memory().release(data_, bytes_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  char* data() const { return data_; }
  std::span<char> host() const { return host_; }
  void take_back() {
    if (!host_.empty()) driver_.copy(host_.data(), data_, host_.size(), CopyKind::kDeviceToHost, {});
  }

 private:
  DeviceDriver& driver_;
  std::span<char> host_;
  std::size_t bytes_ = 0;
  char* data_ = nullptr;
};

/// Addresses that nobody may read or write: whoever does so dies.
char* addresses_alone() {
  static char* const addresses = [] {
    void* room = ::mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) throw Error("there is no address space for a rehearsal");
    return static_cast<char*>(room);
  }();
  return addresses;
}

class Context final : public KernelContext {
 public:
  /// `rehearses`: operands and scratch are addresses without bytes, as kernels "NAME.workspace" are promised no more.
  Context(DeviceDriver& driver, bool rehearses)
      : driver_(driver), on_host_(driver.properties().host_accessible), rehearses_(rehearses && on_host_) {}
  StreamRef stream() const override { return {}; }
  DeviceDriver& driver() const override { return driver_; }

  /// The tensor's view of the same bytes on the device; tensors that share memory share it there.
  TensorView view(const Tensor& tensor) {
    TensorView view = tensor.view();
    if (!tensor.defined()) return view;
    if (rehearses_) view.data = addresses_alone();
    if (on_host_) return view;
    const std::span<char> host = tensor.memory();
    const auto first = static_cast<const char*>(view.data) - host.data();
    for (const auto& operand : operands_) {
      if (operand->host().data() == host.data()) {
        view.data = operand->data() + first;
        return view;
      }
    }
    operands_.push_back(std::make_unique<DeviceBytes>(driver_, host));
    view.data = operands_.back()->data() + first;
    return view;
  }

  void* scratch(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    sizes_.push_back(bytes);
    if (rehearses_) return addresses_alone();
    // Guarded on both sides and filled, so that a kernel that counts on zeros or overruns is seen.
    pieces_.push_back(std::make_unique<std::vector<char>>(bytes + kScratchAlignment + 2 * kGuardBytes, kUntouched));
    if (on_host_) return aligned(*pieces_.back());
    scratches_.push_back(
        std::make_unique<DeviceBytes>(driver_, std::span<char>(aligned(*pieces_.back()), bytes + kGuardBytes)));
    return scratches_.back()->data();
  }

  i64 scratch_bytes() const { return static_cast<i64>(std::accumulate(sizes_.begin(), sizes_.end(), std::size_t{0})); }

  /// Waits for the kernel, and brings what it wrote to the host.
  void finish() {
    driver_.synchronize();
    for (const auto& bytes : operands_) bytes->take_back();
    for (const auto& bytes : scratches_) bytes->take_back();
    driver_.synchronize();
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const char* after = aligned(*pieces_[i]) + sizes_[i];
      ASSERT_TRUE(std::all_of(after, after + kGuardBytes, [](char byte) { return byte == kUntouched; }))
          << "a kernel overran its scratch";
    }
  }

 private:
  static char* aligned(std::vector<char>& piece) {
    const auto address = reinterpret_cast<std::uintptr_t>(piece.data()) + kGuardBytes;
    return reinterpret_cast<char*>((address + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment);
  }

  DeviceDriver& driver_;
  const bool on_host_, rehearses_;
  std::vector<std::unique_ptr<DeviceBytes>> operands_;
  std::vector<std::unique_ptr<std::vector<char>>> pieces_;
  std::vector<std::size_t> sizes_;
  std::vector<std::unique_ptr<DeviceBytes>> scratches_;  // of pieces_, where they are elsewhere
};

/// Of what a kernel is given it changes the elements of its results, and nothing between, before or behind them.
class Untouched {
 public:
  Untouched(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs) : outputs_(outputs) {
    for (const auto* list : {&outputs, &inputs}) {
      for (const Tensor& tensor : *list) {
        if (tensor.defined() && !before_.contains(&tensor.room())) before_.emplace(&tensor.room(), tensor.room());
      }
    }
  }
  void expect() const {
    for (const auto& [room, before] : before_) {
      if (*room == before) continue;
      std::vector<char> after = *room;
      for (const Tensor& output : outputs_) {
        if (output.defined() && &output.room() == room) output.copy_elements(before, after);
      }
      EXPECT_TRUE(after == before) << "a kernel wrote beside the elements of its results, byte "
                                   << std::mismatch(after.begin(), after.end(), before.begin()).first - after.begin()
                                   << " of " << after.size();
    }
  }

 private:
  const std::vector<Tensor>& outputs_;
  std::map<const std::vector<char>*, std::vector<char>> before_;
};

bool is_finite(const Tensor& tensor) {
  for (i64 i = 0; i < tensor.count(); ++i)
    if (!std::isfinite(tensor.real(i))) return false;
  return true;
}

/// Of a backend that need not have it.
struct MissingKernel {
  std::string name;
};

const char* chosen_plugin() { return std::getenv("TENON_CONFORMANCE_PLUGIN"); }

class LevelBench final : public Bench {
 public:
  LevelBench(
      std::string level, Backend& backend, std::map<std::string, Kernel, std::less<>> kernels,
      std::function<void()> enter = [] {})
      : level_(std::move(level)), backend_(backend), kernels_(std::move(kernels)), enter_(std::move(enter)) {}
  void enter() override {
    backend_.shutdown();
    enter_();
  }
  const std::string& level() const override { return level_; }
  bool has(std::string_view kernel) const override { return kernels_.contains(kernel); }
  bool is_whole() const override { return chosen_plugin() == nullptr; }
  void require(std::string_view kernel) const override {
    if (!has(kernel) && !is_whole()) throw MissingKernel{std::string(kernel)};
  }
  DeviceDriver& driver() override { return backend_.device(0); }
  i64 workspace_of(std::string_view kernel, std::vector<Tensor> outputs, std::vector<Tensor> inputs,
                   const void* attributes) override {
    const auto found = kernels_.find(kernel);
    if (found == kernels_.end()) {
      require(kernel);
      ADD_FAILURE() << "the backend has no kernel '" << kernel << "'";
      return 0;
    }
    const Untouched others(outputs, inputs);
    Context context(driver(), kernel.ends_with(kRehearsed));
    std::vector<TensorView> out, in;
    for (const Tensor& t : outputs) out.push_back(context.view(t));
    for (const Tensor& t : inputs) in.push_back(context.view(t));
    found->second(context, out, in, attributes);
    context.finish();
    others.expect();
    expect_as_rehearsed(kernel, outputs, inputs, attributes, context.scratch_bytes());
    return context.scratch_bytes();
  }

 private:
  /// A rehearsal takes what the kernel took. Where a result is not finite that may be more: it was made anew.
  void expect_as_rehearsed(std::string_view kernel, const std::vector<Tensor>& outputs,
                           const std::vector<Tensor>& inputs, const void* attributes, i64 taken) {
    const std::string rehearsal = std::string(kernel) + std::string(kRehearsed);
    if (!has(rehearsal)) return;
    const i64 foretold = workspace_of(rehearsal, outputs, inputs, attributes);
    EXPECT_TRUE(foretold == taken || (foretold < taken && !is_finite(outputs[0])))
        << kernel << " took " << taken << " bytes of scratch, and its rehearsal " << foretold;
  }

  std::string level_;
  Backend& backend_;
  std::map<std::string, Kernel, std::less<>> kernels_;
  std::function<void()> enter_;
};

const plugin::Descriptor& load(const std::string& path) {
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) throw Error("cannot load " + path + ": " + ::dlerror());
  const auto* descriptor = static_cast<const plugin::Descriptor*>(::dlsym(module, plugin::kDescriptorSymbol));
  if (!descriptor) throw Error(path + " is not a Tenon plugin");
  return *descriptor;
}

struct Loaded {
  Collector collector;
  std::vector<std::unique_ptr<LevelBench>> levels;

  Loaded() {
    const std::string path = chosen_plugin() != nullptr ? chosen_plugin() : target().plugin;
    const plugin::Descriptor& descriptor = load(path);
    descriptor.register_plugin(collector);
    Backend& backend = *collector.backend_;
    bool has_levels = false;
    for (const OptionSpec& option : backend.options()) has_levels |= option.name == "isa";
    if (!has_levels) {
      backend.configure(Options(backend.options()));
      for (const Level& level : target().levels) {
        levels.push_back(std::make_unique<LevelBench>(level.name, backend, collector.kernels_, level.enter));
      }
      if (levels.empty()) levels.push_back(std::make_unique<LevelBench>(backend.name(), backend, collector.kernels_));
      return;
    }
    for (const char* level : {"sse2", "avx2", "avx512"}) {
      Options options(backend.options());
      options.set_text("isa", level);
      options.set_text("threads", "3");
      try {
        backend.configure(options);
      } catch (const ConfigError&) {
        continue;  // this machine lacks it
      }
      collector.kernels_.clear();
      Options again(backend.options());
      again.set_text("isa", level);
      descriptor.register_plugin(scratch_);
      scratch_.backend_->configure(again);
      // Some kernels ask for the level's functions when they run: the level is switched to before its cases.
      const auto enter = [&backend, options] { backend.configure(options); };
      levels.insert(levels.begin(), std::make_unique<LevelBench>(level, backend, scratch_.kernels_, enter));
    }
  }
  Collector scratch_;
};

}  // namespace

std::set<std::string> kernels_of(const std::string& plugin) {
  Collector collector;
  load(plugin).register_plugin(collector);
  std::set<std::string> names;
  for (const auto& [name, kernel] : collector.kernels_) names.insert(name);
  return names;
}

std::vector<Bench*> benches() {
  static Loaded& loaded = *new Loaded;
  std::vector<Bench*> all;
  for (const auto& level : loaded.levels) all.push_back(level.get());
  return all;
}

void for_each_bench(const test::FunctionRef<void(Bench&)>& test) {
  for (Bench* bench : benches()) {
    SCOPED_TRACE("level " + bench->level());
    bench->enter();
    try {
      test(*bench);
    } catch (const MissingKernel& missing) {
      GTEST_SKIP() << "the backend has no kernel '" << missing.name << "'";
    }
  }
}

}  // namespace tenon::conformance
