// libtenon_pytorch_allocator by its C functions, called as PyTorch calls them, on an emulated CUDA device: blocks are
// used on streams that CUDA made and Tenon did not, and the machine ends the test where memory reaches another stream
// too early.
#include "plugins/emulated_device.h"
#include "support/json.h"
#include "support/message_of.h"
#include "support/scratch_folder.h"

#include <tenon/core/units.h>

#include <tenon_torch.h>

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <thread>

namespace tenon::test {
namespace {

using emulated_cuda::Order;
using testing::AllOf;
using testing::HasSubstr;

class PytorchAllocator : public EmulatedCuda {
 protected:
  void SetUp() override { start("caching", {.capacity_bytes = 256 * MiB, .order = Order::kLastMoment}); }
  void TearDown() override {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    EXPECT_EQ(tenon_torch_close(), 0) << tenon_torch_last_error();
    ::unsetenv("TENON_ALLOCATOR");
    EmulatedCuda::TearDown();
  }

  /// A machine on which nothing has happened; "" configures nothing.
  void start(const std::string& allocator, const emulated_cuda::Settings& settings) {
    ASSERT_EQ(tenon_torch_close(), 0) << tenon_torch_last_error();
    restart(settings);
    if (allocator.empty()) return;
    ASSERT_EQ(tenon_torch_configure(allocator.c_str()), 0) << tenon_torch_last_error();
  }
  cudaStream_t new_stream() {
    streams_.emplace_back();
    cudaStreamCreateWithFlags(&streams_.back(), cudaStreamNonBlocking);
    return streams_.back();
  }
  void* take(std::size_t bytes, cudaStream_t stream = nullptr, int device = 0) {
    return tenon_torch_alloc(static_cast<ssize_t>(bytes), device, stream);
  }
  void give(void* pointer) { tenon_torch_free(pointer, 0, 0, nullptr); }
  static nlohmann::json stats(int device = 0) {
    const char* const text = tenon_torch_memory_stats(device);
    return text != nullptr ? parse_json(text) : nlohmann::json(tenon_torch_last_error());
  }
  static std::int64_t figure(const char* key) { return stats().at(key).get<std::int64_t>(); }

 private:
  std::vector<cudaStream_t> streams_;
};

TEST_F(PytorchAllocator, GivesMemoryThatIsUsedAndCounted) {
  void* const block = take(1000);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 512, 0U);
  EXPECT_EQ(cudaMemsetAsync(block, 7, 1000, nullptr), cudaSuccess);
  EXPECT_EQ(fetch(0, block, 1000)[999], 7);
  EXPECT_EQ(figure("allocated_bytes.all.current"), 1024);
  EXPECT_EQ(figure("requested_bytes.all.current"), 1000);
  EXPECT_EQ(figure("reserved_bytes.all.current"), 2 * MiB);
  EXPECT_EQ(figure("tenon.device_calls"), 1);
  give(block);
  EXPECT_EQ(figure("allocated_bytes.all.current"), 0);
  EXPECT_EQ(figure("allocated_bytes.all.peak"), 1024);
  EXPECT_EQ(tenon_torch_reset_peak_memory_stats(0), 0);
  EXPECT_EQ(figure("allocated_bytes.all.peak"), 0);
  EXPECT_EQ(tenon_torch_reset_accumulated_memory_stats(0), 0);
  EXPECT_EQ(figure("allocated_bytes.all.allocated"), 0);
  EXPECT_THAT(tenon_torch_memory_summary(0, 1), HasSubstr("Allocated memory"));
  EXPECT_STREQ(tenon_torch_allocator(0), "caching");
  EXPECT_EQ(tenon_torch_empty_cache(0), 2 * MiB);
  EXPECT_EQ(emulated_cuda::used_bytes(0), 0U);
}

TEST_F(PytorchAllocator, ZeroBytesAreNull) {
  EXPECT_EQ(take(0), nullptr);
  give(nullptr);
  EXPECT_EQ(emulated_cuda::calls("cudaMalloc"), 0);
}

TEST_F(PytorchAllocator, UsesThePrimaryContextOfThatDeviceAlone) {
  cudaSetDevice(1);  // as PyTorch, which has made its device current
  void* const block = take(4096, nullptr, 1);
  EXPECT_EQ(emulated_cuda::contexts(), std::vector<int>{1});
  int current = 0;
  cudaGetDevice(&current);
  EXPECT_EQ(current, 1);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  EXPECT_EQ(cudaMemsetAsync(block, 1, 4096, stream), cudaSuccess) << "of the same context";
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  cudaStreamDestroy(stream);
  give(block);
  EXPECT_EQ(stats(1).at("allocated_bytes.all.peak"), 4096);
}

TEST_F(PytorchAllocator, CachesForEachStreamOfPytorchByItself) {
  cudaStream_t const first = new_stream();
  cudaStream_t const second = new_stream();
  void* const block = take(4 * MiB, first);
  cudaMemsetAsync(block, 1, 4 * MiB, first);
  give(block);
  void* const of_second = take(4 * MiB, second);
  EXPECT_NE(of_second, block) << "work on the first stream still uses it";
  void* const of_first = take(4 * MiB, first);
  EXPECT_EQ(of_first, block) << "in order on the same stream";
  give(of_first);
  give(of_second);
}

TEST_F(PytorchAllocator, ABlockThatAnotherStreamUsesWaitsForThatStream) {
  cudaStream_t const side = new_stream();
  void* const block = take(4 * MiB);
  cudaMemsetAsync(block, 1, 4 * MiB, side);
  tenon_torch_record_stream(block, side);
  give(block);
  void* const other = take(4 * MiB);
  EXPECT_NE(other, block);
  cudaStreamSynchronize(side);
  void* const again = take(4 * MiB);
  EXPECT_EQ(again, block);
  give(other);
  give(again);
  tenon_torch_record_stream(nullptr, side);  // of an empty tensor
  int on_host = 0;
  tenon_torch_record_stream(&on_host, side);  // not from here
}

TEST_F(PytorchAllocator, OutOfMemoryIsAnExceptionWithTenonsSentence) {
  void* const block = take(100 * MiB);
  const std::string said = message_of<std::bad_alloc>([&] { take(200 * MiB); });
  EXPECT_THAT(said, AllOf(HasSubstr("CUDA out of memory"), HasSubstr("200"), HasSubstr("cuda:0")));
  EXPECT_EQ(said, tenon_torch_last_error());
  EXPECT_EQ(figure("num_ooms"), 1);
  give(block);
  void* const after = take(200 * MiB);
  EXPECT_NE(after, nullptr) << "what is cached is given back first";
  give(after);
}

TEST_F(PytorchAllocator, ALimitIsKept) {
  tenon_torch_memory_fraction(0.25, 0);
  EXPECT_THAT(message_of<std::bad_alloc>([&] { take(80 * MiB); }), HasSubstr("64"));
  tenon_torch_memory_fraction(1.0, 0);
  void* const block = take(80 * MiB);
  give(block);
  EXPECT_THAT(message_of<std::runtime_error>([&] { tenon_torch_memory_fraction(2.0, 0); }), HasSubstr("2"));
}

TEST_F(PytorchAllocator, WrongNamesAreRefusedWithTheNearest) {
  start("", {});
  EXPECT_EQ(tenon_torch_configure("mortis"), -1);
  EXPECT_THAT(tenon_torch_last_error(), HasSubstr("mortise"));
  EXPECT_EQ(tenon_torch_configure("caching:max_split=1MiB"), -1);
  EXPECT_THAT(tenon_torch_last_error(), HasSubstr("max_split_size"));
  ::setenv("TENON_ALLOCATOR", "expandabel", 1);
  EXPECT_THAT(message_of<std::runtime_error>([&] { take(1); }), HasSubstr("expandable"));
  ::setenv("TENON_ALLOCATOR", "expandable", 1);
  void* const block = take(1);
  EXPECT_STREQ(tenon_torch_allocator(0), "expandable");
  EXPECT_EQ(tenon_torch_configure("mortise"), -1) << "too late";
  EXPECT_THAT(tenon_torch_last_error(), HasSubstr("expandable"));
  give(block);
}

TEST_F(PytorchAllocator, DevicesThatAreNotThereAreRefused) {
  EXPECT_THAT(message_of<std::runtime_error>([&] { take(1, nullptr, 7); }), HasSubstr("cuda:7"));
  EXPECT_THAT(message_of<std::runtime_error>([&] { take(1, nullptr, -1); }), HasSubstr("cuda:-1"));
  EXPECT_THAT(message_of<std::runtime_error>([&] { tenon_torch_alloc(-5, 0, nullptr); }), HasSubstr("-5"));
  EXPECT_EQ(tenon_torch_memory_stats(1000), nullptr);
  EXPECT_THAT(tenon_torch_last_error(), HasSubstr("cuda:1000"));
}

TEST_F(PytorchAllocator, ATomlFileSaysTheAllocatorItsLayersAndTheDevice) {
  const std::string file = scratch_folder() + "pytorch.toml";
  std::ofstream(file) << "[allocator]\nname = \"mortise\"\nlayers = [\"limit\"]\n[allocator.limit]\nbytes = \"32MiB\"\n"
                      << "[device.cuda]\ncapacity = \"128MiB\"\n";
  start(file, {.capacity_bytes = 256 * MiB});
  void* const block = take(16 * MiB);
  EXPECT_STREQ(tenon_torch_allocator(0), "mortise");
  EXPECT_THAT(message_of<std::bad_alloc>([&] { take(64 * MiB); }), HasSubstr("out of memory"));
  give(block);
}

TEST_F(PytorchAllocator, WhatIsNotFromHereIsLeftAlone) {
  int on_host = 0;
  testing::internal::CaptureStderr();
  give(&on_host);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no block of Tenon's"));
}

TEST_F(PytorchAllocator, CloseIsRefusedWhileMemoryIsOut) {
  void* const block = take(1);
  EXPECT_EQ(tenon_torch_close(), -1);
  EXPECT_THAT(tenon_torch_last_error(), HasSubstr("1 block"));
  give(block);
}

TEST_F(PytorchAllocator, EmptyCacheGivesBackWhatNobodyUses) {
  void* const block = take(4 * MiB);
  give(take(64 * MiB));
  tenon_torch_init(2);
  tenon_torch_reset();
  EXPECT_LE(figure("reserved_bytes.all.current"), 20 * MiB);
  EXPECT_EQ(cudaMemsetAsync(block, 1, 4 * MiB, nullptr), cudaSuccess);
  give(block);
}

TEST_F(PytorchAllocator, ASnapshotIsOneOfPytorch) {
  EXPECT_EQ(tenon_torch_record_memory_history(0, 1000), 0);
  void* const block = take(4 * MiB);
  const std::string file = scratch_folder() + "pytorch.pickle";
  EXPECT_EQ(tenon_torch_dump_snapshot(0, file.c_str()), 0) << tenon_torch_last_error();
  EXPECT_EQ(tenon_torch_dump_snapshot(0, "/nowhere/memory.pickle"), -1);
  EXPECT_THAT(tenon_torch_last_error(), HasSubstr("/nowhere"));
  EXPECT_EQ(tenon_torch_record_memory_history(0, 0), 0);
  std::ifstream written(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(written)), {});
  EXPECT_THAT(bytes, AllOf(HasSubstr("segments"), HasSubstr("device_traces"), HasSubstr("active_allocated")));
  give(block);
}

TEST_F(PytorchAllocator, RequestsOfAPoolAreThoseThatItsFilterKnows) {
  cudaStream_t const captured = new_stream();
  const TenonTorchPool pool{0, 5};
  void* const before = take(1 * MiB, captured);
  void* const of_another_stream = take(1 * MiB);
  give(before);
  give(of_another_stream);
  tenon_torch_begin_allocate_to_pool(0, pool, [&](cudaStream_t stream) { return stream == captured; });
  void* const inside = take(1 * MiB, captured);
  EXPECT_NE(inside, before) << "what the default pool caches is not the pool's";
  void* const outside = take(1 * MiB);
  EXPECT_EQ(outside, of_another_stream) << "from the default pool";
  std::thread([&] { give(take(1 * MiB, captured)); }).join();  // as PyTorch's threads of the backward pass
  tenon_torch_end_allocate_to_pool(0, pool);
  give(inside);
  void* const after = take(1 * MiB, captured);
  EXPECT_EQ(after, before) << "the default pool again, and what the pool got back stays its own";
  tenon_torch_begin_allocate_to_pool(0, pool, [&](cudaStream_t stream) { return stream == captured; });
  void* const again = take(1 * MiB, captured);
  EXPECT_EQ(again, inside);
  tenon_torch_end_allocate_to_pool(0, pool);
  for (void* const block : {outside, after, again}) give(block);
  tenon_torch_release_pool(0, pool);
  tenon_torch_reset();
  EXPECT_NE(emulated_cuda::used_bytes(0), 0U) << "the pool was begun twice and released once";
  tenon_torch_release_pool(0, pool);
  tenon_torch_reset();
  EXPECT_EQ(emulated_cuda::used_bytes(0), 0U);
  EXPECT_THAT(message_of<std::runtime_error>([&] { tenon_torch_end_allocate_to_pool(0, pool); }), HasSubstr("cuda:0"));
}

TEST_F(PytorchAllocator, AGraphKeepsItsMemoryInAPool) {
  cudaStream_t const stream = new_stream();
  void* const result = take(4096, stream);
  const TenonTorchPool pool{1, 0};
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  tenon_torch_begin_allocate_to_pool(0, pool, [&](cudaStream_t one) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(one, &status);
    return status == cudaStreamCaptureStatusActive;
  });
  void* const temporary = take(4096, stream);
  cudaMemsetAsync(temporary, 9, 4096, stream);
  cudaMemcpyAsync(result, temporary, 4096, cudaMemcpyDeviceToDevice, stream);
  give(temporary);
  tenon_torch_end_allocate_to_pool(0, pool);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "nothing was called that ends a capture";
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  void* const other = take(4096, stream);
  EXPECT_NE(other, temporary) << "each run uses it";
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(fetch(0, result, 4096)[4095], 9);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  give(other);
  give(result);
  tenon_torch_release_pool(0, pool);
}

TEST_F(PytorchAllocator, AnAllocatorWithoutPoolsRefusesThemByName) {
  start("mortise", {});
  EXPECT_THAT(message_of<std::runtime_error>([&] {
                tenon_torch_begin_allocate_to_pool(0, {0, 1}, [](cudaStream_t) { return true; });
              }),
              HasSubstr("pool"));
  void* const block = take(1);
  give(block);
}

class PytorchAllocators : public PytorchAllocator, public testing::WithParamInterface<const char*> {};

/// Threads take, use and give blocks on streams of their own; some are given back by another thread than the one that
/// took them. The emulated machine sees what is used too early.
TEST_P(PytorchAllocators, ServesThreadsOnStreamsOfTheirOwn) {
  start(GetParam(), {.capacity_bytes = 512 * MiB, .order = Order::kSeeded, .seed = 3});
  constexpr int kThreads = 4;
  std::vector<cudaStream_t> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(new_stream());
  std::mutex mutex;
  std::vector<void*> passed_on;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      std::vector<void*> held;
      cudaEvent_t event = nullptr;
      cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
      for (int step = 0; step < 200; ++step) {
        const std::size_t bytes = (std::size_t{512} << (random() % 12)) - 100;
        void* const block = take(bytes, streams[i]);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 512, 0U);
        cudaMemsetAsync(block, i + 1, bytes, streams[i]);
        if (random() % 3 == 0) {
          cudaEventRecord(event, streams[i]);
          cudaStreamWaitEvent(streams[(i + 1) % kThreads], event, 0);
          cudaMemsetAsync(block, i + 1, bytes, streams[(i + 1) % kThreads]);
          tenon_torch_record_stream(block, streams[(i + 1) % kThreads]);
        }
        held.push_back(block);
        if (held.size() < 5) continue;
        void* const oldest = held.front();
        held.erase(held.begin());
        if (random() % 2 == 0) {
          give(oldest);
          continue;
        }
        const std::lock_guard lock(mutex);
        passed_on.push_back(oldest);
        if (passed_on.size() > 8) {
          give(passed_on.front());
          passed_on.erase(passed_on.begin());
        }
      }
      for (void* const block : held) give(block);
      cudaEventDestroy(event);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (void* const block : passed_on) give(block);
  cudaDeviceSynchronize();
  EXPECT_EQ(figure("allocated_bytes.all.current"), 0);
  EXPECT_EQ(figure("allocation.all.allocated"), 200 * kThreads);
  tenon_torch_reset();
  EXPECT_EQ(emulated_cuda::used_bytes(0), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, PytorchAllocators,
                         testing::Values("direct", "caching", "expandable", "mortise", "driver_async", "tlsf"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace tenon::test
