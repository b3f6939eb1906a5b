//===- Passes.h - what the backward computes again instead of keeping it -===//
#pragma once

#include "compiler/scheduling/Recompute.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

/// A rule as the text REGEX=save or REGEX=recompute, for passes by hand.
template <>
class llvm::cl::parser<ds::scheduling::RecomputeRule> : public llvm::cl::basic_parser<ds::scheduling::RecomputeRule> {
public:
  using basic_parser::basic_parser;
  /// Returns true after an error.
  bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text, ds::scheduling::RecomputeRule &rule);
  static void print(llvm::raw_ostream &stream, const ds::scheduling::RecomputeRule &rule);
};

namespace ds {

#define GEN_PASS_DECL
#include "compiler/passes/recompute/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/recompute/Passes.h.inc"

} // namespace ds
