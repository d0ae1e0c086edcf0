// DeviceDriver: what a backend plugin implements for each of its devices. Mechanism only: memory, streams, events,
// copies.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

struct DeviceProperties {
  std::string name;                                          ///< "NVIDIA H200", "Intel(R) Xeon(R)", "simulated 24 GiB"
  std::size_t capacity_bytes = 0;                            ///< 0 = unlimited
  int compute_units = 1;                                     ///< cores or multiprocessors
  bool host_accessible = false;                              ///< the host may dereference its addresses
  bool asynchronous = false;                                 ///< work runs behind the caller's back, in stream order
  bool computes = true;                                      ///< false: addresses only, no bytes behind them
  std::vector<std::pair<std::string, std::string>> details;  ///< further facts for `tenon devices`: ISA, driver, …
};

/// kPeerToPeer: from this device to another one of its kind; only asked of asynchronous devices.
enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeerToPeer };

/// A point in a stream's order that other streams and the host can wait for.
struct EventRef {
  std::uint64_t id = 0;
};

/// Work that was captured from streams, to be run as a whole as often as wanted.
struct GraphRef {
  std::uint64_t id = 0;
};

class TENON_EXPORT DeviceDriver {
 public:
  DeviceDriver() = default;
  DeviceDriver(const DeviceDriver&) = delete;
  DeviceDriver& operator=(const DeviceDriver&) = delete;
  virtual ~DeviceDriver();

  virtual DeviceProperties properties() const = 0;
  virtual MemorySource& memory() = 0;
  /// Page-locked host memory that this device copies from and to without staging; null where there is no such thing.
  virtual MemorySource* pinned_host_memory();

  /// Stream 0 always exists. Defaults: one stream, everything synchronous.
  virtual StreamRef create_stream(int priority);
  virtual void destroy_stream(StreamRef stream) noexcept;
  virtual void synchronize(StreamRef stream);
  virtual void synchronize();

  virtual EventRef create_event(bool timing);
  virtual void destroy_event(EventRef event) noexcept;
  virtual void record(EventRef event, StreamRef stream);
  /// Of a kind whose devices are asynchronous, the event may be that of another device.
  virtual void wait(StreamRef stream, EventRef event);
  virtual bool query(EventRef event);
  virtual void synchronize(EventRef event);
  /// Milliseconds between two recorded events.
  virtual double elapsed_ms(EventRef start, EventRef end);

  /// Queues a copy of `bytes` on `stream`; asynchronous only where properties().asynchronous.
  virtual void copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) = 0;
  /// Queues memset.
  virtual void fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) = 0;

  /// Runs a host function in stream order: at once on a synchronous device. Its captures must outlive its run. It may
  /// run on any thread, must not call this driver or wait for its work, and does not run at all after an error of the
  /// device.
  virtual void enqueue(StreamRef stream, std::function<void()> work);

  /// Threads of the host that one kernel may use, the caller included; 0 = all cores. Defaults: one, and no choice.
  virtual void set_threads(int count);
  virtual int threads() const;

  /// Called before a kernel runs on the host in the name of this device: waits until `stream` has come to the kernel's
  /// turn. False: the device has no bytes behind its addresses and the kernel must not run. Default: true, at once.
  virtual bool begin_kernel(StreamRef stream);

  /// From here on, what is queued on `stream` is kept instead of run, also on streams that wait for an event recorded
  /// there, until end_capture makes a graph of it. Meanwhile nothing may wait for these streams or for the device, and
  /// a ticket taken on them is not reached. Defaults: Error, since the device has no graphs; nothing is being captured.
  virtual void begin_capture(StreamRef stream);
  virtual GraphRef end_capture(StreamRef stream);
  virtual bool capturing(StreamRef stream);
  /// Queues a run of the graph on `stream`. Memory that was used while it was captured is used by every run.
  virtual void launch(GraphRef graph, StreamRef stream);
  /// Its runs must have ended.
  virtual void destroy_graph(GraphRef graph) noexcept;

  /// Lets the device `peer` of the same kind read and write this device's memory: what is taken, and what will be.
  /// False: they cannot reach each other, which is the default.
  virtual bool share_memory_with(int peer);
};

/// One kind of device that a plugin supplies.
class TENON_EXPORT Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend();

  /// The device kind: "cpu", "cuda", "simulated".
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;
  virtual OptionSchema options() const;
  /// Validated options, before the first device is opened. Called once.
  virtual void configure(const Options& options);
  /// How many devices there are; 0 is not an error, why_unavailable() then says the reason.
  virtual int device_count() = 0;
  virtual std::string why_unavailable() const;
  /// The device's driver, made on first use and owned by the backend until shutdown().
  virtual DeviceDriver& device(int index) = 0;
  /// Destroys all drivers; the code stays loaded.
  virtual void shutdown() noexcept = 0;
  /// A device kind whose kernels also serve this one, "" for none: for devices whose memory the host can reach.
  virtual std::string kernels_like() const;
  /// Whether what its devices hand out under these options is the host's memory, which other processes need too.
  virtual bool takes_host_memory(const Options& options) const;
};

}  // namespace tenon
