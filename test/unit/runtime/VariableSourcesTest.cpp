//===- VariableSourcesTest.cpp - first values -----------------------------===//
#include "runtime/executor/VariableSources.h"

#include "core/Crc32c.h"
#include "core/DType.h"
#include "runtime/executor/RandomValues.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace ds::test {
namespace {

using runtime::VariableSources;

template <typename T>
std::vector<T> read(const VariableSources &sources, uint32_t variable, uint64_t first, uint64_t count) {
  std::string bytes;
  sources.read(variable, first, count, [&](std::span<const std::byte> part) {
    bytes.append(reinterpret_cast<const char *>(part.data()), part.size());
  });
  std::vector<T> elements(count);
  EXPECT_EQ(bytes.size(), count * sizeof(T));
  std::memcpy(elements.data(), bytes.data(), std::min(bytes.size(), count * sizeof(T)));
  return elements;
}

/// A plan of one float32 [4] variable that lies in w.bin from byte 3 on.
class InAFile : public testing::Test {
protected:
  InAFile() {
    contents = "abc" + bytesOf(std::vector<float>{1, 2, 3, 4}) + "rest";
    writeFile(folder / "w.bin", contents);
    builder.variable("weight", DType::F32, {4}, 0);
    auto &file = *builder.plan.add_weight_files();
    file.set_path("w.bin");
    file.set_size(contents.size());
    file.set_crc32c(crc32c(std::as_bytes(std::span(contents))));
    auto &range = *builder.plan.mutable_variables(0)->mutable_source()->mutable_range();
    range.set_offset(3);
    range.set_length(16);
  }
  VariableSources sources(const std::string &weights = "") {
    return VariableSources(builder.plan, {.planFolder = folder.path(), .weightsPath = weights});
  }

  TemporaryFolder folder;
  PlanBuilder builder;
  std::string contents;
};

TEST_F(InAFile, ReadsMisalignedRanges) {
  EXPECT_EQ(read<float>(sources(), 0, 0, 4), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(read<float>(sources(), 0, 2, 1), std::vector<float>{3});
}

TEST_F(InAFile, RefusesAnotherFile) {
  contents[5] = char(contents[5] ^ 1);
  writeFile(folder / "w.bin", contents);
  EXPECT_ERROR(sources(), "w.bin has another CRC-32C than when the plan was compiled");
  writeFile(folder / "w.bin", contents.substr(1));
  EXPECT_ERROR(sources(), "w.bin has 22 bytes, but the plan was compiled from one of 23");
  std::filesystem::remove(folder / "w.bin");
  EXPECT_ERROR(sources(), "weight file " + folder / "w.bin" +
                              " does not exist: the plan names it as w.bin, relative to its own folder; move the two");
}

TEST_F(InAFile, WeightsWinAndTheFileIsNotNeeded) {
  std::filesystem::remove(folder / "w.bin");
  builder.plan.mutable_variables(0)->add_aliases("tied");
  writeFile(folder / "o.safetensors", safetensors(R"({"tied":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                                                  R"("extra":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})",
                                                  bytesOf(std::vector<float>{5, 6, 7, 8}) + "x"));
  for (const std::string &path : {folder / "o.safetensors", folder.path().string()}) {
    const VariableSources from = sources(path);
    EXPECT_EQ(read<float>(from, 0, 1, 3), (std::vector<float>{6, 7, 8}));
    EXPECT_EQ(from.unusedNames(), std::vector<std::string>{"extra"});
  }
}

TEST_F(InAFile, RefusesWeightsOfAnotherShapeOrDType) {
  writeFile(folder / "s.safetensors",
            safetensors(R"({"weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", std::string(16, '\0')));
  EXPECT_ERROR(sources(folder / "s.safetensors"), "weight is F32 [2, 2], but the plan wants float32 [4]");
  for (const char *dtype : {"I32", "U32"}) {
    writeFile(folder / "d.safetensors",
              safetensors(std::string(R"({"weight":{"dtype":")") + dtype + R"(","shape":[4],"data_offsets":[0,16]}})",
                          std::string(16, '\0')));
    EXPECT_ERROR(sources(folder / "d.safetensors"), std::string("weight is ") + dtype + " [4], but");
  }
  EXPECT_ERROR(sources(folder / "none.safetensors"), "none.safetensors cannot be opened");
}

TEST_F(InAFile, WidensHalfWeightsWithoutLoss) {
  // 1, -2, the smallest subnormal, the largest; as bfloat16 and as float16.
  const std::vector<uint16_t> bfloat16 = {0x3F80, 0xC000, 0x0001, 0x7F7F}, float16 = {0x3C00, 0xC000, 0x0001, 0x7BFF};
  for (const auto &[dtype, bits] : {std::pair("BF16", bfloat16), std::pair("F16", float16)}) {
    writeFile(folder / "h.safetensors",
              safetensors(std::string(R"({"weight":{"dtype":")") + dtype + R"(","shape":[4],"data_offsets":[0,8]}})",
                          bytesOf(bits)));
    const VariableSources from = sources(folder / "h.safetensors");
    const bool isBrain = std::string(dtype) == "BF16";
    EXPECT_EQ(read<float>(from, 0, 0, 4),
              (std::vector<float>{1, -2, isBrain ? 0x1p-133f : 0x1p-24f, isBrain ? 0x1.FEp127f : 65504.0f}));
    EXPECT_EQ(read<float>(from, 0, 1, 1), std::vector<float>{-2});
    EXPECT_EQ(from.notes(),
              std::vector<std::string>{std::string("1 of 1 parameters are ") + (isBrain ? "bfloat16" : "float16") +
                                       " in " + (folder / "h.safetensors") + " and were widened to float32"});
  }
}

TEST_F(InAFile, WidensWhatThePlanFindsInFewerBits) {
  contents = bytesOf(std::vector<uint16_t>{0x3F80, 0xC000, 0x3F00, 0x0000});
  writeFile(folder / "w.bin", contents);
  auto &file = *builder.plan.mutable_weight_files(0);
  file.set_size(contents.size());
  file.set_crc32c(crc32c(std::as_bytes(std::span(contents))));
  auto &range = *builder.plan.mutable_variables(0)->mutable_source()->mutable_range();
  range.set_offset(0);
  range.set_length(8);
  range.set_dtype("BF16");
  EXPECT_EQ(read<float>(sources(), 0, 1, 3), (std::vector<float>{-2, 0.5f, 0}));
}

TEST_F(InAFile, NeverNarrowsWeights) {
  writeFile(folder / "d.safetensors",
            safetensors(R"({"weight":{"dtype":"F64","shape":[4],"data_offsets":[0,32]}})", std::string(32, '\0')));
  EXPECT_ERROR(sources(folder / "d.safetensors"),
               "weight is F64 [4], but the plan wants float32 [4]; weights of float64 are not rounded");
}

TEST_F(InAFile, FindsNamesThatDifferByAPrefix) {
  const std::string data = bytesOf(std::vector<float>{5, 6, 7, 8});
  for (const auto &[plans, files] : {std::pair("model.weight", "weight"), std::pair("weight", "model.weight"),
                                     std::pair("weight", "module.weight"), std::pair("transformer.weight", "weight")}) {
    builder.plan.mutable_variables(0)->set_name(plans);
    writeFile(
        folder / "p.safetensors",
        safetensors(std::string("{\"") + files + R"(":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", data));
    const VariableSources from = sources(folder / "p.safetensors");
    EXPECT_EQ(read<float>(from, 0, 0, 1), std::vector<float>{5}) << plans;
    ASSERT_EQ(from.notes().size(), 1U);
    EXPECT_TRUE(from.notes()[0].starts_with("names in ")) << from.notes()[0];
    EXPECT_TRUE(from.unusedNames().empty());
  }
}

TEST_F(InAFile, RefusesWeightsThatHaveNothing) {
  writeFile(folder / "n.safetensors",
            safetensors(R"({"other":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", std::string(16, '\0')));
  EXPECT_ERROR(sources(folder / "n.safetensors"), "n.safetensors lacks 1 of the plan's 1 parameters: weight; it has "
                                                  "other, which the plan does not know");
}

TEST(VariableSources, DrawsNothingWhereWeightsWereGiven) {
  TemporaryFolder folder;
  PlanBuilder b;
  b.variable("a", DType::F32, {1}, 0);
  b.variable("b", DType::F32, {1}, 0);
  writeFile(folder / "a.safetensors",
            safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", std::string(4, '\0')));
  EXPECT_ERROR(VariableSources(b.plan, {.planFolder = "", .weightsPath = folder / "a.safetensors"}),
               "lacks 1 of the plan's 2 parameters: b");
}

TEST(VariableSources, NamesTheFirstThatAreMissing) {
  PlanBuilder b;
  for (const char *name : {"a", "b", "c", "d", "e"})
    b.variable(name, DType::F32, {2}, 0);
  for (auto &variable : *b.plan.mutable_variables())
    variable.mutable_source()->set_missing("exported without weights");
  EXPECT_ERROR(VariableSources(b.plan, {}), "no values for a, b, c and 2 more; give a safetensors file");
}

TEST(VariableSources, WritesLiteralsAndFills) {
  PlanBuilder b;
  b.variable("literal", DType::I32, {3}, 0);
  b.variable("bool", DType::Bool, {2}, 1);
  b.variable("int64", DType::I64, {2}, -3);
  b.variable("double", DType::F64, {2}, 0.1);
  b.plan.mutable_variables(0)->mutable_source()->set_literal(bytesOf(std::vector<int32_t>{7, -8, 9}));
  const VariableSources sources(b.plan, {});
  EXPECT_EQ(read<int32_t>(sources, 0, 1, 2), (std::vector<int32_t>{-8, 9}));
  EXPECT_EQ(read<uint8_t>(sources, 1, 0, 2), (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(read<int64_t>(sources, 2, 0, 2), (std::vector<int64_t>{-3, -3}));
  EXPECT_EQ(read<double>(sources, 3, 0, 2), (std::vector<double>{0.1, 0.1}));
}

TEST(VariableSources, DrawsPartsAsItDrawsTheWhole) {
  PlanBuilder b;
  b.variable("a", DType::F32, {1000, 301}, 0);
  b.variable("b", DType::F64, {64}, 0);
  for (auto &variable : *b.plan.mutable_variables()) {
    variable.mutable_source()->mutable_random()->set_distribution("normal");
    variable.mutable_source()->mutable_random()->set_mean(1);
    variable.mutable_source()->mutable_random()->set_deviation(2);
  }
  const VariableSources sources(b.plan, {.planFolder = "", .weightsPath = "", .seed = 3});
  const auto whole = read<float>(sources, 0, 0, 301000);
  const auto part = read<float>(sources, 0, 262143, 7); // across a piece of 1 MiB and a Philox block
  EXPECT_EQ(part, std::vector<float>(whole.begin() + 262143, whole.begin() + 262150));
  double mean = 0, square = 0;
  for (float value : whole) {
    mean += value;
    square += double(value) * value;
  }
  mean /= double(whole.size());
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_NEAR(std::sqrt(square / double(whole.size()) - mean * mean), 2, 0.02);
  EXPECT_NE(float(read<double>(sources, 1, 0, 1)[0]), whole[0]); // another variable, other draws
  const VariableSources other(b.plan, {.planFolder = "", .weightsPath = "", .seed = 4});
  EXPECT_NE(read<float>(other, 0, 0, 1)[0], whole[0]);
}

TEST(RandomValues, UniformStaysInItsRange) {
  const runtime::RandomValues random{.normal = false, .mean = 3, .deviation = 0.5, .seed = 1, .variable = 2};
  std::vector<float> values(10000);
  random.write(DType::F32, 0, values.size(), reinterpret_cast<std::byte *>(values.data()));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, 2.5f);
  EXPECT_LE(*high, 3.5f);
  EXPECT_LT(*low, 2.51f);
  EXPECT_GT(*high, 3.49f);
}

TEST(RandomValues, ThreadsChangeNoBit) {
  const runtime::RandomValues random{.normal = true, .mean = 0, .deviation = 1, .seed = 1, .variable = 2};
  const auto drawn = [&](unsigned threads, uint64_t first, size_t count) {
    std::vector<double> values(count);
    random.write(DType::F64, first, count, reinterpret_cast<std::byte *>(values.data()), threads);
    return values;
  };
  for (const size_t count : {1U, 100U, (3U << 14) + 1, 100003U})
    for (const unsigned threads : {2U, 3U, 8U})
      EXPECT_EQ(drawn(threads, 5, count), drawn(1, 5, count)) << count << ", " << threads << " threads";
}

} // namespace
} // namespace ds::test
