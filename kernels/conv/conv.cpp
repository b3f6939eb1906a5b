// conv: y[n, m, o] = bias[m] + sum over c, k of x[n, c, o * strides + k * dilations - low] * w[m, c, k]
//
// A piece is some places of a sample's group: y = w [filters, taps] * windows of x [taps, places], the windows gathered
// into the worker's slot, some taps at a time. One worker adds the taps in order, so the bits do not depend on the
// number of workers. torch.nn.functional.conv2d.
#include "kernels/conv/conv_call.h"
#include "kernels/conv/conv_direct.h"
#include "kernels/conv/conv_workspace.h"
#include "kernels/cpu/Gemm.h"

#include <algorithm>
#include <atomic>

#define DS_LOOPS "kernels/conv/conv_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class Conv : public Kernel {
public:
  Conv(const ConvForwardCall &call, const ConvBlocks &blocks, const ConvWorkspace &workspace)
      : call_(call), workspace_(workspace), places_(blocks.forwardPlaces()),
        taps_(call.isPointwise() ? call.taps() : blocks.forwardTaps()) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t across = piecesOf(call_.window.outputs(), places_);
    void *workspace = call_.workspace.at(operands);
    std::atomic<bool> done = true;
    parallelFor(
        context, call_.samples * call_.groups * across,
        [&](int64_t piece, int worker) {
          if (!convolve(operands, piece / across, piece % across * places_, workspace_.gathered<T>(workspace, worker),
                        workspace_.scratch(workspace, worker)))
            done = false;
        },
        workspace_.concurrency());
    return done ? Status::success() : Status::failure("no memory was left for a convolution");
  }

private:
  /// The places from `place` on of one sample's group; `image` counts both.
  bool convolve(std::span<void *const> operands, int64_t image, int64_t place, T *windows, Scratch scratch) const {
    const int64_t outputs = call_.window.outputs(), count = std::min(places_, outputs - place);
    const int64_t group = image % call_.groups;
    const auto *x = static_cast<const T *>(operands[0]) + call_.xOffset(0, image);
    const auto *w = static_cast<const T *>(operands[1]) + call_.wOffset(group);
    T *y = static_cast<T *>(operands[call_.y]) + call_.yOffset(0, image) + place;
    if (call_.bias)
      for (int64_t f = 0; f < call_.filters; ++f)
        std::fill_n(y + f * outputs, count, static_cast<const T *>(operands[2])[group * call_.filters + f]);
    const bool pointwise = call_.isPointwise();
    for (int64_t tap = 0; tap < call_.taps(); tap += taps_) {
      const int64_t taps = std::min(taps_, call_.taps() - tap);
      if (!pointwise)
        gather_(call_.window, x, tap, taps, place, count, windows);
      const T *right = pointwise ? x + place : windows;
      if (!multiply(Gemm<T>{w + tap, right, y, call_.filters, count, taps, call_.taps(), pointwise ? outputs : count,
                            outputs, false, false, call_.bias || tap > 0},
                    scratch))
        return false;
    }
    return true;
  }

  ConvForwardCall call_;
  ConvWorkspace workspace_;
  int64_t places_, taps_; ///< of a piece; gathered at a time
  decltype(&baseline::gatherWindows<T>) gather_ = DS_BEST(gatherWindows<T>);
};

} // namespace

std::unique_ptr<Kernel> makeConv(const Invocation &invocation, const BuildOptions &options) {
  const ConvForwardCall call{Call(invocation)};
  const auto &operands = invocation.operands;
  const ConvBlocks blocks(operands[0], operands[1], operands[call.y]);
  return makeConvolution<Conv>(call, blocks, {0, blocks.forwardBytes(), blocks.forwardTileBytes()}, options,
                               makeConvDirect);
}

} // namespace ds::kernels
