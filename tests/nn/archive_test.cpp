// Archives: what is written comes back to the bit; a file that is cut, changed or hostile is refused.
#include "../support/message_of.h"
#include "../support/scratch_folder.h"

#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;

std::string bytes_of(const nn::TensorFile& file) {
  std::string bytes;
  nn::write_safetensors(
      file, [&](const void* data, std::size_t count) { bytes.append(static_cast<const char*>(data), count); });
  return bytes;
}

nn::TensorFile parse(const std::string& bytes) {
  return nn::read_safetensors(std::as_bytes(std::span(bytes.data(), bytes.size())), "test");
}

/// A file with this header and so many bytes of data.
std::string with_header(const std::string& header, std::size_t data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  return bytes + header + std::string(data, '\0');
}

TEST(Safetensors, EveryDtypeAndRankComesBack) {
  nn::TensorFile file;
  for (const Dtype dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    file.tensors.insert(std::string(name_of(dtype)), tenon::arange(6, TensorOptions(kInt64)).to(dtype).view({2, 3}));
  }
  file.tensors.insert("scalar", tenon::full({}, 2.5));
  file.tensors.insert("empty", tenon::empty({3, 0}));
  file.metadata["a"] = "b \"c\"";
  const nn::TensorFile back = parse(bytes_of(file));
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& item : file.tensors) {
    const Tensor& other = back.tensors[item.key()];
    EXPECT_EQ(other.scalar_type(), item.value().scalar_type()) << item.key();
    EXPECT_TRUE(other.equal(item.value())) << item.key();
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  nn::TensorFile file;
  file.tensors.insert("x", tenon::ones({4}));
  const std::string bytes = bytes_of(file);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(parse(bytes.substr(0, length)), Error) << length;
  }
}

TEST(Safetensors, DataAreAlignedToEightBytesByNoMoreSpacesThanThatTakes) {
  for (std::size_t length = 1; length <= 16; ++length) {
    nn::TensorFile file;
    file.tensors.insert(std::string(length, 'n'), tenon::ones({2}));
    const std::string bytes = bytes_of(file);
    const auto header = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0]));
    EXPECT_EQ(header % 8, 0u);
    EXPECT_EQ(bytes.size(), 8 + header + 8);
    const std::size_t json = bytes.find_last_of('}', 8 + header - 1) + 1 - 8;
    EXPECT_LT(header - json, 8u);
  }
}

TEST(Safetensors, OnlyAFileThatHasMetadataNamesThem) {
  nn::TensorFile file;
  file.tensors.insert("x", tenon::ones({1}));
  EXPECT_THAT(bytes_of(file), ::testing::Not(HasSubstr("__metadata__")));
  file.metadata["a"] = "b";
  EXPECT_THAT(bytes_of(file), HasSubstr(R"("__metadata__":{"a":"b"})"));
}

// A file collects small tensors and writes large ones at once.
TEST(Safetensors, SmallAndLargeTensorsOfAFileKeepTheirOrder) {
  nn::TensorFile file;
  const std::vector<std::int64_t> sizes{3, 100'000, 5, 20'000, 20'000, 20'000, 20'000, 65'536, 1};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    file.tensors.insert(std::to_string(i), tenon::full({sizes[i]}, static_cast<double>(i)));
  const std::string path = scratch_folder() + "order.safetensors";
  nn::save_safetensors(file, path);
  const nn::TensorFile back = nn::load_safetensors(path);
  ASSERT_EQ(back.tensors.size(), sizes.size());
  for (const auto& item : file.tensors) EXPECT_TRUE(back.tensors[item.key()].equal(item.value())) << item.key();
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const auto refused = [](const std::string& header, std::size_t data) {
    return message_of([&] { parse(with_header(header, data)); });
  };
  EXPECT_THAT(refused("not json", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refused("[1,2]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refused(std::string(200000, '['), 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refused(R"({"__metadata__":[]})", 0), HasSubstr("__metadata__ is not an object"));
  EXPECT_THAT(refused(R"({"__metadata__":{"a":1}})", 0), HasSubstr("__metadata__ 'a' is not a string"));
  EXPECT_THAT(refused(R"({"x":{"dtype":"F32","shape":[1]}})", 4), HasSubstr("lacks"));
  for (const char* offsets : {"4", "[0]", "[0,4,8]", "[-4,4]", "[0,-4]", "[0.5,4]", "[0,\"4\"]"}) {
    EXPECT_THAT(refused(std::string(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":)") + offsets + "}}", 4),
                HasSubstr("no proper data_offsets"))
        << offsets;
  }
  EXPECT_THAT(refused(R"({"x":{"dtype":"F7","shape":[1],"data_offsets":[0,4]}})", 4), HasSubstr("unknown dtype"));
  EXPECT_THAT(refused(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,400]}})", 4), HasSubstr("truncated"));
  EXPECT_THAT(refused(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4), HasSubstr("needs 8 bytes"));
  EXPECT_THAT(refused(R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), HasSubstr("size"));
  EXPECT_THAT(refused(R"({"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
              HasSubstr("too large"));
  EXPECT_THAT(refused(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4), HasSubstr("offsets"));
  EXPECT_THAT(refused(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2), HasSubstr("begins at 1"));
  EXPECT_THAT(refused(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2), HasSubstr("belong to no tensor"));
  EXPECT_THAT(
      refused(
          R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          2),
      HasSubstr("begins at 1"));
  EXPECT_THAT(message_of([&] { parse(std::string(8, '\xff') + "{}"); }), HasSubstr("header"));
}

TEST(Archive, AModuleComesBackByItsNames) {
  nn::Sequential a(nn::Linear(3, 4), nn::Linear(4, 2)), b(nn::Linear(3, 4), nn::Linear(4, 2));
  std::stringstream stream;
  save(a, stream);
  load(b, stream);
  for (const auto& parameter : a->named_parameters()) {
    EXPECT_TRUE(parameter.value().equal(b->named_parameters()[parameter.key()])) << parameter.key();
  }
}

/// Has a parameter, and wants to be left out.
struct UnsavedImpl : nn::Cloneable<UnsavedImpl> {
  UnsavedImpl() { reset(); }
  void reset() override { own = register_parameter("own", tenon::full({2}, 5.0)); }
  bool is_serializable() const override { return false; }
  Tensor own;
};
TENON_MODULE(Unsaved);

struct PartlySavedImpl : nn::Cloneable<PartlySavedImpl> {
  PartlySavedImpl() { reset(); }
  void reset() override {
    linear = register_module("linear", nn::Linear(2, 2));
    unsaved = register_module("unsaved", Unsaved());
  }
  nn::Linear linear{nullptr};
  Unsaved unsaved{nullptr};
};
TENON_MODULE(PartlySaved);

TEST(Archive, AChildThatIsNotSerializableIsNeitherWrittenNorRead) {
  PartlySaved from, to;
  std::stringstream stream;
  save(from, stream);
  const nn::TensorFile file = parse(stream.str());
  for (const auto& item : file.tensors) EXPECT_THAT(item.key(), ::testing::Not(HasSubstr("unsaved")));
  EXPECT_EQ(file.tensors.size(), 2u);
  const NoGradGuard guard;
  to->unsaved->own.fill_(7);
  load(to, stream);
  EXPECT_TRUE(to->linear->weight.equal(from->linear->weight));
  EXPECT_TRUE(to->unsaved->own.equal(tenon::full({2}, 7.0)));
}

TEST(Archive, PlainValuesAndNestingComeBack) {
  OutputArchive out, inner;
  inner.write("i", 7);
  inner.write("b", true);
  inner.write("d", 0.1);
  inner.write_text("s", "a: b");
  out.write("inner", inner);
  std::stringstream stream;
  out.save_to(stream);
  InputArchive in, nested;
  in.load_from(stream);
  in.read("inner", nested);
  EXPECT_EQ(nested.read_integer("i"), 7);
  EXPECT_TRUE(nested.read_boolean("b"));
  EXPECT_EQ(nested.read_real("d"), 0.1);
  EXPECT_EQ(nested.read_text("s"), "a: b");
  EXPECT_THAT(message_of([&] { nested.read_integer("x"); }), HasSubstr("does not have a field with name 'inner.x'"));
  EXPECT_THAT(message_of([&] { nested.read_integer("d"); }), HasSubstr("another kind"));
  Tensor tensor = tenon::zeros({1});
  EXPECT_THAT(message_of([&] { nested.read("t", tensor); }), HasSubstr("No such serialized tensor 'inner.t'"));
  InputArchive deeper;
  EXPECT_THAT(message_of([&] { nested.read("m", deeper); }), HasSubstr("No such serialized submodule: 'inner.m'"));
}

TEST(Archive, ValuesOfEachKindComeBackAsThatKind) {
  OutputArchive out, inner;
  out.write("tensor", IValue(tenon::tensor({1.0f, 2.0f})));
  out.write("true", IValue(true));
  out.write("false", IValue(false));
  out.write("int", IValue(std::int64_t{-7}));
  out.write("double", IValue(0.1));
  out.write("text", IValue("i:5"));
  out.write("no text", IValue(""));
  inner.write("i", 1);
  out.write("inner", inner);
  EXPECT_EQ(message_of([&] { out.write("list", IValue(std::vector<std::int64_t>{1})); }),
            "archive: the value of 'list' is of a kind that cannot be written");
  EXPECT_EQ(message_of([&] { out.write("none", IValue()); }),
            "archive: the value of 'none' is of a kind that cannot be written");
  EXPECT_EQ(message_of([&] { out.write("int", IValue(true)); }), "Key 'int' already defined");
  std::stringstream stream;
  out.save_to(stream);
  InputArchive in;
  in.load_from(stream);
  const auto read = [&](const std::string& key) {
    IValue value;
    in.read(key, value);
    return value;
  };
  EXPECT_TRUE(read("tensor").toTensor().equal(tenon::tensor({1.0f, 2.0f})));
  EXPECT_TRUE(read("true").toBool());
  EXPECT_FALSE(read("false").toBool());
  EXPECT_EQ(read("int").toInt(), -7);
  EXPECT_EQ(read("double").toDouble(), 0.1);
  EXPECT_EQ(read("text").toStringRef(), "i:5");
  EXPECT_EQ(read("no text").toStringRef(), "");
}

TEST(Archive, AValueThatIsNotThereIsNamedWithItsPathAndLeavesWhatWasThereBefore) {
  OutputArchive out, inner, innermost;
  innermost.write("i", 1);
  inner.write("innermost", innermost);
  out.write("inner", inner);
  std::stringstream stream;
  out.save_to(stream);
  InputArchive in, nested;
  in.load_from(stream);
  in.read("inner", nested);
  const auto expect_absent = [](InputArchive& archive, const std::string& key) {
    IValue value(std::int64_t{5});
    EXPECT_FALSE(archive.try_read(key, value)) << key;
    EXPECT_EQ(message_of([&] { archive.read(key, value); }),
              "archive does not have a field with name '" + archive.full_name(key) + "'");
    EXPECT_EQ(value.toInt(), 5) << key;
  };
  EXPECT_EQ(nested.full_name("absent"), "inner.absent");
  expect_absent(nested, "absent");
  expect_absent(nested, "innermost");  // what is nested is no value
  // What other programs have written of their own.
  nn::TensorFile foreign;
  foreign.metadata = {{"empty", ""}, {"format", "pt"}};
  in.load_from(foreign);
  expect_absent(in, "empty");
  expect_absent(in, "format");
}

TEST(Archive, AFunctionThatTakesFewerBytesThanItIsGivenEndsTheWriting) {
  OutputArchive out;
  out.write("x", tenon::arange(100'000));
  std::string taken;
  out.save_to([&](const void* data, std::size_t bytes) {
    taken.append(static_cast<const char*>(data), bytes);
    return bytes;
  });
  EXPECT_TRUE(parse(taken).tensors["x"].equal(tenon::arange(100'000)));
  for (const std::size_t good : {0, 1}) {
    std::size_t calls = 0;
    EXPECT_EQ(message_of([&] {
                out.save_to([&](const void*, std::size_t bytes) { return calls++ == good ? bytes - 1 : bytes; });
              }),
              "the writer of an archive did not take all bytes");
    EXPECT_EQ(calls, good + 1);
  }
}

TEST(Archive, AFunctionThatReadsFewerBytesThanAreAnnouncedIsRefused) {
  OutputArchive out;
  out.write("i", 3);
  std::stringstream stream;
  out.save_to(stream);
  const std::string bytes = stream.str();
  InputArchive in;
  const auto load = [&](std::size_t given) {
    in.load_from(
        [&](std::uint64_t position, void* to, std::size_t) {
          EXPECT_EQ(position, 0u);
          bytes.copy(static_cast<char*>(to), given);
          return given;
        },
        [&] { return bytes.size(); });
  };
  load(bytes.size());
  EXPECT_EQ(in.read_integer("i"), 3);
  EXPECT_EQ(
      message_of([&] { load(bytes.size() - 1); }),
      "archive: " + std::to_string(bytes.size() - 1) + " bytes read, " + std::to_string(bytes.size()) + " announced");
}

}  // namespace
}  // namespace tenon::test
