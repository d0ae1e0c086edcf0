// The screens of every verb, in its main forms, on terminals of 60, 80, 120 and 200 columns, in turn with colours and
// without (each both ways with TENON_TEST_SCREENS=all): the terminal wraps none of their lines. A verb without a screen
// here fails the test.
// Long: the screens of every verb are one table, and what each of them has to keep.
#include "cli/pinned_segments.h"
#include "cli/terminal/terminal.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr unsigned short kWidths[] = {60, 80, 120, 200};
constexpr char kColour[] = "\x1b\\[[0-9;]+m";

/// A command, and the code that it ends with. "@" in a word is a number that no other run has; "half@" is a copy of the
/// folder "half".
struct Screen {
  std::vector<std::string> words;
  int code = 0;
  std::string until = {};  ///< it is ended by a SIGTERM once this is on the screen; empty: it is left alone
};

/// The lines that are longer than the narrowest terminal, all of them, and why: every other one has to fit. PLUGINS is
/// kFolderOfPlugins, HERE the folder of the test.
struct LongLine {
  const char* line;
  const char* verb;
  const char* reason;
};
constexpr char kIsAPath[] = "a path alone on its line: broken, it could not be copied";
constexpr char kIsASpec[] =
    "a path with its options, a word of a command, alone on its line: broken, it would be two words";
constexpr char kIsALineOfCode[] = "a line to paste into a shell or a program, where a break would end it";
constexpr LongLine kLongLines[] = {
    {"  export PYTORCH_ALLOC_CONF=\"expandable_segments:True,large_segment_size_mb:12\"", "tune", kIsALineOfCode},
    {"  export PYTORCH_ALLOC_CONF=\"expandable_segments:True,large_segment_size_mb:16\"", "tune", kIsALineOfCode},
    {"  export PYTORCH_CUDA_ALLOC_CONF=\"expandable_segments:True,large_segment_size_mb:12\"", "tune", kIsALineOfCode},
    {"  export PYTORCH_CUDA_ALLOC_CONF=\"expandable_segments:True,large_segment_size_mb:16\"", "tune", kIsALineOfCode},
    {"  torch.cuda.memory._record_memory_history(max_entries=1_000_000)", "tune", kIsALineOfCode},
    {"  torch.cuda.memory._record_memory_history(max_entries=1_000_000)", "doctor", kIsALineOfCode},
    {"/a/folder/of/a/name/that/is/longer/than/a/narrow/terminal/mine.so:", "run", kIsAPath},
    {"\"/a/folder/of/a/name/that/is/longer/than/a/narrow/terminal/mine.so\"", "run", kIsAPath},
    {"allocator.name=\"/a/folder/of/a/name/that/is/longer/than/a/narrow/terminal/mine.so\":", "run", kIsAPath},
    {"allocator.name=HERE/PLUGINS/crasher.so", "run", kIsAPath},
    {"(HERE/PLUGINS/crasher.so):", "run", kIsAPath},
    {"      PLUGINS/faulty.so:how=forgets", "run", kIsASpec},
    {"      PLUGINS/faulty.so:after=2,how=overlap", "replay", kIsASpec},
    {"PLUGINS/faulty.so:after=2,how=overlap", "replay", kIsASpec},
    {"      PLUGINS/crasher.so:after=2,how=segv", "replay", kIsASpec},
    {"PLUGINS/crasher.so:after=2,how=segv", "replay", kIsASpec},
    {"      PLUGINS/crasher.so:after=10", "bench", kIsASpec},
    {"PLUGINS/crasher.so:after=10", "bench", kIsASpec},
};

/// Their output is a text for a shell or for `man`, byte by byte.
const std::set<std::string> kForPrograms = {"man", "completion"};

/// Copies stand in a folder below that of the test, so that lines are as long in every checkout.
constexpr char kFolderOfPlugins[] = "plugins/in/a/folder/whose/name/is/longer/than/a/narrow/terminal/";
std::string fixture_path(const std::string& name) { return kFolderOfPlugins + name + ".so"; }

using ScreensByVerb = std::map<std::string, std::vector<Screen>>;

ScreensByVerb screens_of_experiments() {
  static const std::string kSimulated = "device.name=\"simulated:0\"";
  return {
      {"run",
       {{{"run", "exp.toml", "--out", "run@"}},
        {{"run", "exp.toml", "--out", "run@", "--record", "all", "report.by_purpose=true"}},
        {{"run", "exp.toml", "--dry-run"}},
        {{"run", "exp.toml", "allocator.name=direct,caching", "--sweep", "--out", "sweep@"}},
        {{"run", "exp.toml", "allocator.name=direct,caching", "train.batch_size=8,16", "--sweep", "--dry-run"}},
        {{"run", "exp.toml", kSimulated, "device.simulated.capacity=\"100KiB\"", "--out", "run@"}, 4},
        {{"run", "exp.toml", "allocator.name=[\"" + fixture_path("crasher") + "\", \"direct\"]", "--sweep", "--out",
          "sweep@"},
         1},
        {{"run", "exp.toml", "allocator.name=direct,caching", "--sweep", "-j", "2", "--out", "sweep@"}},
        {{"run", "exp.toml", "train.lr=0.1,0.01", "train.threads=0", "--sweep", "-j", "2", "--out", "sweep@"}},
        {{"run", "exp.toml", "allocator.name=\"" + fixture_path("faulty") + ":how=forgets\"", "--out", "run@"}, 1},
        {{"run", "exp.toml", "train.max_steps=0", "train.epochs=100000", "--out", "run@"}, 143, "epoch 2/"},
        {{"run", "exp.toml", "train.max_steps=0", "train.epochs=100000", "allocator.name=direct,caching", "--sweep",
          "--out", "sweep@"},
         143,
         "epoch 2/"},
        {{"run", "--resume", "one"}},
        {{"run", "--resume", "sweep"}},
        {{"run", "--resume", "half@"}},
        {{"run", "exp.toml", "--out", "sweep", "--no-sweep"}, 2},
        {{"run", "exp.toml", "train.batch_sise=64"}, 2},
        {{"run", "exp.toml", "allocator.name=\"/a/folder/of/a/name/that/is/longer/than/a/narrow/terminal/mine.so\""},
         5},
        {{"run"}, 2}}},
  };
}

ScreensByVerb screens_of_histories() {
  return {
      {"replay",
       {{{"replay", "gpt2.trace.gz", "--capacity", "5800MiB", "--repeat", "1"}},
        {{"replay", "pinned.trace", "メモリ.trace", "-a", "caching:max_split_size=64MiB", "-a", "direct"}},
        {{"replay", "pinned.trace", "-a", "caching", "--html", "page.html", "--svg", "page.svg", "--snapshot",
          "x.pickle"}},
        {{"replay", "pinned.trace", "--pytorch-conf", "expandable_segments:True,roundup_power2_divisions:8"}},
        {{"replay", "pinned.trace", "-a", "caching", "-a", "direct", "--repeat", "2", "--baseline", "old.json"}},
        {{"replay", "pinned.trace", "-a", "caching", "--baseline", "old.json", "--fail-if",
          "peak_reserved_bytes > +1%"}},
        {{"replay", "pinned.trace", "-a", "caching", "--capacity", "50MiB", "--fail-if", "ooms > 0"}, 3},
        {{"replay", "pinned.trace", "-a", fixture_path("faulty") + ":after=2,how=overlap", "-a", "direct"}, 1},
        {{"replay", "pinned.trace", "-a", fixture_path("crasher") + ":after=2,how=segv"}, 1},
        {{"replay", "no-such-file-of-this-name.trace.gz", "--capacity", "8GiB"}, 2},
        {{"replay", "words.trace"}, 2},
        {{"replay", "pinned.trace", "-a", "cachng"}, 2},
        {{"replay", "pinned.trace", "--capacity", "8GB"}, 2}}},
      {"tune",
       {{{"tune", "pinned.trace", "--capacity", "420MiB", "--budget", "5s"}},
        {{"tune", "pinned.trace", "メモリ.trace", "--budget", "200ms"}},
        {{"tune", "checkered.trace", "-a", "buddy", "--budget", "5s"}},
        {{"tune", "checkered.trace", "--capacity", "200MiB", "--budget", "200ms"}, 1},
        {{"tune", "pinned.trace", "--capacity", "10MiB", "--budget", "200ms"}, 1},
        {{"tune", "state.trace"}, 1},
        {{"tune", "pinned.trace", "--budget", "soon"}, 2}}},
      {"plan",
       {{{"plan", "pinned.trace", "--budget", "200ms"}},
        {{"plan", "pinned.trace", "--budget", "200ms", "-o", "pinned.plan", "--html", "page.html"}},
        {{"plan", "problem.csv", "-o", "solved.csv"}},
        {{"plan", "problem.csv", "--capacity", "1"}, 4},
        {{"plan", "wrong.csv"}, 2},
        {{"plan", "pinned.trace", "-o", "plan.docx"}, 2}}},
      {"compare",
       {{{"compare", "one", "other", "--html", "page.html"}},
        {{"compare", "one", "other", "--all"}},
        {{"compare", "sweep", "sweep"}},
        {{"compare", "old.json", "new.json"}},
        {{"compare", "old.json", "new.json", "--matrix", "excess"}},
        {{"compare", "bench1.json", "bench2.json"}},
        {{"compare", "one", "other", "--fail-if", "peak_reserved_bytes > -99%"}, 3},
        {{"compare", "one", "no-such-run"}, 2},
        {{"compare", "one"}, 2}}},
  };
}

ScreensByVerb screens_of_allocators() {
  return {
      {"bench",
       {{{"bench", "direct", "caching", "-w", "lifo/10", "--rounds", "1"}},
        {{"bench", "direct", fixture_path("crasher") + ":after=10", "-w", "lifo/10", "--rounds", "1"}, 1},
        {{"bench", "direct", "-w", "lifo"}, 2}}},
      {"plugins list", {{{"plugins", "list"}}, {{"plugins"}}}},
      {"plugins info",
       {{{"plugins", "info", "caching"}},
        {{"plugins", "info", "simulated"}},
        {{"plugins", "info", fixture_path("tiny")}},
        {{"plugins", "info", "cachng"}, 2}}},
      {"plugins test",
       {{{"plugins", "test", "direct", "--only", "aligns"}},
        {{"plugins", "test", "direct", "caching:max_split_size=64MiB", "--only", "aligns"}},
        {{"plugins", "test", fixture_path("faulty") + ":after=2,how=overlap", "--only", "never_overlaps"}, 1},
        {{"plugins", "test", fixture_path("crasher") + ":after=2", "--only", "aligns"}, 1},
        {{"plugins", "test", "direct", "--only", "nothing"}, 2}}},
      {"new allocator",
       {{{"new", "allocator", "mine@"}},
        {{"new", "allocator", "mine", "--dir", "a folder@"}},
        {{"new", "allocator", "mine", "--dir", "one"}, 2},
        {{"new", "allocator", "9lives"}, 2}}},
      {"new backend",
       {{{"new", "backend", "mine@"}},
        {{"new", "backend", "mine", "--dir", "a folder@"}},
        {{"new", "backend", "cpu"}, 2},
        {{"new", "backend", "9lives"}, 2}}},
  };
}

ScreensByVerb screens_of_files() {
  return {
      {"trace info",
       {{{"trace", "info", "pinned.trace"}},
        {{"trace", "info", "pinned.trace", "メモリ.trace", "died.pickle", "state.trace"}},
        {{"trace", "info", "words.trace"}, 2},
        {{"trace", "info", "archive.zip"}, 2}}},
      {"trace convert",
       {{{"trace", "convert", "died.pickle", "out.tenon"}},
        {{"trace", "convert", "died.pickle", "out.csv", "--to", "rmm"}},
        {{"trace", "convert", "pinned.trace", "out.pickle", "--capacity", "400MiB"}, 1},
        {{"trace", "convert", "pinned.trace", "out.docx"}, 2}}},
      {"trace slice",
       {{{"trace", "slice", "pinned.trace", "out.tenon", "--from", "4"}},
        {{"trace", "slice", "pinned.trace", "out.tenon", "--from", "4000"}, 2},
        {{"trace", "slice", "pinned.trace", "out.tenon", "--from", "step 7"}, 2}}},
      {"trace diff",
       {{{"trace", "diff", "pinned.trace", "pinned.trace"}}, {{"trace", "diff", "pinned.trace", "メモリ.trace"}, 1}}},
      {"view",
       {{{"view", "pinned.trace"}},
        {{"view", "pinned.trace", "-o", "page.html", "--capacity", "400MiB"}},
        {{"view", "died.pickle", "-o", "page.html"}},
        {{"view", "pinned.trace", "-o", "no/such/folder/of/this/name/at/all/page.html"}, 2}}},
  };
}

ScreensByVerb screens_of_the_machine() {
  return {
      {"devices",
       {{{"devices"}},
        {{"devices", "--config", "exp.toml"}},
        {{"devices", "--watch", "--count", "1", "--interval", "0.01"}},
        {{"devices", "--config", "none.toml"}, 2}}},
      {"config check",
       {{{"config", "check", "exp.toml"}}, {{"config", "check", "grid.toml"}}, {{"config", "check", "wrong.toml"}, 2}}},
      {"config show", {{{"config", "show", "exp.toml"}}, {{"config", "show", "wrong.toml"}, 2}}},
      {"config explain",
       {{{"config", "explain", "exp.toml"}},
        {{"config", "explain", "exp.toml", "train"}},
        {{"config", "explain", "exp.toml", "train.lr", "train.lr=0.5"}},
        {{"config", "explain", "exp.toml", "train.lrr"}, 2}}},
      {"doctor",
       {{{"doctor"}},
        {{"doctor", "pinned.trace"}},
        {{"doctor", "pinned.trace", "--capacity", "420MiB"}},
        {{"doctor", "pinned.trace", "--capacity", "420MiB", "-a", "caching"}},
        {{"doctor", "pinned.trace", "--capacity", "100MiB"}},
        {{"doctor", "pinned.trace", "--capacity", "301MiB"}},
        {{"doctor", "died.pickle"}},
        {{"doctor", "checkered.trace", "--try", "buddy"}},
        {{"doctor", "checkered.trace", "--capacity", "230MiB"}},
        {{"doctor", "state.trace", "--capacity", "1GiB"}, 1},
        {{"doctor", "--capacity", "1GiB"}, 2}}},
      {"help", {{{"help"}}, {{"help", "replay"}}, {{"help", "rnu"}, 2}}},
      {"man", {{{"man", "rnu"}, 2}}},
      {"completion", {{{"completion", "tcsh"}, 2}}},
  };
}

/// In the folder that `Screens` fills.
const ScreensByVerb& screens() {
  static const ScreensByVerb kAll = [] {
    ScreensByVerb all;
    for (const auto& part : {screens_of_experiments(), screens_of_histories(), screens_of_allocators(),
                             screens_of_files(), screens_of_the_machine()})
      all.insert(part.begin(), part.end());
    return all;
  }();
  return kAll;
}

const bool kBothWays = [] {
  const char* given = std::getenv("TENON_TEST_SCREENS");
  return given != nullptr && std::string_view(given) == "all";
}();

class Screens : public Program, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    Program::SetUp();
    fs::create_symlink(TENON_SOURCE_DIR "/examples/traces/gpt2_adam.trace.gz", folder_.path() / "gpt2.trace.gz");
    fs::create_directories(folder_.path() / kFolderOfPlugins);
    for (const char* plugin : {"crasher", "faulty", "tiny"})
      fs::copy_file(fixture(plugin), folder_.path() / fixture_path(plugin));
    folder_.write("exp.toml", experiment("max_steps = 2\n"));
    folder_.write("grid.toml", experiment("[sweep]\n\"train.batch_size\" = [8, 16, 32]\n"));
    folder_.write("wrong.toml", experiment("batch_sise = 2\n"));
    folder_.write("pinned.trace", pinned_segments());
    folder_.write("checkered.trace", checkered());
    folder_.write("メモリ.trace", "a 0 8388608 0\nm a mark\na 1 16777216 0\nf 0\nf 1\n");  // a name of wide characters
    folder_.write("state.trace", "a 0 1048576 0\na 1 1048576 0\n");
    folder_.write("problem.csv", "id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\n");
    folder_.write("wrong.csv", "id,lower,upper,size\na,3,3,4\n");
    folder_.write("words.trace", "words that are not a history\n");
    folder_.write("archive.zip", std::string("PK\x03\x04") + std::string(60, '\0'));
    tenon({"replay", "pinned.trace", "-a", "caching", "--capacity", "420MiB", "--snapshot", "died.pickle"});
  }
  /// What `compare` and `run` find done.
  void make_results() {
    ASSERT_EQ(tenon({"run", "exp.toml", "--out", "one", "--quiet"}).code, 0);
    ASSERT_EQ(tenon({"run", "exp.toml", "allocator.name=\"direct\"", "train.lr=0.5", "--out", "other", "-q"}).code, 0);
    ASSERT_EQ(tenon({"run", "exp.toml", "allocator.name=direct,caching", "--sweep", "--out", "sweep", "-q"}).code, 0);
    for (const char* file : {"old.json", "new.json"})
      folder_.write(file, tenon({"replay", "pinned.trace", "メモリ.trace", "--format", "json", "--quiet"}).out);
    for (const char* file : {"bench1.json", "bench2.json"})
      folder_.write(
          file, tenon({"bench", "direct", "caching", "-w", "lifo/10", "--rounds", "2", "--format", "json", "-q"}).out);
    // As a sweep leaves it that is ended in its second cell.
    fs::copy(folder_.path() / "sweep", folder_.path() / "half", fs::copy_options::recursive);
    fs::remove(folder_.path() / "half/result.json");
    fs::remove(folder_.path() / "half/cells/002-caching/result.json");
  }

  Shown on(unsigned short columns, const Screen& screen, const std::map<std::string, std::string>& variables) {
    std::vector<std::string> words = screen.words;
    const std::string number = std::to_string(++runs_);
    for (std::string& word : words) {
      const std::size_t at = word.find('@');
      if (at == std::string::npos) continue;
      const bool is_copy = word == "half@";
      word.replace(at, 1, number);
      if (is_copy) fs::copy(folder_.path() / "half", folder_.path() / word, fs::copy_options::recursive);
    }
    if (screen.until.empty()) return tenon_on_terminal(folder_, words, columns, variables);
    return tenon_on_terminal(folder_, words, columns, variables, [&](const std::string& shown) {
      return without_escapes(shown).find(screen.until) != std::string::npos;
    });
  }

  /// Whether it may be longer than the terminal. That it stands there is remembered.
  bool is_named(const std::string& line) {
    for (const LongLine& one : kLongLines) {
      std::string text = one.line;
      for (const auto& [word, stands_for] :
           {std::pair<std::string, std::string>("HERE", folder_.path().string()), {"PLUGINS/", kFolderOfPlugins}})
        if (const std::size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), stands_for);
      const std::size_t end = line.ends_with(" \\") ? line.size() - 2 : line.size();  // a command goes on below
      if (line.substr(0, end) != text) continue;
      seen_.insert(one.line);
      return true;
    }
    return false;
  }

  /// Titles of tables, and the word "tenon:" before a refusal.
  static bool has_what_is_coloured(const Shown& shown) {
    return std::ranges::any_of(shown.lines, [&](const std::string& line) {
      const bool is_rule = line.starts_with("--") && line.find_first_not_of("- ") == std::string::npos;
      return is_rule || (shown.code == 2 && line.starts_with("tenon: "));
    });
  }

  void expect_fits(const Shown& shown, unsigned short columns) {
    EXPECT_FALSE(shown.lines.empty());
    for (const std::string& line : shown.lines) {
      EXPECT_TRUE(columns_of(line) <= columns || is_named(line)) << "longer than the terminal: " << line;
    }
  }

  /// The verbs that do something: those under which there are no others.
  void find_verbs(const std::vector<std::string>& path, std::set<std::string>& found) {
    std::vector<std::string> words = path;
    words.emplace_back("--help");
    std::istringstream lines(tenon(words).out);
    bool is_list = false, has_verbs = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) is_list = false;
      if (is_list && line.starts_with("  ") && line[2] != ' ') {
        has_verbs = true;
        words.back() = line.substr(2, line.find(' ', 2) - 2);
        find_verbs(words, found);
      }
      if (line == "Subcommands:") is_list = true;
    }
    if (has_verbs) return;
    std::string name;
    for (const std::string& word : path) name += (name.empty() ? "" : " ") + word;
    found.insert(name);
  }

  int runs_ = 0;
  std::set<std::string> seen_;  ///< of kLongLines
};

TEST_P(Screens, NoLineIsWrappedByTheTerminal) {
  static const std::set<std::string> kOfResults = {"compare", "run", "replay", "new allocator"};
  if (kOfResults.contains(GetParam())) make_results();
  for (const Screen& screen : screens().at(GetParam())) {
    SCOPED_TRACE(testing::PrintToString(screen.words));
    bool is_coloured = true;  // at every other width, without TENON_TEST_SCREENS=all
    for (const unsigned short columns : kWidths) {
      SCOPED_TRACE(columns);
      if (is_coloured || kBothWays) {
        const Shown coloured = on(columns, screen, {});
        EXPECT_EQ(coloured.code, screen.code) << coloured.bytes;
        expect_fits(coloured, columns);
        if (has_what_is_coloured(coloured)) {
          EXPECT_THAT(coloured.bytes, testing::ContainsRegex(kColour));
        }
      }
      if (!is_coloured || kBothWays) {
        const Shown plain = on(columns, screen, {{"NO_COLOR", "1"}});
        EXPECT_EQ(plain.code, screen.code);
        expect_fits(plain, columns);
        EXPECT_THAT(plain.bytes, Not(testing::ContainsRegex(kColour)));
      }
      is_coloured = !is_coloured;
    }
  }
  for (const LongLine& one : kLongLines) {
    if (one.verb != GetParam()) continue;
    EXPECT_TRUE(seen_.contains(one.line)) << "is not there any more: " << one.line;
  }
}

std::vector<std::string> names_of_screens() {
  std::vector<std::string> names;
  for (const auto& [verb, of_it] : screens()) names.push_back(verb);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, Screens, testing::ValuesIn(names_of_screens()), [](const auto& screen) {
  std::string name = screen.param;
  std::ranges::replace(name, ' ', '_');
  return name;
});

class AllScreens : public Screens {};

TEST_F(AllScreens, AreOfEveryVerb) {
  std::set<std::string> verbs;
  find_verbs({}, verbs);
  const std::vector<std::string> known = names_of_screens();
  EXPECT_EQ(std::set<std::string>(known.begin(), known.end()), verbs);
  for (const auto& [verb, of_it] : screens()) {
    const bool has_result = std::ranges::any_of(of_it, [](const Screen& screen) { return screen.code == 0; });
    EXPECT_NE(has_result, kForPrograms.contains(verb)) << verb;
  }
}

TEST_F(AllScreens, HaveAHelpThatFits) {
  std::set<std::string> verbs;
  find_verbs({}, verbs);
  for (const std::string& verb : verbs) {
    Screen help;
    std::istringstream words(verb);
    for (std::string word; words >> word;) help.words.push_back(word);
    help.words.emplace_back("--help");
    SCOPED_TRACE(verb);
    for (const unsigned short columns : kWidths) expect_fits(on(columns, help, {}), columns);
  }
}

}  // namespace
}  // namespace tenon::test
