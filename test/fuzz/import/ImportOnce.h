//===- ImportOnce.h - what must hold for whatever is imported --------------===//
#pragma once

#include "compiler/import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <cstdlib>
#include <memory>

/// LLVM's headers poison the free part of their arenas in our code, and its library, built without ASan, writes there.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming): ASan looks for this name
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }

/// One context serves many inputs, since making one is slow, but not all, since it keeps every attribute it has seen.
inline mlir::MLIRContext &freshContext() {
  static std::unique_ptr<mlir::MLIRContext> context;
  static int uses = 0;
  if (!context || ++uses % 256 == 0)
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  return *context;
}

/// import(context) -> module. Aborts unless that is a module that verifies, without an error, or none, with one error.
template <typename Import> void importOnce(Import import) {
  mlir::MLIRContext &context = freshContext();
  int errors = 0;
  mlir::ScopedDiagnosticHandler count(&context, [&](mlir::Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = import(context);
  if (module ? errors != 0 || failed(mlir::verify(*module)) : errors != 1)
    std::abort();
}
