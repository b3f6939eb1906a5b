//===- RegroupedProducts.h - products that are the end of something known ---===//
#pragma once

#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ds {

/// Replaces each product of a module by what `make(builder, product)` returns, unless that is null, and erases what
/// nobody reads then.
template <typename Make> void replaceProducts(mlir::ModuleOp module, Make make) {
  for (auto function : module.getOps<mlir::func::FuncOp>())
    for (mlir::Block &block : function.getBody()) {
      bool found = false;
      for (auto product : llvm::make_early_inc_range(block.getOps<train::MulOp>())) {
        mlir::OpBuilder builder(product);
        if (const mlir::Value instead = make(builder, product)) {
          product.replaceAllUsesWith(instead);
          product.erase();
          found = true;
        }
      }
      for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (found && mlir::isOpTriviallyDead(&op))
          op.erase();
    }
}

} // namespace ds
