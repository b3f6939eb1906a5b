//===- DatasetTest.cpp - which samples, in which order, as which values ---===//
#include "runtime/data/Dataset.h"
#include "core/DType.h"
#include "core/Status.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/Shuffle.h"
#include "runtime/data/Widening.h"
#include "test/unit/runtime/Files.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::Dataset;
using runtime::InputSpec;

/// A tensor `name` of one dimension per sample.
template <typename T>
std::string tensorFile(const std::string &name, const std::string &dtype, const std::vector<T> &values, int width) {
  return safetensors("{\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" +
                         std::to_string(values.size() / size_t(width)) + "," + std::to_string(width) +
                         "],\"data_offsets\":[0," + std::to_string(values.size() * sizeof(T)) + "]}}",
                     bytesOf(values));
}

template <typename T>
std::vector<T> read(const Dataset &data, uint32_t input, uint64_t position, uint64_t count, size_t width) {
  std::vector<T> values(count * width, T(-77));
  const Status status = data.read(input, position, count, reinterpret_cast<std::byte *>(values.data()));
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

InputSpec integers(const std::string &name, int64_t width, DType dtype = DType::I64) {
  return {.name = name, .dtype = dtype, .sampleShape = {width}};
}

TEST(Dataset, GoesThroughFilesAndRoundTheEnd) {
  const TemporaryFolder folder;
  writeFile(folder / "a", tensorFile<int64_t>("x", "I64", {0, 1, 2, 3}, 2));
  writeFile(folder / "b", tensorFile<uint16_t>("x", "U16", {4, 5}, 2));
  const Dataset data({integers("x", 2)}, {folder / "a", folder / "b"}, {});
  EXPECT_EQ(data.samples(), 3u);
  EXPECT_EQ(read<int64_t>(data, 0, 0, 3, 2), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(read<int64_t>(data, 0, 2, 2, 2), (std::vector<int64_t>{4, 5, 0, 1}));
  EXPECT_EQ(read<int64_t>(data, 0, 3'000'000'001, 1, 2), (std::vector<int64_t>{2, 3}));
}

TEST(Dataset, ReadsSamplesLargerThanItsBuffer) {
  const TemporaryFolder folder;
  std::vector<uint16_t> values(2 * 20001);
  std::iota(values.begin(), values.end(), uint16_t(0));
  writeFile(folder / "a", tensorFile<uint16_t>("x", "U16", values, 20001));
  const Dataset data({integers("x", 20001)}, {folder / "a"}, {});
  const auto sample = read<int64_t>(data, 0, 1, 1, 20001);
  EXPECT_EQ(sample.front(), 20001);
  EXPECT_EQ(sample.back(), 40001);
}

/// Samples of two rows and four columns: 0 to 7, 8 to 15.
void writeRows(const std::string &path) {
  std::vector<int64_t> values(16);
  std::iota(values.begin(), values.end(), 0);
  writeFile(path, safetensors(R"({"x":{"dtype":"I64","shape":[2,2,4],"data_offsets":[0,128]}})", bytesOf(values)));
}

InputSpec varying(int64_t rows, int64_t columns) {
  return {.name = "x", .dtype = DType::I64, .sampleShape = {rows, columns}, .ignored = -100, .varies = {true, true}};
}

TEST(Dataset, CutsAndPadsWhatVaries) {
  const TemporaryFolder folder;
  writeRows(folder / "a");
  const auto second = [&](int64_t rows, int64_t columns) {
    const Dataset data({varying(rows, columns)}, {folder / "a"}, {});
    return read<int64_t>(data, 0, 1, 1, size_t(rows * columns));
  };
  EXPECT_EQ(second(2, 4), (std::vector<int64_t>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(second(2, 3), (std::vector<int64_t>{8, 9, 10, 12, 13, 14}));
  EXPECT_EQ(second(1, 4), (std::vector<int64_t>{8, 9, 10, 11}));
  EXPECT_EQ(second(2, 5), (std::vector<int64_t>{8, 9, 10, 11, -100, 12, 13, 14, 15, -100}));
  EXPECT_EQ(second(3, 3), (std::vector<int64_t>{8, 9, 10, 12, 13, 14, -100, -100, -100}));
}

/// Inputs of sizes 4 and 2, and samples of lengths 1, 2, 4, 2.
TEST(Dataset, TakesTheSmallestSizeThatHoldsTheSamples) {
  const TemporaryFolder folder;
  const std::vector<int64_t> x(16, 7), lengths{1, 2, 4, 2};
  writeFile(folder / "a", safetensors(R"({"x":{"dtype":"I64","shape":[4,4],"data_offsets":[0,128]},)"
                                      R"("lengths":{"dtype":"I64","shape":[4],"data_offsets":[128,160]}})",
                                      bytesOf(x) + bytesOf(lengths)));
  std::vector<InputSpec> inputs{integers("x", 4), integers("x", 2)};
  for (InputSpec &input : inputs)
    input.varies = {true};
  const Dataset data(inputs, {folder / "a"}, {}, {.dimension = "seq", .each = {2, 4}});
  EXPECT_EQ(data.sizeFor(0, 2), 2u);
  EXPECT_EQ(data.sizeFor(1, 2), 4u);
  EXPECT_EQ(data.sizeFor(3, 2), 2u) << "round the end";
  EXPECT_EQ(read<int64_t>(data, 1, 0, 2, 2), (std::vector<int64_t>{7, 7, 7, 7}));
}

TEST(Dataset, CutsTokenStreamsIntoWindows) {
  const TemporaryFolder folder;
  writeFile(folder / "a.bin", bytesOf(std::vector<uint16_t>{0, 1, 2, 3, 4}));
  writeFile(folder / "b.u32.bin", bytesOf(std::vector<uint32_t>{5, 6, 70000, 8}));
  InputSpec same = integers("tokens", 3), next = integers("labels", 3);
  same.tokens = InputSpec::Tokens::Same;
  next.tokens = InputSpec::Tokens::Next;
  const Dataset data({same, next}, {folder / "a.bin", folder / "b.u32.bin"}, {});
  EXPECT_EQ(data.samples(), 2u); // nine tokens, of which the last window of labels would need a tenth
  EXPECT_EQ(read<int64_t>(data, 0, 1, 1, 3), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(read<int64_t>(data, 1, 1, 1, 3), (std::vector<int64_t>{4, 5, 6}));
  const Dataset alone({same}, {folder / "a.bin", folder / "b.u32.bin"}, {});
  EXPECT_EQ(alone.samples(), 3u);
  EXPECT_EQ(read<int64_t>(alone, 0, 2, 1, 3), (std::vector<int64_t>{6, 70000, 8}));
}

TEST(Dataset, RefusesTokensThatTheInputCannotHold) {
  const TemporaryFolder folder;
  writeFile(folder / "a.bin", bytesOf(std::vector<uint16_t>{0, 300}));
  InputSpec narrow = integers("tokens", 2, DType::U8);
  narrow.tokens = InputSpec::Tokens::Same;
  const Dataset data({narrow}, {folder / "a.bin"}, {});
  std::byte out[2];
  EXPECT_STREQ(data.read(0, 0, 1, out).message(), "input tokens: a token of sample 0 is no uint8");
}

TEST(Dataset, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  writeFile(folder / "a", tensorFile<int64_t>("x", "I64", {0, 1, 2, 3}, 2));
  writeFile(folder / "odd.bin", "abc");
  writeFile(folder / "short.bin", "ab");
  const auto open = [&](std::vector<InputSpec> inputs, std::vector<std::string> files) {
    for (std::string &file : files)
      file = folder / file;
    return errorOf([&] { Dataset(inputs, files, {}); });
  };
  EXPECT_THAT_CONTAINS(open({integers("y", 2)}, {"a"}), "has no tensor y, which the plan reads; it has x");
  EXPECT_THAT_CONTAINS(open({integers("x", 3)}, {"a"}), "tensor x has shape [2, 2], but the plan wants [samples, 3]");
  EXPECT_THAT_CONTAINS(open({{.name = "x", .dtype = DType::I64}}, {"a"}), "the plan wants [samples]");
  EXPECT_THAT_CONTAINS(open({integers("x", 2, DType::I32)}, {"a"}), "is I64, which does not convert to int32");
  EXPECT_THAT_CONTAINS(open({integers("x", 2)}, {"none"}), "cannot be opened");
  EXPECT_THAT_CONTAINS(open({integers("x", 2)}, {}), "no data file was given");
  EXPECT_THAT_CONTAINS(open({integers("x", 2)}, {"a", "odd.bin"}), "cannot form one stream");
  EXPECT_THAT_CONTAINS(open({integers("x", 2)}, {"short.bin"}), "does not say how it follows from a token stream");
  InputSpec tokens = integers("x", 2);
  tokens.tokens = InputSpec::Tokens::Next;
  EXPECT_THAT_CONTAINS(open({tokens}, {"odd.bin"}), "no whole number of tokens");
  EXPECT_THAT_CONTAINS(open({tokens}, {"short.bin"}), "not a single sample of 2 tokens");
}

TEST(Dataset, RefusesInputsOfDifferentLengths) {
  const TemporaryFolder folder;
  writeFile(folder / "f", safetensors(R"({"x":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]},)"
                                      R"("y":{"dtype":"U8","shape":[3,1],"data_offsets":[2,5]}})",
                                      "01234"));
  EXPECT_ERROR(Dataset({integers("x", 1), integers("y", 1)}, {folder / "f"}, {}), "2 samples of input x and 3 of y");
}

TEST(Dataset, NamesTheSampleOfAValueThatIsNotAllowed) {
  const TemporaryFolder folder;
  writeFile(folder / "f", tensorFile<int64_t>("labels", "I64", {0, 1, 2, -100, 9, -1}, 2));
  InputSpec labels = integers("labels", 2);
  labels.limit = 3;
  std::vector<int64_t> out(2);
  const auto readSample = [&](uint64_t sample) {
    const Dataset data({labels}, {folder / "f"}, {});
    return std::string(data.read(0, sample, 1, reinterpret_cast<std::byte *>(out.data())).message());
  };
  EXPECT_EQ(readSample(0), "");
  EXPECT_THAT_CONTAINS(readSample(1),
                       "the data's sample 1 has value -100 at element 1 of input labels, but values there "
                       "must be from 0 to 2");
  labels.ignored = -100;
  EXPECT_EQ(readSample(1), "");
  EXPECT_THAT_CONTAINS(readSample(2), "sample 2 has value 9 at element 0");
}

TEST(Dataset, LooksAtWhatARunWillRead) {
  const TemporaryFolder folder;
  writeFile(folder / "f", tensorFile<int64_t>("x", "I64", {0, 1, 2, 0, 9, 1}, 2));
  InputSpec input = integers("x", 2);
  input.limit = 3;
  const Dataset data({input}, {folder / "f"}, {});
  const std::string bad = "the data's sample 2 has value 9 at element 0";
  constexpr uint64_t SAMPLE = 16; // bytes
  EXPECT_ERROR(data.check(0, 3, 3 * SAMPLE), bad);
  EXPECT_ERROR(data.check(0, 1000, 1000 * SAMPLE), bad);
  EXPECT_ERROR(data.check(2, 1, SAMPLE), bad);
  EXPECT_ERROR(data.check(5, 1, SAMPLE), bad); // the second epoch's
  EXPECT_NO_THROW(data.check(0, 2, 3 * SAMPLE));
  EXPECT_NO_THROW(data.check(0, 3, 3 * SAMPLE - 1)); // no part of a sample
  EXPECT_NO_THROW(data.check(0, 3, 0));
  EXPECT_NO_THROW(data.check(3, 2, 3 * SAMPLE));
}

TEST(Dataset, ReportsAFileThatWasCutShort) {
  const TemporaryFolder folder;
  writeFile(folder / "f", tensorFile<int64_t>("x", "I64", {0, 1, 2, 3}, 2));
  const Dataset data({integers("x", 2)}, {folder / "f"}, {});
  std::filesystem::resize_file(folder / "f", std::filesystem::file_size(folder / "f") - 8);
  std::byte out[16];
  EXPECT_TRUE(data.read(0, 0, 1, out).ok());
  EXPECT_THAT_CONTAINS(data.read(0, 1, 1, out).message(), "cut short while in use");
}

TEST(Shuffle, IsAPermutationPerEpochAndSeed) {
  for (const uint64_t count : {1u, 2u, 3u, 17u, 64u, 1000u}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < count; ++i)
      seen.insert(runtime::shuffled(i, count, 1, 0));
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
  const auto order = [](uint64_t seed, uint64_t epoch) {
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < 100; ++i)
      samples.push_back(runtime::shuffled(i, 100, seed, epoch));
    return samples;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
  std::vector<uint64_t> sorted(100);
  std::iota(sorted.begin(), sorted.end(), 0u);
  EXPECT_NE(order(1, 0), sorted);
}

TEST(Shuffle, PutsASampleAnywhere) { // chi-square over 16 places, 4000 epochs: 99.9 % lie below 37.7
  std::vector<int> places(16);
  for (uint64_t epoch = 0; epoch < 4000; ++epoch)
    ++places[runtime::shuffled(5, 16, 42, epoch)];
  double statistic = 0;
  for (int count : places)
    statistic += (count - 250.0) * (count - 250.0) / 250.0;
  EXPECT_LT(statistic, 37.7);
}

TEST(Dataset, ShufflesEachEpochAnew) {
  const TemporaryFolder folder;
  std::vector<int64_t> values(50);
  std::iota(values.begin(), values.end(), 0);
  writeFile(folder / "f", tensorFile<int64_t>("x", "I64", values, 1));
  const Dataset data({integers("x", 1)}, {folder / "f"}, {.shuffle = true, .seed = 9});
  auto first = read<int64_t>(data, 0, 0, 50, 1), second = read<int64_t>(data, 0, 50, 50, 1);
  EXPECT_NE(first, second);
  EXPECT_NE(first, values);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, values);
}

TEST(Widening, KeepsEveryValueOrRefuses) {
  const auto convert = [](const char *dtype, DType target, const std::string &bytes, auto type) {
    decltype(type) out{};
    runtime::widening(dtype, target)(reinterpret_cast<const std::byte *>(bytes.data()),
                                     reinterpret_cast<std::byte *>(&out), 1);
    return out;
  };
  EXPECT_EQ(convert("I8", DType::I64, bytesOf(std::vector<int8_t>{-5}), int64_t()), -5);
  EXPECT_EQ(convert("U32", DType::I64, bytesOf(std::vector<uint32_t>{4000000000u}), int64_t()), 4000000000);
  EXPECT_EQ(convert("U8", DType::F32, bytesOf(std::vector<uint8_t>{255}), float()), 255);
  EXPECT_EQ(convert("F32", DType::F64, bytesOf(std::vector<float>{0.1f}), double()), double(0.1f));
  EXPECT_EQ(convert("BF16", DType::F32, bytesOf(std::vector<uint16_t>{0x3FC0}), float()), 1.5f);
  for (const auto &[bits, value] : std::vector<std::pair<uint16_t, float>>{{0x3C00, 1},
                                                                           {0xC000, -2},
                                                                           {0x0001, 0x1p-24f},
                                                                           {0x83FF, -1023 * 0x1p-24f},
                                                                           {0x7BFF, 65504},
                                                                           {0x7C00, INFINITY}})
    EXPECT_EQ(convert("F16", DType::F32, bytesOf(std::vector<uint16_t>{bits}), float()), value);
  EXPECT_TRUE(std::isnan(convert("F16", DType::F32, bytesOf(std::vector<uint16_t>{0x7E00}), float())));
  for (const auto &[source, target] : std::vector<std::pair<const char *, DType>>{{"I64", DType::I32},
                                                                                  {"U64", DType::I64},
                                                                                  {"I32", DType::U32},
                                                                                  {"I32", DType::F32},
                                                                                  {"F64", DType::F32},
                                                                                  {"F32", DType::I64},
                                                                                  {"BOOL", DType::U8},
                                                                                  {"U8", DType::Bool},
                                                                                  {"F8_E4M3", DType::F32}})
    EXPECT_EQ(runtime::widening(source, target), nullptr) << source << " to " << name(target);
}

} // namespace
} // namespace ds::test
