//===- PrecisionTableTest.cpp - every op of a forward has a row -----------===//
#include "compiler/passes/train/PrecisionTable.h"

#include "dialects/Train/Train.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"

#include <gtest/gtest.h>

namespace ds {
namespace {

struct PrecisionTable : testing::Test {
  PrecisionTable() { context.loadDialect<train::TrainDialect>(); }

  mlir::MLIRContext context;
};

TEST_F(PrecisionTable, EachRowIsOfAnOp) {
  for (const OpPrecision &row : precisionTable())
    EXPECT_TRUE(mlir::RegisteredOperationName::lookup(("train." + row.op).str(), &context)) << row.op.str();
}

TEST_F(PrecisionTable, EachElementwiseOpOfNumbersHasARow) {
  for (const mlir::RegisteredOperationName &name : context.getRegisteredOperations()) {
    const llvm::StringRef op = name.stripDialect();
    if (name.hasTrait<train::Elementwise>() && op != "and" && op != "or" && op != "xor" && op != "not")
      EXPECT_TRUE(precisionOf(op)) << op.str();
  }
}

} // namespace
} // namespace ds
