//===- Diagnostics.h - MLIR's diagnostics as one ds::Error ------------------===//
#pragma once

#include "mlir/IR/Diagnostics.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace ds::driver {

/// While it lives, keeps the errors that MLIR reports on a context, and hands warnings to `warn`, or to stderr.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext &context, std::function<void(const std::string &)> warn = {});

  /// Throws the first error as "place: message" with its notes below; a generic sentence if nothing was reported. One
  /// of a dist or plan op is a CompilerFault: no user wrote that op.
  [[noreturn]] void raise(const char *phase) const;

  /// The same, where the compiler is at fault whatever the error says.
  [[noreturn]] void raiseFault(const char *phase) const;

private:
  std::function<void(const std::string &)> warn_;
  std::vector<std::string> errors_;
  bool ofOurOps_ = false; // the first error
  std::set<std::string> warnings_;
  mlir::ScopedDiagnosticHandler handler_;
};

} // namespace ds::driver
