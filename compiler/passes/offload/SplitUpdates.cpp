//===- SplitUpdates.cpp - large updates in pieces -------------------------===//
//
// An update of the host's whose state lies in a file is cut into pieces, where it is element by element. Then a piece
// is read while the one before is computed and the one before that is written (ds-order-queues), and host memory holds
// the operands of three pieces. With `parameters` it is an update of the device's whose parameter lies elsewhere, and
// device memory holds pieces of that. A piece is as small as the latency of the drive or link and the number of
// commands allow.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/Cost.h"
#include "compiler/passes/offload/OperandCopies.h"
#include "compiler/passes/offload/Passes.h"
#include "dialects/Plan/Plan.h"
#include "kernels/KernelTable.h"

#include "mlir/IR/Builders.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ds {
#define GEN_PASS_DEF_SPLITUPDATES
#include "compiler/passes/offload/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A copy of a piece takes so many times the latency of the drive or link.
constexpr double latencies = 16;
/// Elements of a piece where the speed is unknown, and what pieces are a multiple of: 256 KiB of float32.
constexpr int64_t unknownSpeed = 1 << 20, granule = 1 << 16;
/// Of a role, about: the commands around a piece of the host's are some nine. One of a GPU's is a launch of its own.
constexpr int64_t mostPieces = 512, mostDevicePieces = mostPieces / 8;

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
    for (auto role : getOperation().getOps<plan::RoleOp>()) {
      const SmallVector<plan::CommandOpInterface> updates = updatesIn(role);
      const int64_t piece = std::min<int64_t>(elements, elementsOfPiece(role, updates));
      for (plan::CommandOpInterface update : updates)
        split(update, piece);
    }
  }

  /// Those that can be cut.
  SmallVector<plan::CommandOpInterface> updatesIn(plan::RoleOp role) const {
    SmallVector<plan::CommandOpInterface> updates;
    role.walk([&](plan::KernelOp kernel) {
      const auto names = [&](bool (*isAway)(plan::BufferOp, int64_t)) {
        return llvm::any_of(kernel->getOperands(),
                            [&](Value operand) { return isAway(operand.getDefiningOp<plan::BufferOp>(), leastBytes); });
      };
      const bool runsOnHost = !parameters && names(isStateAway), runsOnDevice = parameters && names(isParameterAway);
      if (isUpdate(kernel) && isByElement(kernel) && (runsOnHost || runsOnDevice))
        updates.push_back(cast<plan::CommandOpInterface>(kernel.getOperation()));
    });
    return updates;
  }

  int64_t elementsOfPiece(plan::RoleOp role, ArrayRef<plan::CommandOpInterface> updates) const {
    const LinkSpeed link = linkSpeed(role, parameters ? "device-host" : "host-nvme");
    int64_t all = 0;
    for (plan::CommandOpInterface update : updates)
      all += elementsOf(update);
    const int64_t least = link.bytesPerSecond > 0
                              ? int64_t(latencies * link.latency * link.bytesPerSecond / sizeof(float))
                              : unknownSpeed;
    const int64_t share = all / (parameters ? mostDevicePieces : mostPieces);
    return int64_t(llvm::alignTo(uint64_t(std::max({least, share, granule})), uint64_t(granule)));
  }

  static int64_t elementsOf(plan::CommandOpInterface update) { return update.getTensor(0).getNumElements(); }

  static void split(plan::CommandOpInterface update, int64_t piece) {
    const int64_t all = elementsOf(update);
    if (all <= piece)
      return;
    for (int64_t begin = 0; begin < all; begin += piece)
      makePiece(update, begin, std::min<int64_t>(begin + piece, all));
    update->erase();
  }
};

} // namespace
