//===- SafetensorsTest.cpp - strict reading, whole writing ----------------===//
#include "core/DType.h"
#include "core/Error.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/SafetensorsWriter.h"
#include "test/unit/runtime/Files.h"

#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace ds::test {
namespace {

using runtime::SafetensorsFile;

const std::string twoTensors = R"({"__metadata__":{"format":"pt"},)"
                               R"("a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                               R"("b":{"dtype":"I32","shape":[],"data_offsets":[0,4]},)"
                               R"("empty":{"dtype":"I64","shape":[0,3],"data_offsets":[4,4]}})";

std::string errorOfFile(const std::string &bytes) {
  const TemporaryFolder folder;
  writeFile(folder / "f", bytes);
  return errorOf([&] { SafetensorsFile(folder / "f"); });
}

TEST(SafetensorsFile, ReadsTensorsAndMetadata) {
  const TemporaryFolder folder;
  writeFile(folder / "f", safetensors(twoTensors, std::string(12, 'x')));
  const SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.find("a")->shape, Shape{2});
  EXPECT_EQ(file.find("a")->offset, 8 + twoTensors.size() + 4);
  EXPECT_EQ(file.find("b")->shape, Shape{});
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

TEST(SafetensorsFile, RefusesBadHeaders) {
  const auto entry = [](const std::string &fields) {
    return errorOfFile(safetensors("{\"a\":{" + fields + "}}", "0123"));
  };
  EXPECT_THAT_CONTAINS(errorOfFile("abc"), "3 bytes, too few");
  EXPECT_THAT_CONTAINS(errorOfFile(std::string(8, '\xff')), "more than the 100 MB allowed");
  EXPECT_THAT_CONTAINS(errorOfFile("A line of text.\n"),
                       "it is text and no safetensors file; `python models/prepare_data.py` makes");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors("[]", "")), "not a JSON object");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors("{", "")), "no JSON at byte");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors("{} x", "")), "no JSON at byte");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors(R"({"a":1})", "")), "wrong kind");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors(R"({"a":[1]})", "")), "list");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors(R"({"__metadata__":{"a":1}})", "")), "wrong kind");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[1])"), "data_offsets are not a begin and an end");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","data_offsets":[0,4])"), "shape is missing");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])"), "dtype 'F33'");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "which is not shape [2] of F32");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "wrong kind");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])"), "wrong kind");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), "begin and an end");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])"), "begin and an end");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1)"), "no field extra");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"), "dtype stands twice");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4])"),
                       "which is not shape");
  EXPECT_THAT_CONTAINS(entry(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])"),
                       "beyond 2^63 - 1");
  const std::string a = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors("{" + a + "," + a + "}", "01")), "name a stands twice");
}

TEST(SafetensorsFile, RefusesOverlapsHolesAndRests) {
  const std::string a = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)";
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors(a + R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "012")),
                       "within the tensor before it");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors(a + R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})", "01234")),
                       "after a hole");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors(twoTensors, std::string(11, 'x'))), "truncated");
  EXPECT_THAT_CONTAINS(errorOfFile(safetensors(twoTensors, std::string(13, 'x'))), "but it has 13");
}

/// Whatever the damage: an error or a file whose tensors lie within it, never a crash.
TEST(SafetensorsFile, SurvivesRandomDamage) {
  const TemporaryFolder folder;
  const std::string sound = safetensors(twoTensors, std::string(12, 'x'));
  constexpr unsigned seed = 20260101;
  std::mt19937 random(seed);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = sound;
    for (unsigned i = random() % 4 + 1; i-- > 0;)
      damaged[random() % damaged.size()] = char(random());
    if (random() % 4 == 0)
      damaged.resize(random() % damaged.size());
    writeFile(folder / "f", damaged);
    try {
      const SafetensorsFile file(folder / "f");
      for (const auto &[name, tensor] : file.tensors())
        ASSERT_LE(tensor.offset + tensor.bytes, damaged.size()) << "seed " << seed << " round " << round;
    } catch (const Error &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3};
  const auto produce = [&](const auto &sink) {
    sink(std::as_bytes(std::span(values).first(1)));
    sink(std::as_bytes(std::span(values).subspan(1)));
  };
  runtime::writeSafetensors(
      folder / "f", {{"a \"quoted\"", DType::F32, {1, 3}, produce}, {"z", DType::F32, {3}, produce}}, {{"tied", "z"}});
  const SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.metadata().at("tied"), "z");
  EXPECT_EQ(file.find("a \"quoted\"")->shape, (Shape{1, 3}));
  EXPECT_EQ(file.find("z")->offset % 8, 4u); // data begins at a multiple of 8, behind it 12 bytes of the other tensor
  EXPECT_EQ(readFile(folder / "f").substr(file.find("z")->offset), bytesOf(values));
}

TEST(SafetensorsWriter, LeavesNothingWhenATensorFails) {
  const TemporaryFolder folder;
  EXPECT_ERROR(
      runtime::writeSafetensors(folder / "f", {{"z", DType::F32, {3}, [](const auto &) { throw Error("no"); }}}, {}),
      "no");
  EXPECT_ERROR(runtime::writeSafetensors(folder / "f", {{"z", DType::F32, {3}, [](const auto &) {}}}, {}),
               "z gave 0 of 12 bytes");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

} // namespace
} // namespace ds::test
