//===- ImportFuzzer.cpp - any bytes as a model -------------------------------===//
//
// Every input is either imported to a module that verifies, without an error, or refused with exactly one error: as a
// graph to train, and as a graph to run. An input that starts with '#' is read as protobuf's text format.
//
//===----------------------------------------------------------------------===//
#include "test/fuzz/import/ImportOnce.h"

#include <cstdint>
#include <span>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const bool isText = size > 0 && data[0] == '#';
  ds::import::ImportOptions options;
  options.path = isText ? "/nowhere/model.textproto" : "/nowhere/model.onnx";
  options.dims = {{"batch", 2}};
  options.maxBytes = 1 << 20;
  options.maxConstantElements = 1 << 14;
  using Results = ds::import::ImportOptions::Results;
  for (Results results : {Results::Loss, Results::Outputs}) {
    options.results = results;
    importOnce([&](mlir::MLIRContext &context) {
      return ds::import::importModel(context, options, std::span(reinterpret_cast<const char *>(data), size));
    });
  }
  return 0;
}
