// gather_grad: ddata = 0, then ddata[index[k]] += dy[k] in the order of k.
//
// Pieces own ranges of ddata, rows where there are many and columns where there are few, and each goes through all
// indices: no two pieces touch one element, and its contributions are added in index order whatever the pieces are.
#include "kernels/index/gather_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// Elements of ddata that a piece owns, at least, and the most pieces: every piece reads all indices.
constexpr int64_t grain = 16384, mostPieces = 64;

template <typename T> class GatherGrad : public Kernel {
public:
  explicit GatherGrad(const Call &call) : call_(call, "ddata", "dy") {
    const auto [outer, length, inner] = call_.data;
    const int64_t pieces = std::clamp<int64_t>(length * inner / grain, 1, mostPieces);
    byRows_ = length >= pieces;
    const int64_t cut = byRows_ ? length : inner;
    step_ = std::max<int64_t>(1, piecesOf(cut, pieces));
    pieces_ = piecesOf(cut, step_);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    if (Status status = call_.check("gather_grad", operands[1]); !status.ok())
      return status;
    const auto *dy = static_cast<const T *>(operands[0]);
    auto *ddata = static_cast<T *>(operands[2]);
    const auto [outer, length, inner] = call_.data;
    if (length == 0 || inner == 0)
      return Status::success();
    parallelFor(context, outer * pieces_, [&](int64_t piece, int) {
      const int64_t o = piece / pieces_, first = piece % pieces_ * step_;
      const T *from = dy + o * call_.count * call_.data.inner;
      T *to = ddata + o * call_.data.length * call_.data.inner;
      if (byRows_)
        ownRows(operands[1], from, to, first, std::min(first + step_, call_.data.length));
      else
        ownColumns(operands[1], from, to, first, std::min(first + step_, call_.data.inner));
    });
    return Status::success();
  }

private:
  void ownRows(const void *indices, const T *dy, T *ddata, int64_t begin, int64_t end) const {
    const int64_t inner = call_.data.inner;
    std::fill(ddata + begin * inner, ddata + end * inner, T(0));
    for (int64_t k = 0; k < call_.count; ++k)
      if (const int64_t row = call_.row(indices, k); row >= begin && row < end)
        add(dy + k * inner, ddata + row * inner, inner);
  }

  void ownColumns(const void *indices, const T *dy, T *ddata, int64_t begin, int64_t end) const {
    const int64_t inner = call_.data.inner;
    for (int64_t row = 0; row < call_.data.length; ++row)
      std::fill(ddata + row * inner + begin, ddata + row * inner + end, T(0));
    for (int64_t k = 0; k < call_.count; ++k)
      if (const int64_t row = call_.row(indices, k); call_.has(row))
        add(dy + k * inner + begin, ddata + row * inner + begin, end - begin);
  }

  static void add(const T *from, T *to, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      to[i] += from[i];
  }

  GatherCall call_;
  bool byRows_ = true;
  int64_t step_ = 1, pieces_ = 1; ///< rows or columns of a piece; pieces of one outer index
};

} // namespace

std::unique_ptr<Kernel> makeGatherGrad(const Invocation &invocation, const BuildOptions &) {
  const Call call(invocation);
  return makeByFloat<GatherGrad>(call.dtype(), call);
}

} // namespace ds::kernels
