// Progress is for a terminal: in a file or a pipe nothing of it is to be seen, and with NO_COLOR no colour. Each
// command is one that shows its progress on a terminal, which is seen first.
#include "cli/terminal/terminal.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <chrono>
#include <memory>

namespace tenon::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr char kAnyColour[] = "\x1b\\[[0-9;]*m";

struct LongWork {
  std::string name;
  std::vector<std::string> words;
  std::string progress;  ///< what its line says on a terminal, and nothing else that it writes
};
void PrintTo(const LongWork& work, std::ostream* out) { *out << work.name; }

const std::vector<LongWork>& works() {
  static const std::vector<LongWork> kAll = {
      {"run", {"run", "exp.toml", "train.epochs=1000000", "--out", "@"}, "\rtrain  epoch"},
      {"sweep",
       {"run", "exp.toml", "train.epochs=1000000", "train.lr=0.1,0.2", "--sweep", "--out", "@"},
       "\r[1/2] train  epoch"},
      {"estimates", {"run", "wide.toml", "--dry-run"}, "\restimating: "},
      {"replay", {"replay", "long.trace", "-a", "caching", "--repeat", "1000", "-j", "1"}, "\rreplaying: "},
      {"tune", {"tune", "long.trace", "--budget", "10m", "-j", "1"}, "\rtuning: "},
      {"reading", {"trace", "info", "large.trace.gz"}, "\rreading large.trace.gz: "},
      {"bench", {"bench", "direct", "-w", "lifo/1000", "--rounds", "10000"}, "\rmeasuring: "},
  };
  return kAll;
}

/// Comments without end: a small file that takes its time to read.
std::string large_trace() {
  std::string line;
  while (line.size() < 1 << 20) line += "# " + std::string(90, '=') + "\n";
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string part(::deflateBound(&stream, line.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(line.data());
  stream.avail_in = static_cast<uInt>(line.size());
  stream.next_out = reinterpret_cast<Bytef*>(part.data());
  stream.avail_out = static_cast<uInt>(part.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  part.resize(stream.total_out);
  ::deflateEnd(&stream);
  std::string file;
  for (int i = 0; i < 20'000; ++i) file += part;  // 20 GiB of text
  return file;
}

class ProgressLines : public Program, public testing::WithParamInterface<LongWork> {
 protected:
  void SetUp() override {
    Program::SetUp();
    const std::string& name = GetParam().name;
    if (name == "reading") folder_.write("large.trace.gz", large_trace());
    if (name == "estimates") {
      std::string cells = "[sweep]\n\"train.seed\" = [1";
      for (int i = 2; i < 4000; ++i) cells += ", " + std::to_string(i);
      folder_.write("wide.toml", experiment(cells + "]\n"));
    }
    if (name != "replay" && name != "tune") return;
    std::string lines;
    for (int i = 0; i < 200'000; ++i)
      lines +=
          "a " + std::to_string(i) + " " + std::to_string(512 * (i % 100 + 1)) + " 0\nf " + std::to_string(i) + "\n";
    folder_.write("long.trace", lines);
  }
  std::vector<std::string> words(const std::string& out) const {
    std::vector<std::string> words = GetParam().words;
    if (words.back() == "@") words.back() = out;
    return words;
  }
};

TEST_P(ProgressLines, AreOnATerminalAndNotInAFileOrAPipe) {
  const std::string& progress = GetParam().progress;
  const auto is_shown = [&](const std::string& bytes) { return bytes.find(progress) != std::string::npos; };
  auto piped = std::make_unique<StartedProgram>(folder_, words("piped"));  // as long as both others take
  const Shown coloured = tenon_on_terminal(folder_, words("one"), 80, {}, is_shown);
  EXPECT_TRUE(is_shown(coloured.bytes)) << coloured.bytes;
  const Shown plain = tenon_on_terminal(folder_, words("two"), 80, {{"NO_COLOR", "1"}}, is_shown);
  EXPECT_TRUE(is_shown(plain.bytes)) << plain.bytes;
  EXPECT_THAT(plain.bytes, Not(ContainsRegex(kAnyColour)));
  piped->interrupt(SIGTERM);
  piped->interrupt(SIGTERM);
  const Said said = piped->wait();
  for (const std::string& text : {said.out, said.error}) {
    EXPECT_THAT(text, Not(HasSubstr(progress.substr(1))));
    EXPECT_THAT(text, Not(HasSubstr("\r")));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ProgressLines, testing::ValuesIn(works()),
                         [](const auto& work) { return work.param.name; });

}  // namespace
}  // namespace tenon::test
