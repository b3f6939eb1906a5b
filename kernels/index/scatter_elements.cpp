// scatter_elements: y = data, then each update meets y at its index. Columns along the axis are independent; within one
// the updates come in order.
#include "kernels/Numbers.h"
#include "kernels/index/scatter_elements_call.h"

#include <algorithm>
#include <cstring>

namespace ds::kernels {

namespace {

/// Elements that a piece copies or updates, roughly.
constexpr int64_t grain = 16384;

template <typename T> class ScatterElements : public Kernel {
public:
  explicit ScatterElements(const ScatterElementsCall &call)
      : call_(call), elements_(elementCount(call.data)),
        perPiece_(std::max<int64_t>(1, grain / std::max<int64_t>(call.index.length(), 1))) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const ElementIndex &index = call_.index;
    if (Status status = index.check("scatter_elements", operands[1]); !status.ok())
      return status;
    const auto *data = static_cast<const T *>(operands[0]), *updates = static_cast<const T *>(operands[2]);
    auto *y = static_cast<T *>(operands[3]);
    parallelFor(context, piecesOf(elements_, grain), [&](int64_t piece, int) {
      std::memcpy(y + piece * grain, data + piece * grain,
                  size_t(std::min(grain, elements_ - piece * grain)) * sizeof(T));
    });
    parallelFor(context, piecesOf(index.columns(), perPiece_), [&](int64_t piece, int) {
      for (int64_t c = piece * perPiece_; c < std::min((piece + 1) * perPiece_, index.columns()); ++c) {
        const ElementIndex::Column column = index.column(c);
        for (int64_t j = 0; j < index.length(); ++j) {
          T &element = y[index.dataAt(column, operands[1], j)];
          element = combined(call_.reduction, element, updates[index.indicesAt(column, j)]);
        }
      }
    });
    return Status::success();
  }

private:
  ScatterElementsCall call_;
  int64_t elements_, perPiece_;
};

} // namespace

std::unique_ptr<Kernel> makeScatterElements(const Invocation &invocation, const BuildOptions &) {
  const ScatterElementsCall call{Call(invocation)};
  return withType(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<ScatterElements<decltype(zero)>>(call);
  });
}

} // namespace ds::kernels
