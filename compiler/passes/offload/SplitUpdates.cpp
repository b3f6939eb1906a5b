//===- SplitUpdates.cpp - large updates in pieces -------------------------===//
//
// An update of the host's whose state lies in a file is cut into pieces of so many elements, where it is element by
// element. Then a piece is read while the one before is computed and the one before that is written (ds-order-queues),
// as with DeepSpeed's sub_group_size, and host memory holds the operands of three pieces.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "dialects/Plan/Plan.h"
#include "kernels/KernelTable.h"

#include "mlir/IR/Builders.h"

#include <algorithm>

namespace ds {
#define GEN_PASS_DEF_SPLITUPDATES
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Whether what becomes of an element depends on it alone.
bool isByElement(plan::KernelOp kernel) {
  const kernels::KernelRow *row = kernels::findKernel(kernel.getKernel());
  return row && !row->updatesWhole();
}

/// A copy of an update of elements [begin, end) of each tensor that is no scalar.
void makePiece(plan::CommandOpInterface update, int64_t begin, int64_t end) {
  OpBuilder builder(update);
  auto piece = cast<plan::CommandOpInterface>(builder.clone(*update));
  SmallVector<int64_t> offsets(update.getByteOffsets());
  SmallVector<Type> types;
  for (unsigned index = 0; index < offsets.size(); ++index) {
    const RankedTensorType type = update.getTensor(index);
    types.push_back(type.getRank() == 0 ? type : type.clone({end - begin}));
    if (type.getRank() > 0)
      offsets[index] += begin * type.getElementTypeBitWidth() / 8;
  }
  piece.setByteOffsets(offsets);
  piece->setAttr("types", builder.getTypeArrayAttr(types));
}

struct SplitUpdates : ds::impl::SplitUpdatesBase<SplitUpdates> {
  using SplitUpdatesBase::SplitUpdatesBase;

  void runOnOperation() override {
    if (elements < 1) {
      getOperation().emitError() << "elements is " << elements.getValue() << "; it must be at least 1";
      return signalPassFailure();
    }
    SmallVector<plan::KernelOp> updates;
    getOperation().walk([&](plan::KernelOp kernel) {
      if (isUpdate(kernel) && isByElement(kernel) && llvm::any_of(kernel->getOperands(), [&](Value operand) {
            return isStateAway(operand.getDefiningOp<plan::BufferOp>(), leastBytes);
          }))
        updates.push_back(kernel);
    });
    for (plan::KernelOp update : updates)
      split(cast<plan::CommandOpInterface>(update.getOperation()));
  }

  void split(plan::CommandOpInterface update) {
    const int64_t all = update.getTensor(0).getNumElements();
    if (all <= elements)
      return;
    for (int64_t begin = 0; begin < all; begin += elements)
      makePiece(update, begin, std::min<int64_t>(begin + elements, all));
    update->erase();
  }
};

} // namespace
