// reduce_sum, reduce_mean, reduce_max of floats over any axes.
//
// Dimensions of one kind (kept or reduced) that follow each other are merged. Then either the innermost one is reduced
// (runs are added in lanes) or kept (columns are added side by side). Runs longer than `segment` are cut into segments
// whose sums are added in order in float64. All cuts follow from the shape.
#include "kernels/reduce/reduce_call.h"
#include "kernels/reduce/reduce_integer.h"

#include <algorithm>
#include <limits>

#define DS_LOOPS "kernels/reduce/reduce_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

/// Elements of x behind one piece, roughly; also the longest run that one worker adds up.
constexpr int64_t grain = 32768, segment = 65536;
/// Most segments of one call (2^40 elements): each keeps a number for its sum in the kernel.
constexpr int64_t mostSegments = int64_t(1) << 24;

template <typename T> class Reduce : public Kernel {
public:
  explicit Reduce(const ReduceCall &call) : call_(call) {
    ReduceDimensions dimensions(call);
    kept_ = std::move(dimensions.kept);
    reduced_ = std::move(dimensions.reduced);
    innerReduced_ = dimensions.innerReduced;
    takeInner();
    if (call.reduction == Reduction::Max) {
      run_ = DS_BEST(maxRun<T>);
      down_ = DS_BEST(maxDown<T>);
    }
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const auto *x = static_cast<const T *>(operands[0]);
    auto *y = static_cast<T *>(operands[1]);
    if (call_.outputs == 0)
      return Status::success();
    if (call_.length == 0)
      std::fill_n(y, call_.outputs, finished(0));
    else if (!innerReduced_)
      columns(context, x, y);
    else if (!segments_.empty())
      longRuns(context, x, y);
    else
      runs(context, x, y);
    return Status::success();
  }

private:
  /// Splits off the innermost dimension, and of the reduced ones the next as rows; allocates segments where needed.
  void takeInner() {
    std::vector<StridedDimension> &kind = innerReduced_ ? reduced_ : kept_;
    if (!kind.empty()) {
      inner_ = kind.back().size;
      kind.pop_back();
    }
    if (!innerReduced_ && !reduced_.empty()) {
      rows_ = reduced_.back();
      reduced_.pop_back();
    }
    if (innerReduced_ && reduced_.empty() && inner_ > segment)
      segments_.resize(size_t(call_.outputs * piecesOf(inner_, segment)));
  }

  double identity() const { return call_.reduction == Reduction::Max ? -std::numeric_limits<double>::infinity() : 0; }

  void combine(double &total, double value) const {
    if (call_.reduction != Reduction::Max)
      total += value;
    else if (!(value <= total)) // NaN wins
      total = total != total ? total : value;
  }

  T finished(double total) const {
    return T(call_.reduction == Reduction::Mean ? total / double(call_.length) : total);
  }

  void runs(const CallContext &context, const T *x, T *y) const {
    const int64_t outputs = std::max<int64_t>(1, grain / call_.length), outer = countOf(reduced_);
    parallelFor(context, piecesOf(call_.outputs, outputs), [&](int64_t piece, int) {
      for (int64_t o = piece * outputs; o < std::min((piece + 1) * outputs, call_.outputs); ++o) {
        const T *from = x + offsetOf(kept_, o);
        double total = identity();
        for (int64_t r = 0; r < outer; ++r)
          combine(total, run_(from + offsetOf(reduced_, r), inner_));
        y[o] = finished(total);
      }
    });
  }

  void longRuns(const CallContext &context, const T *x, T *y) {
    const int64_t perRun = piecesOf(inner_, segment);
    parallelFor(context, call_.outputs * perRun, [&](int64_t piece, int) {
      const int64_t first = piece % perRun * segment;
      segments_[size_t(piece)] = run_(x + offsetOf(kept_, piece / perRun) + first, std::min(segment, inner_ - first));
    });
    for (int64_t o = 0; o < call_.outputs; ++o) {
      double total = identity();
      for (int64_t s = 0; s < perRun; ++s)
        combine(total, segments_[size_t(o * perRun + s)]);
      y[o] = finished(total);
    }
  }

  void columns(const CallContext &context, const T *x, T *y) const {
    constexpr int64_t width = baseline::reduceColumns;
    const int64_t blocks = piecesOf(inner_, width), outer = countOf(reduced_);
    const int64_t perPiece = std::max<int64_t>(1, grain / (call_.length * std::min(inner_, width)));
    const int64_t total = call_.outputs / inner_ * blocks;
    parallelFor(context, piecesOf(total, perPiece), [&](int64_t piece, int) {
      for (int64_t block = piece * perPiece; block < std::min((piece + 1) * perPiece, total); ++block) {
        const int64_t first = block % blocks * width, count = std::min(width, inner_ - first);
        const T *from = x + offsetOf(kept_, block / blocks) + first;
        double sums[width];
        std::fill_n(sums, count, identity());
        for (int64_t r = 0; r < outer; ++r)
          down_(from + offsetOf(reduced_, r), rows_.size, rows_.stride, count, sums);
        for (int64_t c = 0; c < count; ++c)
          y[block / blocks * inner_ + first + c] = finished(sums[c]);
      }
    });
  }

  ReduceCall call_;
  std::vector<StridedDimension> kept_, reduced_; ///< without what is below
  int64_t inner_ = 1;                            ///< the innermost dimension, contiguous
  StridedDimension rows_{1, 0};                  ///< the innermost reduced one, where columns are reduced
  bool innerReduced_ = false;
  std::vector<double> segments_; ///< [outputs, segments of a run], where runs are long
  decltype(&baseline::sumRun<T>) run_ = DS_BEST(sumRun<T>);
  decltype(&baseline::sumDown<T>) down_ = DS_BEST(sumDown<T>);
};

} // namespace

std::unique_ptr<Kernel> makeReduce(const Invocation &invocation, const BuildOptions &) {
  const Call checked(invocation);
  const ReduceCall call(checked, reductionNamed(invocation.kernel));
  checked.require(call.outputs == 0 || call.length / segment <= mostSegments / call.outputs,
                  "x " + toString(call.x) + " is too large to be reduced at once");
  if (!isFloat(call.dtype))
    return makeIntegerReduce(call);
  return makeByFloat<Reduce>(call.dtype, call);
}

} // namespace ds::kernels
