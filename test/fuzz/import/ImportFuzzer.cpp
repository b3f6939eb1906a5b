//===- ImportFuzzer.cpp - any bytes as a model -------------------------------===//
//
// Every input is either imported to a module that verifies, without an error, or refused with exactly one error: as a
// graph to train, and as a graph to run. An input that starts with '#' is read as protobuf's text format.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <cstdint>
#include <cstdlib>
#include <memory>

/// LLVM's headers poison the free part of their arenas in our code, and its library, built without ASan, writes there.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming): ASan looks for this name
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }

/// One context serves many inputs, since making one is slow, but not all, since it keeps every attribute it has seen.
static mlir::MLIRContext &freshContext() {
  static std::unique_ptr<mlir::MLIRContext> context;
  static int uses = 0;
  if (!context || ++uses % 256 == 0)
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  return *context;
}

static void importOnce(std::span<const char> model, const ds::import::ImportOptions &options) {
  mlir::MLIRContext &context = freshContext();
  int errors = 0;
  mlir::ScopedDiagnosticHandler count(&context, [&](mlir::Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = ds::import::importModel(context, options, model);
  if (module ? errors != 0 || failed(mlir::verify(*module)) : errors != 1)
    std::abort();
}

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
    importOnce({reinterpret_cast<const char *>(data), size}, options);
  }
  return 0;
}
