// gather_elements: y[.., j, ..] = data[.., indices[.., j, ..], ..] at the axis. All indices are checked before anything
// is written.
#include "kernels/index/element_index_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// Elements of y that a piece writes, roughly.
constexpr int64_t grain = 16384;

class GatherElements : public Kernel {
public:
  explicit GatherElements(const Call &call)
      : index_(call), elementBytes_(byteSize(call.dtype())),
        perPiece_(std::max<int64_t>(1, grain / std::max<int64_t>(index_.length(), 1))) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    if (Status status = index_.check("gather_elements", operands[1]); !status.ok())
      return status;
    switch (elementBytes_) {
    case 1:
      gather<uint8_t>(context, operands);
      break;
    case 2:
      gather<uint16_t>(context, operands);
      break;
    case 4:
      gather<uint32_t>(context, operands);
      break;
    default:
      gather<uint64_t>(context, operands);
    }
    return Status::success();
  }

private:
  template <typename T> void gather(const CallContext &context, std::span<void *const> operands) const {
    const auto *data = static_cast<const T *>(operands[0]);
    auto *y = static_cast<T *>(operands[2]);
    parallelFor(context, piecesOf(index_.columns(), perPiece_), [&](int64_t piece, int) {
      for (int64_t c = piece * perPiece_; c < std::min((piece + 1) * perPiece_, index_.columns()); ++c) {
        const ElementIndex::Column column = index_.column(c);
        for (int64_t j = 0; j < index_.length(); ++j)
          y[index_.indicesAt(column, j)] = data[index_.dataAt(column, operands[1], j)];
      }
    });
  }

  ElementIndex index_;
  int64_t elementBytes_, perPiece_;
};

} // namespace

std::unique_ptr<Kernel> makeGatherElements(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<GatherElements>(Call(invocation));
}

} // namespace ds::kernels
