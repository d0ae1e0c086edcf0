// The families of metrics, and the server of prometheus-cpp that answers with them.
#include <tenon/cli/live/metrics_server.h>
#include <tenon/core/error.h>
#include <tenon/memory/purpose.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::cli {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

struct Address {
  std::string host;
  int port = 0;
};

std::optional<Address> parsed(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address address{.host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon)};
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool is_port = problem == std::errc() && end == port.data() + port.size() && !port.empty();
  if (!is_port || address.port < 0 || address.port > 65535 || address.host.empty()) return std::nullopt;
  return address;
}

class Families {
 public:
  void add(const char* name, const char* help, MetricType type, Labels labels, double value) {
    if (families_.empty() || families_.back().name != name)
      families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
    ClientMetric metric;
    metric.label = std::move(labels);
    if (type == MetricType::Counter) metric.counter.value = value;
    if (type == MetricType::Gauge) metric.gauge.value = value;
    families_.back().metric.push_back(std::move(metric));
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

double real(std::int64_t value) { return static_cast<double>(value); }

void add_each_device(Families& families, const LiveFigures& figures) {
  const auto each = [&](const char* name, const char* help, MetricType type, const auto& values_of) {
    for (const LiveDevice& device : figures.devices) {
      for (const auto& [label, value] : values_of(device)) {
        Labels labels = {{.name = "device", .value = device.name}};
        if (!label.value.empty()) labels.push_back(label);
        families.add(name, help, type, std::move(labels), value);
      }
    }
  };
  using Values = std::vector<std::pair<ClientMetric::Label, double>>;
  const auto of_kind = [](const char* kind, double value) {
    return std::pair(ClientMetric::Label{.name = "kind", .value = kind}, value);
  };
  each("tenon_memory_bytes", "Memory of the device now, as requested, allocated and reserved", MetricType::Gauge,
       [&](const LiveDevice& device) {
         return Values{of_kind("requested", real(device.stats.requested_bytes.current)),
                       of_kind("allocated", real(device.stats.allocated_bytes.current)),
                       of_kind("reserved", real(device.stats.reserved_bytes.current))};
       });
  each("tenon_memory_step_peak_bytes", "The most of it within the latest step", MetricType::Gauge,
       [&](const LiveDevice& device) {
         return Values{of_kind("requested", real(device.stats.requested_bytes.peak)),
                       of_kind("allocated", real(device.stats.allocated_bytes.peak)),
                       of_kind("reserved", real(device.stats.reserved_bytes.peak))};
       });
  each("tenon_memory_purpose_bytes", "Requested memory now, by what it is for", MetricType::Gauge,
       [](const LiveDevice& device) {
         Values values;
         for (int i = 0; i < kPurposeCount; ++i) {
           const std::string purpose(name_of(static_cast<Purpose>(i)));
           values.emplace_back(ClientMetric::Label{.name = "purpose", .value = purpose},
                               real(device.stats.requested_by_purpose[static_cast<std::size_t>(i)].current));
         }
         return values;
       });
  each("tenon_memory_capacity_bytes", "Memory that the device has", MetricType::Gauge, [](const LiveDevice& device) {
    return device.capacity_bytes > 0 ? Values{{{}, real(device.capacity_bytes)}} : Values{};
  });
  each("tenon_fragmentation_ratio", "External: of reserved what no block has; internal: of allocated what nobody asked",
       MetricType::Gauge, [&](const LiveDevice& device) {
         return Values{of_kind("external", device.external_fragmentation()),
                       of_kind("internal", device.internal_fragmentation())};
       });
  each("tenon_device_calls_total", "Calls that took memory from the device or gave it back", MetricType::Counter,
       [](const LiveDevice& device) {
         return Values{{{}, real(device.stats.device_calls())}};
       });
  each("tenon_out_of_memory_total", "Requests that could not be served", MetricType::Counter,
       [](const LiveDevice& device) {
         return Values{{{}, real(device.stats.ooms)}};
       });
  each("tenon_device_busy_ratio", "How busy the device was since the look before", MetricType::Gauge,
       [](const LiveDevice& device) {
         return device.busy ? Values{{{}, *device.busy}} : Values{};
       });
}

/// "[2/3] " -> "2/3".
std::string number_of(const std::string& cell_label) {
  const std::size_t end = cell_label.find(']');
  return end == std::string::npos ? cell_label : cell_label.substr(1, end - 1);
}

std::vector<MetricFamily> families_of(const LiveFigures& figures) {
  Families families;
  const auto gauge = [&](const char* name, const char* help, double value) {
    families.add(name, help, MetricType::Gauge, {}, value);
  };
  families.add("tenon_run_info", "The experiment and its allocator", MetricType::Gauge,
               {{.name = "name", .value = figures.name},
                {.name = "cell", .value = number_of(figures.label)},
                {.name = "allocator", .value = figures.allocator}},
               1);
  gauge("tenon_run_seconds", "Since the run began", figures.seconds);
  gauge("tenon_epoch", "From 1", figures.now.epoch);
  families.add("tenon_steps_total", "Training steps done", MetricType::Counter, {}, real(figures.now.step));
  gauge("tenon_planned_steps", "Training steps of the run in all", real(figures.now.steps));
  families.add("tenon_examples_total", "Examples trained on, or requests served", MetricType::Counter, {},
               real(figures.examples));
  if (figures.now.loss) gauge("tenon_loss", "Of the latest step", *figures.now.loss);
  if (figures.now.learning_rate) gauge("tenon_learning_rate", "Of the latest step", *figures.now.learning_rate);
  if (figures.step_ms > 0) gauge("tenon_step_seconds", "The median of the latest steps", figures.step_ms / 1000);
  if (figures.examples_per_second)
    gauge("tenon_examples_per_second", "Or requests, since the look before", *figures.examples_per_second);
  add_each_device(families, figures);
  return families.take();
}

/// Why nobody can listen there, and what can be done about it; empty: somebody can.
std::string problem_of_listening(const Address& where) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(where.port));
  if (::inet_pton(AF_INET, where.host.c_str(), &address.sin_addr) != 1) return "it is no IPv4 address";
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return std::strerror(errno);
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool is_free =
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(socket, 1) == 0;
  const int why = is_free ? 0 : errno;
  ::close(socket);
  if (why == 0) return {};
  std::string advice;
  if (why == EADDRINUSE) advice = "; port 0 is one that is free";
  if (why == EACCES) advice = "; ports from 1024 need no rights";
  if (why == EADDRNOTAVAIL)
    advice = "; no interface of this machine has it: 127.0.0.1 is this machine alone, 0.0.0.0 every interface";
  return std::strerror(why) + advice;
}

}  // namespace

struct MetricsServer::Served final : prometheus::Collectable {
  std::vector<MetricFamily> Collect() const override {
    const std::lock_guard lock(mutex);
    return families;
  }
  mutable std::mutex mutex;
  std::vector<MetricFamily> families;
};

std::string MetricsServer::problem_of(const std::string& address) {
  return parsed(address) ? "" : fmt::format("'{}' is not [ADDRESS:]PORT, with a port from 0 to 65535", address);
}

bool MetricsServer::takes_free_port(const std::string& address) {
  const std::optional<Address> where = parsed(address);
  return where && where->port == 0;
}

MetricsServer::MetricsServer(const std::string& address) : served_(std::make_shared<Served>()) {
  const std::optional<Address> where = parsed(address);
  if (!where) throw ConfigError("--metrics: " + problem_of(address));
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("--metrics: nobody can listen on {}:{}: {}", where->host, where->port, why));
  };
  if (const std::string problem = problem_of_listening(*where); !problem.empty()) refuse(problem);
  // What is served stays until the process ends: the run's last figures, and since it takes up to a second to stop.
  struct Running {
    std::shared_ptr<Served> served;
    std::unique_ptr<prometheus::Exposer> exposer;
  };
  static auto* const running = new std::vector<Running>();
  try {
    // Many, and not for long: a client that connects and asks nothing keeps one of them.
    running->push_back({served_, std::make_unique<prometheus::Exposer>(std::vector<std::string>{
                                     "listening_ports", fmt::format("{}:{}", where->host, where->port), "num_threads",
                                     "16", "request_timeout_ms", "1000"})});
  } catch (const std::exception& problem) {
    refuse(problem.what());
  }
  prometheus::Exposer& exposer = *running->back().exposer;
  url_ = fmt::format("http://{}:{}/metrics", where->host, exposer.GetListeningPorts().front());
  exposer.RegisterCollectable(served_);
}

MetricsServer::~MetricsServer() = default;

void MetricsServer::publish(const LiveFigures& figures) {
  std::vector<MetricFamily> families = families_of(figures);
  const std::lock_guard lock(served_->mutex);
  served_->families = std::move(families);
}

}  // namespace tenon::cli
