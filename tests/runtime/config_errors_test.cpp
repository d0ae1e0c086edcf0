// Mistakes in a configuration: each is told with its place, the offending text and what was meant.
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/config/toml_reader.h>
#include <tenon/runtime/plugins/plugin_search.h>

#include "runtime/fixture.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ConfigMistake : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TENON_PLUGIN_PATH", TENON_FIXTURE_DIR, 1); }
  void TearDown() override {
    ::unsetenv("TENON_PLUGIN_PATH");
    ::unsetenv("TENON_TRAIN__EPOCHS");
    ::unsetenv("TENON_TRAIN__EPOCHZ");
    set_plugin_search({});
  }
  std::string mistake(const std::string& text, std::vector<std::string> overrides = {}) {
    return message_of<ConfigError>([&] { load_text(folder_, text, std::move(overrides)); });
  }
  Folder folder_;
};

TEST_F(ConfigMistake, AnUnknownKeyNamesTheNearest) {
  EXPECT_THAT(mistake("[train]\nepochs = 1\nbatchsize = 3\n"),
              AllOf(HasSubstr("exp.toml:3:1: "), HasSubstr("unknown key 'train.batchsize'"),
                    HasSubstr("did you mean 'batch_size'?"), HasSubstr("3 | batchsize = 3"), HasSubstr("| ^")));
  EXPECT_THAT(mistake("[train]\n  optimiser = \"sgd\"\n"),
              AllOf(HasSubstr("exp.toml:2:3: "), HasSubstr("did you mean 'optimizer'?")));
}

TEST_F(ConfigMistake, AKeyInTheWrongSectionNamesTheRightOne) {
  EXPECT_THAT(mistake("epochs = 3\n"), AllOf(HasSubstr("exp.toml:1:1: "), HasSubstr("did you mean 'train.epochs'?")));
  EXPECT_THAT(mistake("[device]\nlr = 3\n"), HasSubstr("did you mean 'train.lr'?"));
  EXPECT_THAT(mistake("[train]\nfrobnicate = 3\n"), HasSubstr("known here: epochs, batch_size, lr"));
}

TEST_F(ConfigMistake, AnUnknownSectionNamesTheNearest) {
  EXPECT_THAT(mistake("[alocator]\nname = \"caching\"\n"),
              AllOf(HasSubstr("exp.toml:1:2: "), HasSubstr("[alocator]\n    |  ^"),
                    HasSubstr("unknown section [alocator]; did you mean [allocator]?")));
  EXPECT_THAT(mistake("\n[trian]\n"), AllOf(HasSubstr("exp.toml:2:2: "), HasSubstr("did you mean [train]?")))
      << "empty, but still a mistake";
  EXPECT_THAT(mistake("[training]\nlr = 1\n"), HasSubstr("did you mean [train]?"));
  EXPECT_THAT(mistake("[sweep]\n\"sweep.x\" = [1, 2]\n"), HasSubstr("a sweep varies settings of other sections"));
  EXPECT_THAT(mistake("[device.simulatd]\ncount = 1\n"), HasSubstr("did you mean [device.simulated]?"));
  EXPECT_THAT(mistake("[allocator.limt]\nbytes = 1\n"), HasSubstr("did you mean [allocator.limit]?"));
  EXPECT_THAT(mistake("[allocator.stars]\nx = 1\n"),
              HasSubstr("[allocator.stats]? One of a plugin is known where its .so is named in this file"));
}

TEST_F(ConfigMistake, ASectionIsNoValue) {
  EXPECT_THAT(mistake("allocator = \"caching\"\n"),
              AllOf(HasSubstr("exp.toml:1:1: "), HasSubstr("'allocator' is a section")));
}

TEST_F(ConfigMistake, AWrongTypeIsQuotedWithWhatIsExpected) {
  EXPECT_THAT(mistake("[train]\nepochs = \"two hundred\"\n"),
              AllOf(HasSubstr("exp.toml:2:10: "), HasSubstr("[train] option 'epochs'"),
                    HasSubstr("integer, from 1 to 1000"), HasSubstr("two hundred")));
  EXPECT_THAT(mistake("[train]\ncheckpoint = 1\n"), AllOf(HasSubstr("exp.toml:2:14: "), HasSubstr("boolean")));
  EXPECT_THAT(mistake("[train]\nlr = true\n"), HasSubstr("number"));
  EXPECT_THAT(mistake("[train]\nepochs = 2.5\n"), HasSubstr("integer"));
  EXPECT_THAT(mistake("[train]\nepochs = 2026-08-01\n"), HasSubstr("2026-08-01"));
  EXPECT_THAT(mistake("[allocator]\nlayers = \"stats\"\n"),
              AllOf(HasSubstr("exp.toml:2:10: "), HasSubstr("list of strings"), HasSubstr("\"stats\"")));
  EXPECT_THAT(mistake("[allocator]\nlayers = [\"stats\", 3]\n"), HasSubstr("list of strings"));
}

TEST_F(ConfigMistake, ASizeInParsecsListsTheUnits) {
  EXPECT_THAT(mistake("[train]\nbudget = \"12 parsecs\"\n"),
              AllOf(HasSubstr("exp.toml:2:10: "), HasSubstr("12 parsecs"), HasSubstr("MiB")));
  EXPECT_THAT(mistake("[train]\nbudget = \"12MB\"\n"), HasSubstr("MiB"));
  EXPECT_THAT(mistake("[train]\nbudget = -1\n"), HasSubstr("not negative"));
  EXPECT_THAT(mistake("[train]\nbudget = \"0.3B\"\n"),
              AllOf(HasSubstr("exp.toml:2:10: "), HasSubstr("0.3B"), HasSubstr("not a whole number of bytes")));
}

TEST_F(ConfigMistake, AValueOutOfRangeNamesTheRange) {
  EXPECT_THAT(mistake("[train]\nbatch_size = 0\n"),
              AllOf(HasSubstr("exp.toml:2:14: "), HasSubstr("from 1 to 4096"), HasSubstr("0")));
  EXPECT_THAT(mistake("[train]\nbatch_size = 99999\n"), HasSubstr("99999"));
  EXPECT_THAT(mistake("[train]\noptimizer = \"adamm\"\n"),
              AllOf(HasSubstr("sgd, adamw"), HasSubstr("did you mean \"adamw\"?")));
}

TEST_F(ConfigMistake, APluginsOptionsAreCheckedAgainstItsSchema) {
  EXPECT_THAT(mistake("[allocator]\nname = \"tiny\"\n[allocator.tiny]\nchnk = 1\n"),
              AllOf(HasSubstr("exp.toml:4:1: "), HasSubstr("did you mean 'chunk'?")));
  EXPECT_THAT(mistake("[allocator.tiny]\nchunk = \"2MiB\"\n"),
              AllOf(HasSubstr("exp.toml:2:9: "), HasSubstr("from 512 to 1MiB")))
      << "also when it is not the one in service";
  EXPECT_THAT(mistake("[device.simulated]\ncapacity = \"many\"\n"), HasSubstr("exp.toml:2:12: "));
}

TEST_F(ConfigMistake, ANumberThatIsNotANumberIsRefused) {
  EXPECT_THAT(mistake("[train]\nlr = nan\n"), AllOf(HasSubstr("exp.toml:2:6: "), HasSubstr("'lr' expects a number")));
  EXPECT_THAT(mistake("", {"train.lr=-nan"}), HasSubstr("got nan"));
}

TEST_F(ConfigMistake, AnIntegerThatIsTooLongIsOutOfRangeAndNoString) {
  EXPECT_THAT(mistake("", {"train.epochs=99999999999999999999"}),
              HasSubstr("'epochs' expects an integer, from 1 to 1000; got 99999999999999999999: out of range"));
  EXPECT_THAT(mistake("", {"train.lr=-99999999999999999999"}), HasSubstr("got -99999999999999999999: out of range"));
  EXPECT_THAT(mistake("[train]\nepochs = 99999999999999999999\n"),
              AllOf(HasSubstr("exp.toml:2:"), HasSubstr("not representable in 64 bits")));
}

TEST_F(ConfigMistake, SeveralValuesOnTheCommandLineAreSweptOverWithAnOption) {
  for (const char* values : {"0.1,0.2", "[0.1,0.2]"})
    EXPECT_THAT(mistake("", {std::string("train.lr=") + values}), HasSubstr("to run them all add --sweep"));
  EXPECT_THAT(mistake("", {"train.optimizer=sgd,adamw"}), HasSubstr("to run them all add --sweep"));
  EXPECT_THAT(mistake("", {"train.lr=fast"}), testing::Not(HasSubstr("--sweep")));
  EXPECT_THAT(mistake("[train]\nlr = \"0.1,0.2\"\n"), testing::Not(HasSubstr("--sweep")));
}

TEST_F(ConfigMistake, TheMemoryOfADeviceIsNotAFewBytes) {
  const auto words = HasSubstr("option 'capacity': 8 is 8 bytes, less than a page of the device; did you mean 8GiB?");
  EXPECT_THAT(mistake("[device.simulated]\ncapacity = 8\n"), AllOf(HasSubstr("exp.toml:2:12: "), words));
  EXPECT_THAT(mistake("[device.simulated]\ncapacity = \"8\"\n"), words);
  EXPECT_THAT(mistake("[device.cpu]\ncapacity = 8\n"), words);
  EXPECT_THAT(mistake("", {"device.simulated.capacity=8"}), words);
  EXPECT_THAT(mistake("[sweep]\n\"device.simulated.capacity\" = [\"8GiB\", 8]\n"),
              AllOf(HasSubstr("exp.toml:2:40: "), words));
}

TEST_F(ConfigMistake, BytesThatAreMeantAreReadAgainFromTheSettings) {
  const Config config = load_text(folder_, "[device.simulated]\ncapacity = \"1000B\"\n");
  EXPECT_THAT(config.resolved_toml(), HasSubstr("capacity = \"1000B\""));
  EXPECT_EQ(load_text(folder_, config.resolved_toml()).experiment().backend_options.at("simulated").size("capacity"),
            1000u);
  EXPECT_THAT(
      load_text(folder_, "[device.simulated]\ncapacity = \"8GiB\"\n[train]\nbudget = \"100B\"\n").resolved_toml(),
      testing::AllOf(HasSubstr("capacity = \"8GiB\""), HasSubstr("budget = \"100\"")))
      << "only where the unit would be missed";
}

TEST_F(ConfigMistake, AnUnknownAllocatorNamesTheNearest) {
  EXPECT_THAT(mistake("[allocator]\nname = \"cachng\"\n"),
              AllOf(HasSubstr("exp.toml:2:8: "), HasSubstr("unknown allocator \"cachng\""),
                    HasSubstr("did you mean \"caching\"?")));
  EXPECT_THAT(mistake("[allocator]\nlayers = [\"limmit\"]\n"), AllOf(HasSubstr("exp.toml:2:10: "), HasSubstr("limit")));
  EXPECT_THAT(mistake("", {"allocator.name=cachng"}),
              AllOf(HasSubstr("command line allocator.name=cachng"), HasSubstr("\"caching\"")));
}

TEST_F(ConfigMistake, APluginThatWouldNotLoadKeepsItsKindOfError) {
  const auto failure = [&](const std::string& text) {
    return message_of<PluginError>([&] { load_text(folder_, text); });
  };
  EXPECT_THAT(failure("[allocator]\nname = \"./gone.so\"\n"),
              AllOf(HasSubstr("exp.toml:2:8: "), HasSubstr("gone.so"), HasSubstr("no such file")));
  EXPECT_THAT(failure("[allocator]\nname = \"" + fixture("new_abi").string() + "\"\n"), HasSubstr("plugin ABI 99."));
  EXPECT_THAT(failure("[plugins]\nload = [\"" + fixture("plain").string() + "\"]\n"),
              AllOf(HasSubstr("exp.toml:2:8: "), HasSubstr("no Tenon plugin")));
}

TEST_F(ConfigMistake, AnUnknownDeviceIsTold) {
  EXPECT_THAT(mistake("[device]\nname = \"simulatd:0\"\n"),
              AllOf(HasSubstr("exp.toml:2:8: "), HasSubstr("did you mean \"simulated\"?")));
  EXPECT_THAT(mistake("[device]\nname = \"cpu:one\"\n"), HasSubstr("exp.toml:2:8: "));
}

TEST_F(ConfigMistake, DevicesOfABatchAreOfOneKindAndEachStandsThereOnce) {
  EXPECT_THAT(mistake("[device]\nnames = [\"cpu:0\", \"simulated:0\"]\n"),
              AllOf(HasSubstr("exp.toml:2:9: "),
                    HasSubstr("device.names has simulated:0 beside cpu:0: they must be of one kind")));
  EXPECT_THAT(mistake("[device]\nnames = [\"cpu\", \"cpu:0\"]\n"),
              HasSubstr("device.names has cpu:0 twice: each device takes one part of a batch"));
}

TEST_F(ConfigMistake, AMistakeInTheFileDoesNotHideBehindTheCommandLine) {
  EXPECT_THAT(mistake("[train]\nepochs = \"x\"\n", {"train.epochs=2"}), HasSubstr("exp.toml:2:10: "));
}

TEST_F(ConfigMistake, TheEnvironmentAndTheCommandLineAreNamedAsThePlace) {
  ::setenv("TENON_TRAIN__EPOCHS", "many", 1);
  EXPECT_THAT(mistake(""), AllOf(HasSubstr("environment TENON_TRAIN__EPOCHS: "), HasSubstr("many")));
  ::unsetenv("TENON_TRAIN__EPOCHS");
  ::setenv("TENON_TRAIN__EPOCHZ", "1", 1);
  EXPECT_THAT(mistake(""), AllOf(HasSubstr("environment TENON_TRAIN__EPOCHZ: "), HasSubstr("did you mean 'epochs'?")));
  ::unsetenv("TENON_TRAIN__EPOCHZ");
  EXPECT_THAT(mistake("", {"train.epochs=-1"}),
              AllOf(HasSubstr("command line train.epochs=-1: "), HasSubstr("from 1 to 1000")));
  EXPECT_THAT(mistake("", {"train.epochs"}), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(mistake("", {"epoch=1"}), HasSubstr("command line epoch=1: unknown key 'epoch'"));
  EXPECT_THAT(mistake("", {"train.epochs=[1, 2]"}), HasSubstr("add --sweep"));
}

TEST_F(ConfigMistake, TextThatIsNoTomlHasItsPlace) {
  EXPECT_THAT(mistake("[train]\nepochs = = 3\n"), AllOf(HasSubstr("exp.toml:2:10: "), HasSubstr("not TOML")));
  EXPECT_THAT(mistake("[train\n"), HasSubstr("exp.toml:1:"));
  EXPECT_THAT(mistake("[train]\nepochs = 1\nepochs = 2\n"), HasSubstr("exp.toml:3:"));
  EXPECT_THAT(mistake(std::string(100000, '[')), HasSubstr("exp.toml:1:"));
  EXPECT_THAT(mistake("\n" +
                      [] {
                        std::string deep = "x";
                        for (int i = 0; i < 100000; ++i) deep += ".x";
                        return deep;
                      }() +
                      " = 1\n"),
              HasSubstr("exp.toml:2:1: a key of more than 16 parts"));
  EXPECT_THAT(mistake("x = " + std::string(2 << 20, '1')), HasSubstr("larger than a mebibyte"));
  EXPECT_THAT(mistake("x = \"\xff\xfe\"\n"), HasSubstr("exp.toml:1:"));
}

TEST_F(ConfigMistake, AMebibyteIsReadAndAByteMoreIsRefused) {
  std::string text = "x = 1\n#";
  text.resize(MiB, ' ');
  EXPECT_EQ(read_toml(text, "large.toml").size(), 1U);
  text += ' ';
  EXPECT_THAT(message_of<ConfigError>([&] { read_toml(text, "large.toml"); }),
              HasSubstr("large.toml: larger than a mebibyte"));
}

TEST_F(ConfigMistake, ATableIsNoValueOfASetting) {
  EXPECT_TRUE(read_toml_value("[1, 2]").has_value());
  EXPECT_FALSE(read_toml_value("{ a = 1 }").has_value());
  EXPECT_FALSE(read_toml_value("{}").has_value());
}

TEST_F(ConfigMistake, AFileThatIsNotThereIsNamed) {
  ConfigRequest request;
  request.file = "/no/such/file.toml";
  EXPECT_THAT(message_of<ConfigError>([&] { Config::load(request); }),
              AllOf(HasSubstr("/no/such/file.toml"), HasSubstr("No such file")));
  request.file = folder_.path();
  EXPECT_THAT(message_of<ConfigError>([&] { Config::load(request); }), HasSubstr("it is a folder"));
}

TEST_F(ConfigMistake, AnExperimentsOwnErrorsPointAtTheSetting) {
  const auto config = load_text(folder_, "[train]\nfile = \"gone\"\n").experiment();
  EXPECT_THAT(std::string(config.error("train.file", "no such file").what()),
              AllOf(HasSubstr("exp.toml:2:8: train.file: no such file"), HasSubstr("^")));
  EXPECT_EQ(std::string(config.error("train.lr", "too bold").what()), "train.lr: too bold");
}

}  // namespace
}  // namespace tenon::test
