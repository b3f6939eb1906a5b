//===- ExternalDataFuzzer.cpp - any bytes as a model and the files beside it --===//
//
// The input is the bytes of `data` (their number first, 16 bits), then a model that may keep tensors there, as
// protobuf's text or not, as in ImportFuzzer. Every input is imported without an error or refused with exactly one.
//
//===----------------------------------------------------------------------===//
#include "test/fuzz/import/ImportOnce.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <unistd.h>

static const std::filesystem::path &folder() {
  static const std::filesystem::path made = [] {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("ds-external-fuzzer-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path);
    return path;
  }();
  return made;
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  const auto *bytes = reinterpret_cast<const char *>(data) + 2;
  const size_t beside = std::min(size - 2, size_t(data[0]) + 256 * size_t(data[1]));
  std::ofstream(folder() / "data", std::ios::binary).write(bytes, std::streamsize(beside));
  const std::span<const char> model(bytes + beside, size - 2 - beside);
  const bool isText = !model.empty() && model[0] == '#';
  std::ofstream(folder() / (isText ? "model.textproto" : "model.onnx"), std::ios::binary)
      .write(model.data(), std::streamsize(model.size()));

  ds::import::ImportOptions options;
  options.path = folder() / (isText ? "model.textproto" : "model.onnx");
  options.dims = {{"batch", 2}};
  options.maxBytes = 1 << 20;
  options.maxConstantElements = 1 << 14;
  importOnce([&](mlir::MLIRContext &context) { return ds::import::importModel(context, options); });
  return 0;
}
