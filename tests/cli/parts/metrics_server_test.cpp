// What Prometheus is answered: each figure, its name and its labels; and where nobody can listen.
#include <tenon/cli/live/metrics_server.h>
#include <tenon/core/error.h>
#include <tenon/memory/purpose.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::cli {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr std::int64_t kPortAt = sizeof("http://127.0.0.1:") - 1;

/// The lines of GET /metrics that are figures of a run.
std::vector<std::string> figures_at(const std::string& url) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(url.substr(kPortAt))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::write(socket, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer, part(4096, '\0');
  for (ssize_t got = 0; (got = ::read(socket, part.data(), part.size())) > 0;)
    answer.append(part.data(), static_cast<std::size_t>(got));
  ::close(socket);
  std::vector<std::string> lines;
  std::istringstream text(answer);
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with("tenon_")) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> of_purposes(const std::string& device, const std::vector<std::string>& bytes) {
  std::vector<std::string> lines;
  for (int i = 0; i < kPurposeCount; ++i)
    lines.push_back("tenon_memory_purpose_bytes{device=\"" + device + "\",purpose=\"" +
                    std::string(name_of(static_cast<Purpose>(i))) + "\"} " + bytes[static_cast<std::size_t>(i)]);
  return lines;
}

TEST(MetricsPage, HasEachFigureOfTheLatestLook) {
  MetricsServer server("0");
  LiveFigures figures{.label = "[2/3] ",
                      .name = "mlp",
                      .allocator = "caching on simulated:0",
                      .seconds = 12.5,
                      .examples_per_second = 640,
                      .step_ms = 250,
                      .examples = 96};
  figures.now = {.step = 3, .steps = 8, .epoch = 2, .epochs = 4, .loss = 0.5, .learning_rate = 0.25, .phase = "train"};
  LiveDevice busy{.name = "simulated:0", .capacity_bytes = 1000, .busy = 0.75};
  busy.stats.requested_bytes = {.current = 60, .peak = 70};
  busy.stats.allocated_bytes = {.current = 80, .peak = 90};
  busy.stats.reserved_bytes = {.current = 100, .peak = 200};
  for (std::size_t i = 0; i < kPurposeCount; ++i)
    busy.stats.requested_by_purpose[i] = {.current = static_cast<std::int64_t>(i) + 1, .peak = 50};
  busy.stats.device_allocations = 4;
  busy.stats.device_frees = 1;
  busy.stats.ooms = 2;
  LiveDevice idle{.name = "cpu:0", .busy = {}};
  figures.devices = {busy, idle};
  server.publish(figures);
  std::vector<std::string> expected = {
      "tenon_run_info{name=\"mlp\",cell=\"2/3\",allocator=\"caching on simulated:0\"} 1",
      "tenon_run_seconds 12.5",
      "tenon_epoch 2",
      "tenon_steps_total 3",
      "tenon_planned_steps 8",
      "tenon_examples_total 96",
      "tenon_loss 0.5",
      "tenon_learning_rate 0.25",
      "tenon_step_seconds 0.25",
      "tenon_examples_per_second 640",
      "tenon_memory_bytes{device=\"simulated:0\",kind=\"requested\"} 60",
      "tenon_memory_bytes{device=\"simulated:0\",kind=\"allocated\"} 80",
      "tenon_memory_bytes{device=\"simulated:0\",kind=\"reserved\"} 100",
      "tenon_memory_bytes{device=\"cpu:0\",kind=\"requested\"} 0",
      "tenon_memory_bytes{device=\"cpu:0\",kind=\"allocated\"} 0",
      "tenon_memory_bytes{device=\"cpu:0\",kind=\"reserved\"} 0",
      "tenon_memory_step_peak_bytes{device=\"simulated:0\",kind=\"requested\"} 70",
      "tenon_memory_step_peak_bytes{device=\"simulated:0\",kind=\"allocated\"} 90",
      "tenon_memory_step_peak_bytes{device=\"simulated:0\",kind=\"reserved\"} 200",
      "tenon_memory_step_peak_bytes{device=\"cpu:0\",kind=\"requested\"} 0",
      "tenon_memory_step_peak_bytes{device=\"cpu:0\",kind=\"allocated\"} 0",
      "tenon_memory_step_peak_bytes{device=\"cpu:0\",kind=\"reserved\"} 0"};
  for (const std::string& line : of_purposes("simulated:0", {"1", "2", "3", "4", "5", "6", "7", "8", "9"}))
    expected.push_back(line);
  for (const std::string& line : of_purposes("cpu:0", std::vector<std::string>(kPurposeCount, "0")))
    expected.push_back(line);
  for (const char* line :
       {"tenon_memory_capacity_bytes{device=\"simulated:0\"} 1000",
        "tenon_fragmentation_ratio{device=\"simulated:0\",kind=\"external\"} 0.2",
        "tenon_fragmentation_ratio{device=\"simulated:0\",kind=\"internal\"} 0.25",
        "tenon_fragmentation_ratio{device=\"cpu:0\",kind=\"external\"} 0",
        "tenon_fragmentation_ratio{device=\"cpu:0\",kind=\"internal\"} 0",
        "tenon_device_calls_total{device=\"simulated:0\"} 5", "tenon_device_calls_total{device=\"cpu:0\"} 0",
        "tenon_out_of_memory_total{device=\"simulated:0\"} 2", "tenon_out_of_memory_total{device=\"cpu:0\"} 0",
        "tenon_device_busy_ratio{device=\"simulated:0\"} 0.75"})
    expected.emplace_back(line);
  EXPECT_THAT(figures_at(server.url()), ElementsAreArray(expected));
}

TEST(MetricsPage, LeavesOutWhatIsNotKnown) {
  MetricsServer server("127.0.0.1:0");
  EXPECT_THAT(figures_at(server.url()), ElementsAre()) << "nothing was published";
  server.publish({.name = "mlp", .allocator = "direct on cpu:0"});
  EXPECT_THAT(
      figures_at(server.url()),
      ElementsAre("tenon_run_info{name=\"mlp\",cell=\"\",allocator=\"direct on cpu:0\"} 1", "tenon_run_seconds 0",
                  "tenon_epoch 0", "tenon_steps_total 0", "tenon_planned_steps 0", "tenon_examples_total 0"));
}

TEST(MetricsAddress, IsAPortWithOrWithoutAnAddress) {
  for (const char* address : {"0", "9464", "65535", "127.0.0.1:9464", "0.0.0.0:0"})
    EXPECT_EQ(MetricsServer::problem_of(address), "") << address;
  for (const std::string address : {"", "65536", "-1", "1x", "x", ":1", "127.0.0.1:", "127.0.0.1"})
    EXPECT_EQ(MetricsServer::problem_of(address),
              "'" + address + "' is not [ADDRESS:]PORT, with a port from 0 to 65535");
  EXPECT_TRUE(MetricsServer::takes_free_port("0"));
  EXPECT_TRUE(MetricsServer::takes_free_port("127.0.0.1:0"));
  EXPECT_FALSE(MetricsServer::takes_free_port("10"));
  EXPECT_FALSE(MetricsServer::takes_free_port("x"));
}

std::string refusal_of(const std::string& address) {
  try {
    const MetricsServer server(address);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(MetricsAddress, WhereNobodyCanListenSaysWhyAndWhatElse) {
  EXPECT_EQ(refusal_of("x"), "--metrics: 'x' is not [ADDRESS:]PORT, with a port from 0 to 65535");
  EXPECT_EQ(refusal_of("localhost:0"), "--metrics: nobody can listen on localhost:0: it is no IPv4 address");
  EXPECT_THAT(
      refusal_of("192.0.2.1:0"),
      HasSubstr("--metrics: nobody can listen on 192.0.2.1:0: Cannot assign requested address; no interface of this "
                "machine has it: 127.0.0.1 is this machine alone, 0.0.0.0 every interface"));
  const MetricsServer taken("0");
  EXPECT_THAT(taken.url(), testing::MatchesRegex("http://127\\.0\\.0\\.1:[0-9]+/metrics"));
  const std::string port = std::to_string(std::stoi(taken.url().substr(kPortAt)));
  EXPECT_EQ(refusal_of(port), "--metrics: nobody can listen on 127.0.0.1:" + port +
                                  ": Address already in use; port 0 is one that is free");
}

}  // namespace
}  // namespace tenon::cli
