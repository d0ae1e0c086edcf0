// `tenon run --watch` and `--metrics`: lines in a pipe, the screen of a terminal, the page for Prometheus.
#include "cli/interrupted.h"
#include "cli/terminal/terminal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <regex>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr char kEnter[] = "\x1b[?1049h", kLeave[] = "\x1b[?1049l";

class Watch : public InterruptedProgram {
 protected:
  /// A run that goes on until it is ended.
  std::vector<std::string> endless(std::vector<std::string> more) const {
    std::vector<std::string> words = {"run", "run.toml", "train.epochs=1000000", "--interval", "0.01", "--out", "out"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

int connect_to(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience{.tv_sec = 20, .tv_usec = 0};  // a server that waits for another client does so for longer
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

/// The body of GET /metrics on this machine.
std::string page_of(int port) {
  const int socket = connect_to(port);
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::send(socket, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(socket, buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(got));
  ::close(socket);
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  const std::size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? "" : answer.substr(head + 4);
}

/// Where a program answers that has begun with --metrics 0.
std::string port_of(const StartedProgram& program) {
  static const std::regex kAddress("metrics: http://127\\.0\\.0\\.1:([0-9]+)/metrics\n");
  std::smatch found;
  std::string said;
  while (!std::regex_search(said = program.said(), found, kAddress)) std::this_thread::yield();
  return found[1];
}

TEST_F(Watch, WritesLinesWhereThereIsNoTerminal) {
  const Said said = tenon({"run", "run.toml", "train.epochs=1", "--watch", "--interval", "0.01", "--out", "out"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, ContainsRegex("train  epoch 1/1  step [0-9]+/[0-9]+  loss [0-9.]+.*reserved .*device calls"));
  EXPECT_THAT(said.error, Not(HasSubstr("\x1b")));
  EXPECT_THAT(said.error, HasSubstr("tested  epoch 1/1")) << "the last state is shown whatever the interval";
}

TEST_F(Watch, TakesTheScreenOfATerminalAndGivesItBackWithTheNotes) {
  const Shown shown =
      tenon_on_terminal(folder_, {"run", "run.toml", "train.epochs=2", "--watch", "--interval", "0.01", "--out", "out"},
                        120, {{"LC_ALL", "C.UTF-8"}});
  ASSERT_EQ(shown.code, 0) << shown.bytes;
  const std::size_t enter = shown.bytes.find(kEnter), leave = shown.bytes.find(kLeave);
  ASSERT_NE(enter, std::string::npos);
  ASSERT_NE(leave, std::string::npos);
  const std::string screen = shown.bytes.substr(enter, leave - enter), after = shown.bytes.substr(leave);
  EXPECT_THAT(screen, AllOf(HasSubstr("examples/s"), HasSubstr("reserved"), HasSubstr("parameter"), HasSubstr("█")));
  EXPECT_THAT(after, AllOf(HasSubstr("epoch 1/2: loss"), HasSubstr("epoch 2/2: loss"), HasSubstr("peak reserved")));
}

TEST_F(Watch, ShowsAsciiWhereTheLocaleHasNoMore) {
  const Shown shown =
      tenon_on_terminal(folder_, {"run", "run.toml", "train.epochs=1", "--watch", "--interval", "0.01", "--out", "out"},
                        100, {{"LC_ALL", "C"}});
  const std::size_t leave = shown.bytes.find(kLeave);
  ASSERT_NE(leave, std::string::npos);
  EXPECT_THAT(shown.bytes.substr(0, leave), AllOf(Not(HasSubstr("█")), HasSubstr("####")));
}

TEST_F(Watch, TakesTheScreenForEachCellOfASweep) {
  const Shown shown = tenon_on_terminal(
      folder_, {"run", "sweep.toml", "train.epochs=2", "--watch", "--interval", "0.01", "--out", "out"}, 120);
  ASSERT_EQ(shown.code, 0) << shown.bytes;
  std::size_t screens = 0;
  for (std::size_t at = 0; (at = shown.bytes.find(kEnter, at)) != std::string::npos; ++at) ++screens;
  EXPECT_EQ(screens, 3U);
  EXPECT_THAT(shown.bytes, HasSubstr("[3/3] epoch 2/2: loss"));
}

TEST_F(Watch, NotesOfARunThatIsKilledAreNotLost) {
  const Shown shown = tenon_on_terminal(
      folder_, endless({"--watch"}), 100, {},
      [](const std::string& bytes) { return bytes.find("epoch 2/1000000: loss") != std::string::npos; }, SIGKILL);
  const std::size_t leave = shown.bytes.find(kLeave);
  ASSERT_NE(leave, std::string::npos);
  EXPECT_THAT(shown.bytes.substr(leave), HasSubstr("epoch 1/1000000: loss"));
}

TEST_F(Watch, ShowsARunThatGoesOn) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=300", "--out", "out"});
  program.wait_until_it_says("epoch 2/");
  program.interrupt(SIGINT);
  ASSERT_EQ(program.wait().code, 130);
  const Said said = tenon({"run", "--resume", "out", "--watch", "--interval", "0.01"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, HasSubstr("device calls"));
}

TEST_F(Watch, GivesTheScreenBackHoweverTheRunEnds) {
  const auto is_painted = [](const std::string& bytes) { return bytes.find("examples/s") != std::string::npos; };
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    fs::remove_all(at("out"));
    const Shown shown = tenon_on_terminal(folder_, endless({"--watch"}), 100, {}, is_painted, signal);
    EXPECT_EQ(shown.code, 128 + signal) << signal;
    EXPECT_THAT(shown.bytes, HasSubstr(kLeave)) << signal;
  }
}

TEST_F(Watch, AnswersPrometheus) {
  StartedProgram program(folder_, endless({"--metrics", "0"}));
  const std::string port = port_of(program);
  std::string page;
  while (page.find("tenon_examples_per_second") == std::string::npos) page = page_of(std::stoi(port));
  program.interrupt(SIGINT);
  EXPECT_EQ(program.wait().code, 130);
  EXPECT_THAT(page,
              AllOf(HasSubstr("# TYPE tenon_memory_bytes gauge"), HasSubstr("# TYPE tenon_steps_total counter"),
                    ContainsRegex("tenon_memory_bytes\\{device=\"[a-z]+:0\",kind=\"reserved\"\\} [1-9]"),
                    ContainsRegex("tenon_memory_purpose_bytes\\{device=\"[a-z]+:0\",purpose=\"parameter\"\\} [1-9]"),
                    HasSubstr("tenon_run_info{"), HasSubstr("tenon_loss ")));
  const std::regex line(R"((#.*)|([a-z_]+(\{([a-z]+="[^"]*",?)+\})? [-+0-9.e]+(Inf|NaN)?)|)");
  std::istringstream lines(page);
  for (std::string text; std::getline(lines, text);) EXPECT_TRUE(std::regex_match(text, line)) << text;
}

TEST_F(Watch, APortThatIsTakenIsSaid) {
  StartedProgram program(folder_, endless({"--metrics", "0"}));
  const std::string port = port_of(program);
  folder_.write("other/result.json", "of an earlier run");
  const Said second = tenon({"run", "run.toml", "--metrics", port, "--out", "other"});
  program.interrupt(SIGINT);
  program.wait();
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.error, HasSubstr("--metrics: nobody can listen on 127.0.0.1:" + port +
                                      ": Address already in use; port 0 is one that is free"));
  EXPECT_EQ(read_bytes(at("other/result.json")), "of an earlier run") << "the folder is as it was";
}

TEST_F(Watch, ClientsThatConnectAndAskNothingKeepNobodyFromTheMetrics) {
  StartedProgram program(folder_, endless({"--metrics", "0"}));
  const int port = std::stoi(port_of(program));
  std::vector<int> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(connect_to(port));
  EXPECT_THAT(page_of(port), HasSubstr("tenon_run_info{"));
  for (const int socket : silent) ::close(socket);
  program.interrupt(SIGINT);
  program.wait();
}

TEST_F(Watch, AnAddressOfAnotherMachineIsSaidWithThoseThatThisOneHas) {
  const Said said = tenon({"run", "run.toml", "--metrics", "192.0.2.1:0", "--out", "other"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("nobody can listen on 192.0.2.1:0"), HasSubstr("0.0.0.0 every interface"),
                                Not(HasSubstr("port 0"))));
}

TEST_F(Watch, ShowsTheCellsOfASweepOneAfterTheOther) {
  const Said said = tenon({"run", "sweep.toml", "train.epochs=1", "--watch", "--interval", "0.01", "--out", "out"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("[1/3] train  epoch 1/1"), HasSubstr("[3/3] train  epoch 1/1")));
}

TEST_F(Watch, WhatMakesNoSenseIsRefused) {
  const auto refused = [&](std::vector<std::string> words, const char* reason) {
    words.insert(words.end(), {"--out", "refused"});
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2) << reason;
    EXPECT_THAT(said.error, HasSubstr(reason));
    EXPECT_FALSE(fs::exists(at("refused")));
  };
  refused({"run", "sweep.toml", "--watch", "-j", "2"}, "--watch shows one run, and -j 2 runs several cells at a time");
  refused({"run", "sweep.toml", "--metrics", "0"}, "--metrics 0 would take another port for each cell");
  refused({"run", "run.toml", "--interval", "2"}, "it goes with --watch or --metrics");
  refused({"run", "run.toml", "--watch", "--interval", "nan"}, "Value nan not in range 0.01 to 86400");
  refused({"run", "run.toml", "--metrics", "prometheus"}, "'prometheus' is not [ADDRESS:]PORT");
  refused({"run", "run.toml", "--metrics", "70000"}, "'70000' is not [ADDRESS:]PORT");
}

}  // namespace
}  // namespace tenon::test
