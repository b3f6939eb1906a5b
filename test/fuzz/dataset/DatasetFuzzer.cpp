//===- DatasetFuzzer.cpp - any bytes as a run's data -----------------------===//
//
// The first byte chooses what the file is and what the plan asks of it. A safetensors file is told by the text of its
// header, a zero byte and its data, since no mutation would ever meet the header's length; or by all of its bytes. What
// is accepted is read, every sample of every input, twice around, in order or shuffled.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/InputSpec.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace ds;
using namespace ds::runtime;

namespace {

enum class Kind : uint8_t { Header, Safetensors, Tokens16, Tokens32 };

std::string pathOf(Kind kind) {
  static const std::filesystem::path folder = [] {
    std::filesystem::path made =
        std::filesystem::temp_directory_path() / ("ds-dataset-fuzzer-" + std::to_string(::getpid()));
    std::filesystem::create_directories(made);
    return made;
  }();
  return folder / (kind == Kind::Tokens16 ? "data.bin" : kind == Kind::Tokens32 ? "data.u32.bin" : "data.safetensors");
}

void write(Kind kind, const std::string &bytes) {
  std::ofstream file(pathOf(kind), std::ios::binary | std::ios::trunc);
  const size_t zero = bytes.find('\0');
  if (kind == Kind::Header && zero != std::string::npos) {
    const uint64_t length = zero;
    file.write(reinterpret_cast<const char *>(&length), sizeof length);
    file << bytes.substr(0, zero) << bytes.substr(zero + 1);
  } else {
    file << bytes;
  }
}

std::vector<InputSpec> inputsOf(Kind kind, bool limited) {
  if (kind == Kind::Tokens16 || kind == Kind::Tokens32)
    return {{.name = "ids",
             .dtype = DType::I64,
             .sampleShape = {3},
             .tokens = InputSpec::Tokens::Same,
             .limit = limited ? 50u : 0u},
            {.name = "labels",
             .dtype = limited ? DType::U8 : DType::I32,
             .sampleShape = {3},
             .tokens = InputSpec::Tokens::Next}};
  return {{.name = "x", .dtype = DType::F32, .sampleShape = {2}},
          {.name = "y", .dtype = DType::I64, .sampleShape = {}, .limit = limited ? 10u : 0u, .ignored = -100}};
}

} // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const auto kind = Kind(data[0] % 4);
  const bool limited = (data[0] & 4) != 0, shuffled = (data[0] & 8) != 0;
  write(kind, {reinterpret_cast<const char *>(data) + 1, size - 1});
  const std::vector<InputSpec> inputs = inputsOf(kind, limited);
  try {
    const Dataset dataset(inputs, {pathOf(kind)}, {.shuffle = shuffled, .seed = 3});
    (void)dataset.digest();
    if (dataset.samples() == 0)
      std::abort();
    for (uint32_t input = 0; input < inputs.size(); ++input) {
      std::vector<std::byte> sample(inputs[input].sampleBytes());
      for (uint64_t position = 0; position < std::min<uint64_t>(2 * dataset.samples(), 64); ++position)
        (void)dataset.read(input, position, 1, sample.data());
    }
  } catch (const Error &) {
  }
  return 0;
}
