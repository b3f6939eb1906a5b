//===- Diagnostics.h - MLIR's diagnostics as one ds::Error ------------------===//
#pragma once

#include "mlir/IR/Diagnostics.h"

#include <set>
#include <string>
#include <vector>

namespace ds::driver {

/// While it lives, keeps the errors that MLIR reports on a context and prints its warnings to stderr.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext &context);

  /// Throws the first error as "place: message" with its notes below; a generic sentence if nothing was reported.
  [[noreturn]] void raise(const char *phase) const;

private:
  std::vector<std::string> errors_;
  std::set<std::string> warnings_;
  mlir::ScopedDiagnosticHandler handler_;
};

} // namespace ds::driver
